"""The server as redis-py meets it over TLS.

usage: redis_py.py PORT AUTHORITY CERTIFICATE KEY OTHER_AUTHORITY

It says that all is well, or fails.
"""

import sys
import threading

import redis

port, authority, certificate, key, other_authority = sys.argv[1:]
PATIENCE = 30


def connect(protocol=2, authority=authority, own=True):
    identity = {"ssl_certfile": certificate, "ssl_keyfile": key} if own else {}
    return redis.Redis(
        host="127.0.0.1",
        port=int(port),
        ssl=True,
        ssl_ca_certs=authority,
        protocol=protocol,
        socket_timeout=PATIENCE,
        **identity,
    )


def is_refused(client):
    try:
        client.ping()
    except redis.exceptions.ConnectionError as error:
        return str(error)
    raise SystemExit("it is served")


for protocol in 2, 3:
    client = connect(protocol)
    client.flushall()
    value = bytes(range(256)) * 4000
    assert client.set("value", value) and client.get("value") == value
    for transaction in False, True:
        with client.pipeline(transaction=transaction) as pipe:
            for index in range(2000):
                pipe.rpush(f"list:{transaction}", f"item-{index}")
            assert pipe.execute() == list(range(1, 2001))
        assert len(client.lrange(f"list:{transaction}", 0, -1)) == 2000
    threading.Timer(0.1, lambda: connect(protocol).rpush("queue", "late")).start()
    assert list(client.blpop("queue", timeout=PATIENCE)) == [b"queue", b"late"]
    subscriber = client.pubsub()
    subscriber.subscribe("news")
    subscriber.psubscribe("n*")
    kinds = [subscriber.get_message(timeout=PATIENCE)["type"] for _ in range(2)]
    assert kinds == ["subscribe", "psubscribe"]
    for text in b"hello", b"x" * 100_000:
        assert client.publish("news", text) == 2
        got = [subscriber.get_message(timeout=PATIENCE) for _ in range(2)]
        assert [(own["type"], own["data"]) for own in got] == [("message", text), ("pmessage", text)]

assert "CERTIFICATE_VERIFY_FAILED" in is_refused(connect(authority=other_authority))
is_refused(connect(own=False))
print("all is well")
