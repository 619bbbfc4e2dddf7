"""rq on the server: jobs with retries, dependencies, schedules and a bound on how many run at once, and
workers in processes of their own, one of which is killed.

usage: python rq_jobs.py PORT [NAME...]

What fails is reported with its trace, and the exit code says whether anything did.
"""

import logging
import os
import subprocess
import sys
import time
import traceback
from datetime import timedelta

import redis
from rq import Queue, Retry, SimpleWorker, Worker
from rq.intermediate_queue import IntermediateQueue
from rq.job import Dependency, Job
from rq.rate_limit import RateLimit
from rq.registry import StartedJobRegistry
from rq.scheduler import RQScheduler

# Workers find the functions below by the name of this file.
PORT = int(os.environ.get("APPS_PORT") or sys.argv[1])
# How long anything may take.
PATIENCE = 60
JOBS = 1000


def connect():
    return redis.Redis(port=PORT)


CONNECTION = connect()
# Jobs that fail are meant to.
logging.disable(logging.CRITICAL)


def count(number, failures=0):
    """A job that fails so often before it succeeds."""
    times = CONNECTION.hincrby("ran", number, 1)
    time.sleep(0.001)
    if times <= failures:
        raise ValueError("not yet")
    return number * 2


def hold(seconds):
    """A job during which its worker is killed."""
    if CONNECTION.incr("held") == 1:
        time.sleep(seconds)
    return "done"


def note(name):
    CONNECTION.rpush("order", name)
    return name


def overlap(key):
    """A job that finds out how many of its kind run at once."""
    running = CONNECTION.incr(f"{key}:running")
    most = CONNECTION.zadd(f"{key}:most", {"most": running}, gt=True)
    time.sleep(0.01)
    CONNECTION.decr(f"{key}:running")
    return most


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} does not happen"
        time.sleep(0.02)


