"""Locks of redis-py, and of pottery, which keeps its own on three servers that know nothing of each other.

usage: python locks.py PORT PORT PORT
"""

import sys
import threading
import time
import traceback

import redis
from pottery import NextID, Redlock
from pottery.exceptions import QuorumNotAchieved
from redis.exceptions import LockError, LockNotOwnedError

PORTS = [int(port) for port in sys.argv[1:]]
CLIENTS, TURNS = 6, 20


def clients():
    return {redis.Redis(port=port) for port in PORTS}


def sums(name, make_lock):
    """A sum that is read, and written some time later, is right only if nobody comes in between."""
    connection = redis.Redis(port=PORTS[0])
    connection.set(name, 0)
    failures = []

    def run():
        try:
            lock = make_lock()
            for _ in range(TURNS):
                with lock:
                    value = int(connection.get(name))
                    time.sleep(0.001)
                    connection.set(name, value + 1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert int(connection.get(name)) == CLIENTS * TURNS


def redis_py_sums():
    sums("redis-py", lambda: redis.Redis(port=PORTS[0]).lock("locks:redis-py", timeout=10, sleep=0.005))


def redis_py_times():
    connection = redis.Redis(port=PORTS[0])
    lock = connection.lock("locks:times", timeout=10)
    assert lock.acquire(blocking=False)
    other = connection.lock("locks:times", timeout=10)
    assert not other.acquire(blocking=False)
    assert not other.acquire(blocking_timeout=0.05)
    lock.extend(5)
    assert 10_000 < connection.pttl("locks:times") <= 15_000
    lock.reacquire()
    assert connection.pttl("locks:times") <= 10_000
    connection.pexpire("locks:times", 50)
    time.sleep(0.1)
    assert other.acquire(blocking=False)
    for late in (lock.release, lock.reacquire):
        try:
            late()
            raise AssertionError("it is another's")
        except (LockNotOwnedError, LockError):
            pass
    other.release()
    assert not other.locked()


def pottery_sums():
    sums("pottery", lambda: Redlock(key="sum", masters=clients(), auto_release_time=10))


def pottery_times():
    # It waits, since what takes a slow client longer than the lock lasts is no lock yet.
    lock = Redlock(key="times", masters=clients(), auto_release_time=10)
    assert lock.acquire()
    assert not Redlock(key="times", masters=clients()).acquire(blocking=False)
    assert 0 < lock.locked() <= 10
    lock.extend()
    lock.release()
    assert not lock.locked()
    other = Redlock(key="times", masters=clients(), auto_release_time=0.2)
    assert other.acquire()
    time.sleep(0.25)
    assert lock.acquire()
    lock.release()


def pottery_numbers():
    """Numbers of which no two are the same, agreed upon by a majority."""
    given = []

    def run():
        numbers = NextID(key="numbers", masters=clients())
        while len(given) < 90:
            try:
                given.append(next(numbers))
            except QuorumNotAchieved:
                pass  # Another came in between.

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) >= 90


def main():
    failed = False
    for flow in [redis_py_sums, redis_py_times, pottery_sums, pottery_times, pottery_numbers]:
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
