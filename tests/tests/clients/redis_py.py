"""The server as redis-py meets it: every family through the library's own methods.

usage: redis_py.py PORT PROTOCOL [NAME...]

Each check begins with an empty server. What fails is reported with its trace, and the exit code
says whether anything did. What the library shapes alike for RESP2 and RESP3 is asserted once; the
few answers that it shapes by the protocol are asserted for the protocol that is spoken.
"""

import datetime
import sys
import threading
import time
import traceback

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT = int(sys.argv[1])
PROTOCOL = int(sys.argv[2])
CHECKS = []
# How long anything may take that another thread or the server has to bring about.
PATIENCE = 30


def check(function):
    CHECKS.append(function)
    return function


def connect(**options):
    return redis.Redis(port=PORT, protocol=PROTOCOL, socket_timeout=PATIENCE, **options)


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def text(answer):
    """A text, which some methods decode under one protocol and not under the other."""
    return answer.decode() if isinstance(answer, bytes) else answer


def by_protocol(resp2, resp3):
    return resp3 if PROTOCOL == 3 else resp2


def refused(text, call, *arguments, error=redis.ResponseError, **options):
    try:
        result = call(*arguments, **options)
    except error as refusal:
        assert text in str(refusal), f"{refusal} does not say {text!r}"
    else:
        raise AssertionError(f"{result!r} instead of an error with {text!r}")


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} does not happen"
        time.sleep(0.005)


def in_threads(count, work):
    """Runs `work(index)` in threads; what one of them raises is raised here."""
    failures = []

    def guarded(index):
        try:
            work(index)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@check
def connections(r):
    equal(r.ping(), True)
    equal(r.echo("hello"), b"hello")
    equal(connect(decode_responses=True).echo("grüße"), "grüße")
    named = connect(client_name="a-name")
    equal(text(named.client_getname()), "a-name")
    own = named.client_id()
    entry = next(entry for entry in r.client_list() if int(entry["id"]) == own)
    equal((entry["name"], entry["db"], entry["resp"]), ("a-name", "0", str(PROTOCOL)))
    equal(int(named.client_info()["id"]), own)
    equal(int(connect(db=9).client_info()["db"]), 9)
    equal(r.client_kill_filter(_id=own), 1)
    # The library connects again by itself.
    assert named.client_id() > own
    refused("unknown command", r.execute_command, "NOSUCH", "x")
    refused("wrong number of arguments", r.execute_command, "GET")


@check
def strings(r):
    equal(r.set("s", "value"), True)
    equal(r.get("s"), b"value")
    equal(r.get("nothing"), None)
    equal(r.set("s", "other", nx=True), None)
    equal(r.set("s", "other", xx=True, get=True), b"value")
    equal(r.set("t", b"\x00\xff\r\n", px=100_000), True)
    equal(r.get("t"), b"\x00\xff\r\n")
    assert 0 < r.pttl("t") <= 100_000
    equal(r.set("t", "x", keepttl=True), True)
    assert r.ttl("t") > 0
    equal(r.getex("t", persist=True), b"x")
    equal(r.ttl("t"), -1)
    equal(r.getdel("t"), b"x")
    equal(r.getset("s", "new"), b"other")
    equal((r.append("s", "er"), r.strlen("s"), r.getrange("s", 1, -2)), (5, 5, b"ewe"))
    equal(r.setrange("s", 7, "end"), 10)
    equal(r.get("s"), b"newer\x00\x00end")
    equal((r.incr("n"), r.incrby("n", 41), r.decr("n"), r.decrby("n", 50)), (1, 42, 41, -9))
    equal(r.incrbyfloat("f", 1.5), 1.5)
    equal(r.incrbyfloat("f", "1e2"), 101.5)
    refused("not an integer", r.incr, "s")
    equal(r.mset({"a": 1, "b": b"2", "c": 3.5}), True)
    equal(r.mget("a", "b", "none", "c"), [b"1", b"2", None, b"3.5"])
    equal((r.msetnx({"a": 9, "z": 9}), r.exists("z")), (False, 0))
    equal(r.setnx("a", 5), False)
    equal(r.setex("e", 100, "v"), True)
    equal(r.psetex("e", 100_000, "v"), True)
    r.mset({"x": "ohmytext", "y": "mynewtext"})
    equal(r.lcs("x", "y"), b"mytext")
    equal(r.lcs("x", "y", len=True), 6)
    big = bytes(range(256)) * 12_000
    equal((r.set("big", big), r.get("big") == big), (True, True))