def start_worker(queue, kind="simple"):
    environment = {**os.environ, "APPS_PORT": str(PORT), "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    return subprocess.Popen([sys.executable, __file__, str(PORT), "--worker", kind, queue], env=environment)


def work(kind, queue):
    worker = (SimpleWorker if kind == "simple" else Worker)([queue], connection=connect())
    worker.work()


def kill(*workers):
    for worker in workers:
        worker.kill()
        worker.wait()


def jobs(connection):
    queue = Queue("jobs", connection=connection)
    failures = [1 + number % 2 if number % 9 == 0 else 0 for number in range(JOBS)]
    Queue.enqueue_many(
        queue,
        [
            Queue.prepare_data("rq_jobs.count", (number, failures[number]), retry=Retry(max=3), result_ttl=500)
            for number in range(JOBS)
        ],
    )
    workers = [start_worker("jobs"), start_worker("jobs")]
    until(lambda: queue.finished_job_registry.count > JOBS // 4, "a quarter")
    kill(workers[0])
    workers[0] = start_worker("jobs")
    until(lambda: queue.count == 0 and queue.finished_job_registry.count >= JOBS - 1, "the last job")
    # What the killed worker had begun is found when its time is over: all the same as it went on.
    until(lambda: stays_idle(queue), "the end of what runs")
    # Nobody works meanwhile: a job that a worker has just taken looks like one that was lost.
    kill(*workers)
    # A job that was registered and not begun is among what was taken only when it is out of the registry.
    StartedJobRegistry("jobs", connection=connection).cleanup(timestamp=time.time() + 10_000)
    queue_again_what_was_taken(queue, connection)
    worker = start_worker("jobs")
    until(lambda: queue.finished_job_registry.count == JOBS, "the job that was lost")
    kill(worker)
    ran = {int(number): int(times) for number, times in connection.hgetall("ran").items()}
    again = 0
    for number in range(JOBS):
        assert ran[number] > failures[number], f"job {number} ran {ran[number]} times"
        again += ran[number] - failures[number] - 1
    assert again <= 1, f"{again} jobs ran again, though one was lost"
    assert queue.failed_job_registry.count == 0
    job = Job.fetch(queue.finished_job_registry.get_job_ids()[0], connection=connection)
    assert job.return_value() == job.args[0] * 2


def queue_again_what_was_taken(queue, connection):
    """What a worker had taken from the queue, and not begun, when it was killed. rq waits a minute
    for that from when it first sees it: it is told that it saw it long ago."""
    taken = IntermediateQueue(queue.key, connection)
    for job in taken.get_job_ids():
        connection.set(taken.get_first_seen_key(job), time.time() - 3600)
    taken.cleanup(SimpleWorker([queue], connection=connection), queue)


def stays_idle(queue):
    """Whether no worker that lives begins anything for as long as a job takes, many times over:
    between taking a job and beginning it, a worker looks as if it had none."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if queue.count or any_running(queue):
            return False
        time.sleep(0.01)
    return True


def any_running(queue):
    """Whether a worker that lives is at work."""
    return any(worker.get_state() == "busy" and is_alive(worker) for worker in Worker.all(queue=queue))


def is_alive(worker):
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return False
    return True


def lost(connection):
    queue = Queue("lost", connection=connection)
    job = queue.enqueue("rq_jobs.hold", 60, retry=Retry(max=2))
    worker = start_worker("lost")
    until(lambda: connection.get("held") == b"1", "the start of the job")
    kill(worker)
    assert job.get_status() == "started"
    StartedJobRegistry("lost", connection=connection).cleanup(timestamp=time.time() + 10_000)
    assert job.get_status() == "queued"
    worker = start_worker("lost", "forking")
    until(lambda: job.get_status() == "finished", "the second try")
    kill(worker)
    assert job.return_value() == "done"


def order(connection):
    queue = Queue("order", connection=connection)
    first = queue.enqueue("rq_jobs.note", "first")
    second = queue.enqueue("rq_jobs.note", "second", depends_on=first)
    queue.enqueue("rq_jobs.note", "last", depends_on=Dependency(jobs=[first, second]))
    queue.enqueue("rq_jobs.note", "front", at_front=True)
    failing = queue.enqueue("rq_jobs.count", "failing", 9)
    never = queue.enqueue("rq_jobs.note", "never", depends_on=failing)
    SimpleWorker([queue], connection=connection).work(burst=True)
    assert connection.lrange("order", 0, -1) == [b"front", b"first", b"second", b"last"]
    assert failing.get_status() == "failed" and never.get_status() == "deferred"
    assert queue.failed_job_registry.get_job_ids() == [failing.id]


def delays(connection):
    queue = Queue("delays", connection=connection)
    due = [queue.enqueue_in(timedelta(seconds=1), "rq_jobs.note", str(number)) for number in range(50)]
    far = queue.enqueue_in(timedelta(hours=1), "rq_jobs.note", "far")
    scheduler = RQScheduler([queue], connection=connection, interval=1)
    scheduler.acquire_locks()
    until(lambda: scheduler.enqueue_scheduled_jobs() or queue.count == 50, "the time of the jobs")
    SimpleWorker([queue], connection=connection).work(burst=True)
    assert all(job.get_status(refresh=True) == "finished" for job in due)
    assert queue.scheduled_job_registry.get_job_ids() == [far.id]


def limits(connection):
    queue = Queue("limits", connection=connection)
    limit = RateLimit("limited", 2)
    for _ in range(60):
        queue.enqueue("rq_jobs.overlap", "limited", rate_limit=limit)
    workers = [start_worker("limits") for _ in range(4)]
    until(lambda: queue.finished_job_registry.count == 60, "the last job")
    kill(*workers)
    assert connection.zscore("limited:most", "most") <= 2


def unique(connection):
    queue = Queue("unique", connection=connection)
    for _ in range(3):
        try:
            queue.enqueue("rq_jobs.note", "once", job_id="the-one", unique=True)
        except Exception as error:
            assert "the-one" in str(error), error
    SimpleWorker([queue], connection=connection).work(burst=True)
    assert connection.lrange("order", 0, -1) == [b"once"]


FLOWS = [jobs, lost, order, delays, limits, unique]


def main():
    if sys.argv[2:3] == ["--worker"]:
        return work(*sys.argv[3:])
    failed = False
    for flow in FLOWS:
        if sys.argv[2:] and flow.__name__ not in sys.argv[2:]:
            continue
        CONNECTION.flushall()
        start = time.monotonic()
        try:
            flow(CONNECTION)
            print(f"{flow.__name__}: {time.monotonic() - start:.1f} s")
        except Exception:
            traceback.print_exc()
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
