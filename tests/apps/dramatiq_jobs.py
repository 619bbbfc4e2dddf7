"""dramatiq on the server: messages with retries, delays, results and groups, bounds on rate and number,
and workers in processes of their own, one of which is killed.

usage: python dramatiq_jobs.py PORT [NAME...]

What fails is reported with its trace, and the exit code says whether anything did.
"""

import logging
import os
import subprocess
import sys
import time
import traceback

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultBackend

PORT = int(sys.argv[1])
# How long anything may take.
PATIENCE = 15
JOBS = 2000
# Threads of a worker, and how much each fetches before it is needed.
THREADS, PREFETCH = 4, 20
CONNECTION = redis.Redis(port=PORT)
LIMITS = LimitBackend(client=redis.Redis(port=PORT))
logging.disable(logging.ERROR)

# Who is not heard of for so long is dead, and every call looks for the dead.
BROKER = RedisBroker(port=PORT, heartbeat_timeout=1500, maintenance_chance=1_000_000)
BROKER.add_middleware(Results(backend=ResultBackend(client=redis.Redis(port=PORT))))
BROKER.add_middleware(dramatiq.middleware.GroupCallbacks(LIMITS))
dramatiq.set_broker(BROKER)


@dramatiq.actor(max_retries=5, min_backoff=20, max_backoff=50)
def count(number, failures):
    times = CONNECTION.hincrby("ran", number, 1)
    CONNECTION.sadd(f"by:{os.getpid()}", number)
    time.sleep(0.001)
    if times <= failures:
        raise ValueError("not yet")
    CONNECTION.sadd("succeeded", number)


@dramatiq.actor(store_results=True)
def double(number):
    return number * 2


@dramatiq.actor(store_results=True)
def add(*numbers):
    return sum(number for number in numbers if number)


@dramatiq.actor
def notice(name):
    CONNECTION.rpush("noticed", name)


@dramatiq.actor
def due(when):
    CONNECTION.zadd("late", {str(when): time.time() - when})


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} does not happen"
        time.sleep(0.02)


def start_worker():
    return subprocess.Popen([sys.executable, __file__, str(PORT), "--worker"])


def work():
    os.environ["dramatiq_queue_prefetch"] = str(PREFETCH)
    worker = dramatiq.Worker(BROKER, worker_threads=THREADS, worker_timeout=50)
    worker.start()
    time.sleep(PATIENCE)


def kill(*workers):
    for worker in workers:
        worker.kill()
        worker.wait()


def jobs():
    failures = [1 + number % 3 if number % 11 == 0 else 0 for number in range(JOBS)]
    for number in range(JOBS):
        count.send(number, failures[number])
    victim, other = start_worker(), start_worker()
    until(lambda: CONNECTION.scard("succeeded") > JOBS // 4, "a quarter")
    until(lambda: CONNECTION.scard(f"by:{victim.pid}") > 0, "the work of the one that is killed")
    kill(victim)
    third = start_worker()
    until(lambda: CONNECTION.scard("succeeded") == JOBS, "the last job")
    until(lambda: BROKER.do_qsize("default") == 0, "the end of the queue")
    kill(other, third)
    ran = {int(number): int(times) for number, times in CONNECTION.hgetall("ran").items()}
    again = 0
    for number in range(JOBS):
        assert ran[number] > failures[number], f"job {number} ran {ran[number]} times"
        again += ran[number] - failures[number] - 1
    # What each thread works on, and what it has done whose acknowledgement is still on the way.
    assert again <= 2 * THREADS, f"{again} jobs ran again, though fewer were lost"
    assert CONNECTION.hlen("dramatiq:default.msgs") == 0


def here():
    worker = dramatiq.Worker(BROKER, worker_threads=THREADS, worker_timeout=50)
    worker.start()
    return worker


def results():
    worker = here()
    messages = [double.send(number) for number in range(200)]
    for number, message in enumerate(messages):
        assert message.get_result(block=True, timeout=PATIENCE * 1000) == number * 2
    chain = double.message(5) | double.message() | add.message(1)
    assert chain.run().get_result(block=True, timeout=PATIENCE * 1000) == 21
    group = dramatiq.group([double.message(number) for number in range(50)])
    group.add_completion_callback(notice.message("group"))
    group.run()
    assert list(group.get_results(block=True, timeout=PATIENCE * 1000)) == [2 * n for n in range(50)]
    until(lambda: CONNECTION.lrange("noticed", 0, -1) == [b"group"], "the call behind the group")
    worker.stop()


def delays():
    worker = here()
    for number in range(100):
        delay = number * 37 % 1000
        due.send_with_options(args=(time.time() + delay / 1000,), delay=delay)
    until(lambda: CONNECTION.zcard("late") == 100, "the last message")
    worker.stop()
    early = CONNECTION.zrange("late", 0, 0, withscores=True)[0][1]
    assert early >= -0.01, f"a message came {-early} s too early"


def limits():
    several = ConcurrentRateLimiter(LIMITS, "several", limit=3, ttl=10_000)
    with several.acquire(), several.acquire(), several.acquire():
        with several.acquire(raise_on_failure=False) as acquired:
            assert not acquired, "a fourth one"
    with several.acquire(raise_on_failure=False) as acquired:
        assert acquired, "one after the others"
    bucket = BucketRateLimiter(LIMITS, "bucket", limit=5, bucket=60_000)
    window = WindowRateLimiter(LIMITS, "window", limit=5, window=60)
    for limiter in (bucket, window):
        taken = 0
        for _ in range(12):
            with limiter.acquire(raise_on_failure=False) as acquired:
                taken += acquired
        # A minute may begin in between.
        assert taken in (5, 10), f"{taken} of {limiter.key}"


FLOWS = [jobs, results, delays, limits]


def main():
    if sys.argv[2:3] == ["--worker"]:
        return work()
    failed = False
    for flow in FLOWS:
        if sys.argv[2:] and flow.__name__ not in sys.argv[2:]:
            continue
        CONNECTION.flushall()
        start = time.monotonic()
        try:
            flow()
            print(f"{flow.__name__}: {time.monotonic() - start:.1f} s")
        except Exception:
            traceback.print_exc()
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
