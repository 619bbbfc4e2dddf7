"""Writes on and on through redis-py's support for clusters.

usage: redis_py.py PORTS     (of some nodes, with commas between them)

It prints what was acknowledged: `count KEY`, `list KEY NUMBER`, `pipeline KEY NUMBER`, and `heard NUMBER` for a
message that came. It ends with its standard input, and fails when it reads something else than it has written.
"""

import itertools
import sys
import threading
import time

import redis
from redis.backoff import ConstantBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

NAME = "redis-py"
KEYS = 40

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()


def complain(error):
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    time.sleep(0.05)


def say(*words):
    # One call, since threads share the output.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def listen(cluster):
    listener = None
    while not ended.is_set():
        try:
            if listener is None:
                listener = cluster.pubsub()
                listener.ssubscribe(f"{NAME}:news")
            message = listener.get_sharded_message()
            if message and message["type"] == "smessage":
                say("heard", message["data"])
            elif not message:
                # It looks at its connections in turn and does not wait itself.
                time.sleep(0.01)
        except Exception as error:
            # The library closes connections for the other thread as well, when it has lost one.
            complain(error)
            listener = None


def write(cluster, number):
    key = f"{NAME}:count:{number % KEYS}"
    cluster.incr(key)
    say("count", key)
    key = f"{NAME}:list:{number % KEYS}"
    cluster.rpush(key, number)
    last = cluster.lindex(key, -1)
    if last != str(number):
        sys.exit(f"{key} ends with {last}, not with {number}")
    say("list", key, number)
    if number % 10 == 0:
        cluster.spublish(f"{NAME}:news", number)
        keys = [f"{NAME}:pipeline:{at}" for at in range(8)]
        pipeline = cluster.pipeline()
        for key in keys:
            pipeline.rpush(key, number)
        for key, answer in zip(keys, pipeline.execute(raise_on_error=False)):
            if isinstance(answer, int):
                say("pipeline", key, number)


places = [ClusterNode("127.0.0.1", int(port)) for port in sys.argv[1].split(",")]
cluster = RedisCluster(
    startup_nodes=places, socket_timeout=2, decode_responses=True, retry=Retry(ConstantBackoff(0.05), 10)
)
threading.Thread(target=listen, args=[cluster], daemon=True).start()
for number in itertools.count(1):
    if ended.is_set():
        break
    try:
        write(cluster, number)
    except redis.RedisError as error:
        complain(error)