@check
def bits(r):
    equal((r.setbit("b", 7, 1), r.setbit("b", 100, 1), r.getbit("b", 7)), (0, 0, 1))
    equal((r.bitcount("b"), r.bitcount("b", 0, 0)), (2, 1))
    equal((r.bitpos("b", 1), r.bitpos("b", 0)), (7, 0))
    r.set("c", b"\x0f")
    equal(r.bitop("OR", "d", "b", "c"), 13)
    equal(r.bitcount("d"), 5)
    field = r.bitfield("f").set("u8", 0, 255).incrby("u8", 0, 10).get("u4", 0)
    equal(field.execute(), [0, 9, 0])
    equal(r.bitfield("f", default_overflow="SAT").incrby("u8", 0, 300).execute(), [255])


@check
def keys_and_expiry(r):
    r.mset({f"key:{index}": index for index in range(50)})
    equal(sorted(r.keys("key:4*")), [b"key:4"] + [b"key:%d" % index for index in range(40, 50)])
    equal(r.dbsize(), 50)
    assert r.randomkey().startswith(b"key:")
    equal((r.exists("key:1", "key:1", "none"), r.delete("key:1", "none"), r.unlink("key:2")), (2, 1, 1))
    equal(r.touch("key:3", "key:1"), 1)
    equal(r.type("key:3"), b"string")
    equal((r.rename("key:3", "other"), r.renamenx("key:4", "other")), (True, False))
    refused("no such key", r.rename, "none", "other")
    equal((r.copy("other", "again"), r.copy("other", "again"), r.copy("other", "again", replace=True)),
          (True, False, True))
    equal((r.move("again", 3), r.exists("again"), connect(db=3).get("again")), (1, 0, b"3"))
    equal(r.object("encoding", "other"), b"int")
    equal(r.expire("other", 100), True)
    equal(r.expire("other", 50, gt=True), False)
    assert 90 < r.ttl("other") <= 100
    equal(r.pexpire("other", datetime.timedelta(hours=1)), True)
    at = int(time.time()) + 5000
    equal((r.expireat("other", at), r.expiretime("other"), r.pexpiretime("other")), (True, at, at * 1000))
    equal((r.persist("other"), r.ttl("other"), r.ttl("none")), (True, -1, -2))
    r.set("brief", 1, px=1)
    until(lambda: r.get("brief") is None, "the end of a key's time")
    payload = r.dump("other")
    equal((r.restore("back", 0, payload), r.get("back")), (b"OK", b"3"))
    refused("BUSYKEY", r.restore, "back", 0, payload)
    refused("DUMP payload version or checksum are wrong", r.restore, "bad", 0, payload[:-1] + b"x")
    assert r.memory_usage("other") > 0
    equal(r.swapdb(0, 3), True)
    equal((r.dbsize(), r.get("again")), (1, b"3"))
    equal((r.flushdb(), r.dbsize(), r.flushall(asynchronous=True)), (True, 0, True))


