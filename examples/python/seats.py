"""Seats that are sold once: HTTP with versions decides, and a queue of the Redis protocol carries the orders.

Run it beside a server (`make run`) with `pip install redis`:

    python3 examples/python/seats.py [redis port] [HTTP port]
"""

import json
import sys
import threading
import urllib.error
import urllib.request

import redis

REDIS_PORT, HTTP_PORT = (int(port) for port in (sys.argv[1:] + ["6379", "8379"][len(sys.argv) - 1 :]))
KEYS = f"http://127.0.0.1:{HTTP_PORT}/v1/keys/"


def http(method, key, body=None, **headers):
    """Returns the status, the body and the version of the key."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(KEYS + key, data=body, headers=named, method=method)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as refused:
        answer = refused
    with answer:
        return answer.status, answer.read(), answer.headers.get("ETag")


def buy(customer, seats, sold):
    """Takes the first free seat. Of two customers that see the same version, one gets 412 and looks again."""
    while True:
        _, body, version = http("GET", seats)
        free = json.loads(body)
        if not free:
            return
        seat, rest = free[0], free[1:]
        status, _, _ = http("PUT", seats, json.dumps(rest).encode(), If_Match=version)
        if status == 204:
            sold.rpush("seats:orders", json.dumps({"seat": seat, "customer": customer}))
            return


def main():
    server = redis.Redis(port=REDIS_PORT, decode_responses=True)
    server.delete("seats:orders")
    http("PUT", "seats", json.dumps(["A1", "A2", "A3"]).encode(), Content_Type="application/json")
    customers = [threading.Thread(target=buy, args=(name, "seats", server)) for name in "abcde"]
    for customer in customers:
        customer.start()
    orders = [json.loads(server.blpop("seats:orders", timeout=10)[1]) for _ in range(3)]
    for customer in customers:
        customer.join()
    assert server.llen("seats:orders") == 0, "no seat is sold twice"
    print("sold", " ".join(sorted(order["seat"] for order in orders)))


main()
