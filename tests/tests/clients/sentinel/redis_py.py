"""Writes on and on through redis-py's support for Sentinel.

usage: redis_py.py PORTS     (of the Sentinels, with commas between them)

It prints the number of each write that was acknowledged, and ends with its standard input.
"""

import itertools
import sys
import threading
import time

import redis
from redis.sentinel import Sentinel

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()

places = [("127.0.0.1", int(port)) for port in sys.argv[1].split(",")]
sentinel = Sentinel(places, socket_timeout=1)
client = sentinel.master_for("main", socket_timeout=1)
for number in itertools.count(1):
    if ended.is_set():
        break
    try:
        client.set("redis-py", number)
    except redis.RedisError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        time.sleep(0.05)
    else:
        print(number, flush=True)
        time.sleep(0.005)