@check
def lists(r):
    equal((r.rpush("l", "a", "b", "c"), r.lpush("l", "z"), r.rpushx("none", 1), r.llen("l")), (3, 4, 0, 4))
    equal(r.lrange("l", 0, -1), [b"z", b"a", b"b", b"c"])
    equal((r.lindex("l", -1), r.lindex("l", 9), r.lset("l", 0, "Z")), (b"c", None, True))
    equal((r.linsert("l", "before", "b", "ab"), r.lpos("l", "b"), r.lpos("l", "b", count=0)), (5, 3, [3]))
    equal((r.lrem("l", 0, "ab"), r.ltrim("l", 0, 2)), (1, True))
    equal((r.lpop("l"), r.rpop("l", 2), r.lpop("l"), r.exists("l")), (b"Z", [b"b", b"a"], None, 0))
    r.rpush("from", *range(6))
    equal((r.lmove("from", "to", "LEFT", "RIGHT"), r.rpoplpush("from", "to")), (b"0", b"5"))
    equal(r.lrange("to", 0, -1), [b"5", b"0"])
    equal(r.lmpop(2, "none", "from", direction="LEFT", count=2), [b"from", [b"1", b"2"]])
    refused("WRONGTYPE", r.get, "from")
    equal(r.sort("from", desc=True), [b"4", b"3"])
    r.mset({"weight:3": 1, "weight:4": 2, "name:3": "three", "name:4": "four"})
    equal(r.sort("from", by="weight:*", get=["#", "name:*"], groups=True), [(b"3", b"three"), (b"4", b"four")])
    equal((r.sort("from", alpha=True, store="sorted"), r.lrange("sorted", 0, -1)), (2, [b"3", b"4"]))


@check
def hashes(r):
    equal(r.hset("h", mapping={"a": 1, "b": "two"}), 2)
    equal((r.hset("h", "a", 5), r.hsetnx("h", "a", 6), r.hget("h", "a"), r.hget("h", "x")), (0, False, b"5", None))
    equal(r.hgetall("h"), {b"a": b"5", b"b": b"two"})
    equal((r.hmget("h", "b", "x"), r.hlen("h"), r.hstrlen("h", "b")), ([b"two", None], 2, 3))
    equal((r.hexists("h", "a"), sorted(r.hkeys("h")), sorted(r.hvals("h"))), (True, [b"a", b"b"], [b"5", b"two"]))
    equal((r.hincrby("h", "n", 7), r.hincrbyfloat("h", "n", 0.5), r.hdel("h", "a", "x")), (7, 7.5, 1))
    assert r.hrandfield("h") in (b"b", b"n")
    equal(sorted(r.hrandfield("h", 5)), [b"b", b"n"])
    pairs = r.hrandfield("h", -4, withvalues=True)
    equal(len(pairs), by_protocol(8, 4))
    many = {f"field:{index}": index for index in range(2000)}
    equal(r.hset("many", mapping=many), 2000)
    equal(len(r.hgetall("many")), 2000)
    equal(r.object("encoding", "many"), b"hashtable")


@check
def sets(r):
    equal((r.sadd("s", "a", "b", "c", "a"), r.scard("s"), r.smembers("s")), (3, 3, {b"a", b"b", b"c"}))
    equal((r.sismember("s", "a"), r.smismember("s", ["a", "x"]), r.srem("s", "a", "x")), (True, [1, 0], 1))
    r.sadd("t", "b", "x")
    equal((r.sinter("s", "t"), r.sunion("s", "t"), r.sdiff("s", "t")), ({b"b"}, {b"b", b"c", b"x"}, {b"c"}))
    equal((r.sinterstore("i", "s", "t"), r.sunionstore("u", "s", "t"), r.sdiffstore("d", "s", "t")), (1, 3, 1))
    equal((r.sintercard(2, ["s", "t"]), r.smove("s", "t", "c"), r.smembers("t")), (1, True, {b"b", b"c", b"x"}))
    assert r.srandmember("t") in r.smembers("t")
    equal((len(r.srandmember("t", -10)), len(r.spop("t", 2)), r.scard("t")), (10, 2, 1))
    equal((r.sadd("n", *range(100)), r.object("encoding", "n")), (100, b"intset"))


@check
def sorted_sets(r):
    equal(r.zadd("z", {"a": 1, "b": 2.5, "c": float("inf"), "d": -3}), 4)
    equal((r.zadd("z", {"a": 2}, nx=True), r.zadd("z", {"a": 2}, gt=True, ch=True)), (0, 1))
    equal((r.zadd("z", {"a": 1}, incr=True), r.zincrby("z", -1, "a"), r.zscore("z", "x")), (3.0, 2.0, None))
    equal(r.zrange("z", 0, -1), [b"d", b"a", b"b", b"c"])
    pair = by_protocol(tuple, list)
    equal(r.zrange("z", 0, 1, withscores=True), [pair((b"d", -3.0)), pair((b"a", 2.0))])
    equal(r.zrange("z", 0, 0, desc=True, withscores=True), [pair((b"c", float("inf")))])
    equal(r.zrange("z", "(2", "+inf", byscore=True, offset=0, num=1), [b"b"])
    equal(r.zrangebyscore("z", "-inf", 2.5, start=1, num=5), [b"a", b"b"])
    equal((r.zrank("z", "b"), r.zrevrank("z", "b"), r.zcard("z"), r.zcount("z", 0, 10)), (2, 1, 4, 2))
    equal(r.zmscore("z", ["a", "x"]), [2.0, None])
    equal(r.zadd("w", {"a": 10, "e": 1}), 2)
    equal(r.zunionstore("u", {"z": 1, "w": 2}, aggregate="MAX"), 5)
    equal(r.zscore("u", "a"), 20.0)
    equal((r.zinter(["z", "w"]), r.zdiff(["w", "z"]), r.zintercard(2, ["z", "w"])), ([b"a"], [b"e"], 1))
    equal((r.zpopmin("w"), r.zpopmax("w")), ([pair((b"e", 1.0))] if PROTOCOL == 2 else [b"e", 1.0],
                                            [pair((b"a", 10.0))] if PROTOCOL == 2 else [b"a", 10.0]))
    equal((r.zremrangebyrank("z", 0, 0), r.zremrangebyscore("z", 2.4, 2.6), r.zrem("z", "c")), (1, 1, 1))
    r.zadd("lex", {letter: 0 for letter in "abcdef"})
    equal(r.zrangebylex("lex", "[b", "(e"), [b"b", b"c", b"d"])
    equal((r.zlexcount("lex", "-", "+"), r.zremrangebylex("lex", "-", "[b")), (6, 2))
    equal(r.zrangestore("stored", "lex", 1, 2), 2)
    assert r.zrandmember("lex") in r.zrange("lex", 0, -1)
    r.zadd("many", {f"member:{index}": index % 97 for index in range(3000)})
    equal((r.zcount("many", 5, 5), r.object("encoding", "many")), (31, b"skiplist"))


@check
def places_and_estimates(r):
    places = (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")
    equal(r.geoadd("Sicily", places), 2)
    assert abs(r.geodist("Sicily", "Palermo", "Catania", unit="km") - 166.2742) < 0.001
    longitude, latitude = r.geopos("Sicily", "Palermo")[0]
    assert abs(longitude - 13.361389) < 1e-5 and abs(latitude - 38.115556) < 1e-5
    equal(r.geosearch("Sicily", longitude=15, latitude=37, radius=200, unit="km", sort="ASC"),
          [b"Catania", b"Palermo"])
    equal(r.geosearchstore("near", "Sicily", longitude=15, latitude=37, radius=100, unit="km"), 1)
    equal([text(name) for name in r.geohash("Sicily", "Palermo")], ["sqc8b49rny0"])
    equal((r.pfadd("p", *range(1000)), r.pfadd("p", 5)), (1, 0))
    assert abs(r.pfcount("p") - 1000) < 30
    r.pfadd("q", *range(500, 1500))
    assert r.pfmerge("both", "p", "q") and abs(r.pfcount("both") - 1500) < 50


@check
def iterators(r):
    names = {b"scan:%d" % index for index in range(3000)}
    with r.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.set(name, 1)
        pipe.execute()
    r.sadd("other", *range(2000))
    equal(set(r.scan_iter("scan:*", count=100)), names)
    equal(list(r.scan_iter(_type="set")), [b"other"])
    equal({int(member) for member in r.sscan_iter("other")}, set(range(2000)))
    r.hset("h", mapping={index: index * 2 for index in range(2000)})
    equal({int(field): int(value) for field, value in r.hscan_iter("h", count=50)},
          {index: index * 2 for index in range(2000)})
    r.zadd("z", {str(index): index for index in range(2000)})
    equal({member: score for member, score in r.zscan_iter("z", match="19*")},
          {str(index).encode(): float(index) for index in range(2000) if str(index).startswith("19")})


@check
def pipelines(r):
    with r.pipeline(transaction=False) as pipe:
        for index in range(5000):
            pipe.incr("n").set(f"k{index % 100}", index)
        results = pipe.execute()
    equal(results[::2], list(range(1, 5001)))
    equal(set(results[1::2]), {True})
    with r.pipeline(transaction=False) as pipe:
        pipe.set("s", "text").incr("s").get("s")
        results = pipe.execute(raise_on_error=False)
    assert isinstance(results[1], redis.ResponseError)
    equal((results[0], results[2]), (True, b"text"))


@check
def transactions(r):
    with r.pipeline() as pipe:
        equal(pipe.set("a", 1).incr("a").lpush("l", 1, 2).hset("h", "f", 1).hgetall("h").execute(),
              [True, 2, 2, 1, {b"f": b"1"}])
    with r.pipeline() as pipe:
        pipe.set("a", "x").lpush("a", 1).set("b", "reached")
        refused("WRONGTYPE", pipe.execute)
    equal(r.get("b"), b"reached")
    with r.pipeline() as pipe:
        pipe.set("a", "y").execute_command("SET", "a")
        refused("", pipe.execute, error=redis.RedisError)
    equal(r.get("a"), b"x")
    with r.pipeline() as pipe:
        pipe.watch("a")
        r.set("a", "meanwhile")
        pipe.multi()
        pipe.set("a", "lost")
        refused("", pipe.execute, error=redis.WatchError)
    equal(r.get("a"), b"meanwhile")


@check
def optimistic_locking(r):
    """Many threads increment by WATCH, GET and SET; every conflict is retried, so none is lost."""
    r.set("counter", 0)
    retries = []

    def increment(pipe):
        value = int(pipe.get("counter"))
        pipe.multi()
        pipe.set("counter", value + 1)
        pipe.rpush("log", value)

    def work(index):
        own = connect()
        if index % 2:
            for _ in range(25):
                own.transaction(increment, "counter")
            return
        for _ in range(25):
            with own.pipeline() as pipe:
                while True:
                    try:
                        pipe.watch("counter")
                        increment(pipe)
                        pipe.execute()
                        break
                    except redis.WatchError:
                        retries.append(index)

    in_threads(8, work)
    equal(r.get("counter"), b"200")
    equal(r.lrange("log", 0, -1), [b"%d" % value for value in range(200)])


@check
def locks(r):
    r.set("inside", 0)

    def work(_):
        own = connect()
        for _ in range(5):
            # The library's lock needs scripts to be released; SET NX and WATCH do it as well.
            while not own.set("lock", 1, nx=True, px=PATIENCE * 1000):
                time.sleep(0.001)
            equal(own.incr("inside"), 1)
            equal(own.decr("inside"), 0)
            own.delete("lock")

    in_threads(4, work)


@check
def publish_and_subscribe(r):
    with r.pubsub() as subscriber:
        subscriber.subscribe("one", "two")
        subscriber.psubscribe("p*")
        kinds = [subscriber.get_message(timeout=PATIENCE) for _ in range(3)]
        equal([(kind["type"], kind["channel"], kind["data"]) for kind in kinds],
              [("subscribe", b"one", 1), ("subscribe", b"two", 2), ("psubscribe", b"p*", 3)])
        equal((r.publish("one", "hello"), r.publish("pattern", b"\x00"), r.publish("none", 1)), (1, 1, 0))
        first = subscriber.get_message(timeout=PATIENCE)
        equal(first, {"type": "message", "pattern": None, "channel": b"one", "data": b"hello"})
        second = subscriber.get_message(timeout=PATIENCE)
        equal(second, {"type": "pmessage", "pattern": b"p*", "channel": b"pattern", "data": b"\x00"})
        equal(sorted(r.pubsub_channels()), [b"one", b"two"])
        equal([(bytes(name), count) for name, count in r.pubsub_numsub("one", "none")], [(b"one", 1), (b"none", 0)])
        equal(r.pubsub_numpat(), 1)
        subscriber.ping()
        equal(subscriber.get_message(timeout=PATIENCE)["type"], "pong")
        subscriber.unsubscribe("one")
        equal(subscriber.get_message(timeout=PATIENCE)["type"], "unsubscribe")
        equal(r.publish("one", "unheard"), 0)


@check
def subscribers_in_threads(r):
    heard = []
    subscriber = r.pubsub(ignore_subscribe_messages=True)
    subscriber.subscribe(**{"news": lambda message: heard.append(message["data"])})
    subscriber.ssubscribe(**{"shard": lambda message: heard.append(message["data"])})
    thread = subscriber.run_in_thread(sleep_time=0.01, daemon=True)
    until(lambda: r.pubsub_channels() == [b"news"], "the subscription")
    until(lambda: r.pubsub_shardchannels() == [b"shard"], "the subscription to the shard channel")

    def work(index):
        for number in range(100):
            connect_of_thread[index].publish("news", number)

    connect_of_thread = [connect() for _ in range(4)]
    in_threads(4, work)
    until(lambda: len(heard) == 400, "the arrival of all messages")
    equal(sorted(heard), sorted(b"%d" % number for number in range(100) for _ in range(4)))
    r.spublish("shard", "last")
    until(lambda: heard[-1] == b"last", "the message of the shard channel")
    thread.stop()
    thread.join()


@check
def keyspace_events(r):
    r.config_set("notify-keyspace-events", "KEA")
    with r.pubsub() as subscriber:
        subscriber.psubscribe("__keyevent@0__:*")
        subscriber.get_message(timeout=PATIENCE)
        r.set("a", 1, px=5)
        events = []

        def expired():
            message = subscriber.get_message(timeout=0.1)
            if message:
                events.append((message["channel"].split(b":")[1], message["data"]))
            return (b"expired", b"a") in events

        until(expired, "the notice of an expiry")
        equal(events[:2], [(b"set", b"a"), (b"expire", b"a")])
    r.config_set("notify-keyspace-events", "")


@check
def blocking(r):
    pairs = by_protocol(tuple, list)
    r.rpush("l", "ready")
    equal(r.blpop("l", timeout=1), pairs((b"l", b"ready")))
    equal(r.brpop("l", timeout=0.01), None)
    results = {}

    def waiters(index):
        own = connect()
        calls = [
            lambda: own.blpop(["none", "one"], timeout=PATIENCE),
            lambda: own.brpop("two", timeout=PATIENCE),
            lambda: own.blmove("three", "there", PATIENCE, "LEFT", "RIGHT"),
            lambda: own.brpoplpush("four", "there", timeout=PATIENCE),
            lambda: own.bzpopmin("five", timeout=PATIENCE),
            lambda: own.bzpopmax("six", timeout=PATIENCE),
            lambda: own.blmpop(PATIENCE, 1, "seven", direction="RIGHT", count=2),
            lambda: own.bzmpop(PATIENCE, 1, ["eight"], min=True),
        ]
        if index < len(calls):
            results[index] = calls[index]()
            return
        until(lambda: r.info("clients")["blocked_clients"] == len(calls), "the waiting of all")
        r.rpush("one", "1")
        r.rpush("two", "a", "b")
        r.rpush("three", "3")
        r.rpush("four", "4")
        r.zadd("five", {"m": 5, "n": 6})
        r.zadd("six", {"m": 5, "n": 6})
        r.rpush("seven", "x", "y", "z")
        r.zadd("eight", {"m": 8})

    in_threads(9, waiters)
    equal(results[0], pairs((b"one", b"1")))
    equal(results[1], pairs((b"two", b"b")))
    equal((results[2], results[3]), (b"3", b"4"))
    equal(results[4], pairs((b"five", b"m", 5.0)))
    equal(results[5], pairs((b"six", b"n", 6.0)))
    equal(results[6], [b"seven", [b"z", b"y"]])
    equal((results[7][0], results[7][1][0][0]), (b"eight", b"m"))
    equal(sorted(r.lrange("there", 0, -1)), [b"3", b"4"])


@check
def work_queue(r):
    """Producers push, workers wait and acknowledge: every job is done once."""
    done = []

    def work(index):
        own = connect()
        if index < 2:
            for number in range(300):
                own.lpush("jobs", f"{index}:{number}")
            return
        while (job := own.blmove("jobs", f"busy:{index}", PATIENCE, "RIGHT", "LEFT")) != b"end":
            done.append(job)
            equal(own.lrem(f"busy:{index}", 1, job), 1)

    finish = threading.Thread(target=lambda: (until(lambda: len(done) == 600, "the end of all jobs"),
                                              r.lpush("jobs", *["end"] * 4)))
    finish.start()
    in_threads(6, work)
    finish.join()
    equal(sorted(done), sorted(b"%d:%d" % (index, number) for index in range(2) for number in range(300)))


@check
def pool_of_connections(r):
    pool = redis.BlockingConnectionPool(max_connections=8, timeout=PATIENCE, port=PORT, protocol=PROTOCOL)
    shared = redis.Redis(connection_pool=pool)

    def work(index):
        for number in range(40):
            name = f"{index}:{number}"
            shared.set(name, name * 10)
            equal(shared.get(name), (name * 10).encode())
            shared.incr("total")
            with shared.pipeline() as pipe:
                equal(pipe.incr(f"own:{index}").get(name).delete(name).execute(),
                      [number + 1, (name * 10).encode(), 1])

    in_threads(32, work)
    equal(r.get("total"), b"1280")
    assert len(r.client_list()) >= 8
    pool.disconnect()


@check
def retries(r):
    """A connection that the server closed is replaced without the caller's notice."""
    own = connect(retry=Retry(NoBackoff(), 3), retry_on_error=[redis.ConnectionError])
    for number in range(20):
        r.client_kill_filter(_id=own.client_id())
        equal(own.set("k", number), True)
    equal(own.get("k"), b"19")


@check
def administration(r):
    info = r.info()
    equal(info["tcp_port"], PORT)
    assert info["used_memory"] > 0 and info["connected_clients"] >= 1 and "redis_version" in info
    r.set("k", 1)
    equal(r.info("keyspace")["db0"]["keys"], 1)
    before = r.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"]
    r.get("k")
    equal(r.info("commandstats")["cmdstat_get"]["calls"], before + 1)
    equal(r.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
    equal((r.config_set("slowlog-log-slower-than", 0), r.slowlog_reset()), (True, True))
    r.get("slow")
    assert any(entry["command"] == b"GET slow" for entry in r.slowlog_get())
    assert r.slowlog_len() > 0
    r.config_set("slowlog-log-slower-than", 10_000)
    equal(r.config_resetstat(), True)
    now, _ = r.time()
    assert abs(now - time.time()) < 100
    assert r.command_count() > 150
    equal([text(key) for key in r.command_getkeys("MSET", "a", 1, "b", 2)], ["a", "b"])
    assert "get" in r.command()
    equal(r.role()[0], b"master")
    equal(text(r.client_no_evict("ON")), "OK")
    equal(r.client_pause(1), True)


def main():
    names = sys.argv[3:]
    control = connect()
    failed = 0
    for function in CHECKS:
        if names and function.__name__ not in names:
            continue
        control.flushall()
        try:
            function(connect())
        except Exception:
            failed += 1
            print(f"---- {function.__name__}\n{traceback.format_exc()}")
    print(f"{len(CHECKS)} checks, {failed} failed")
    sys.exit(failed > 0)


main()
