"""A job queue on a stream: jobs outlive their workers, are tried again, and end as dead letters if they cannot be done.

    python3 jobs.py add TASK ARGUMENT      adds a job, and prints its id
    python3 jobs.py work NAME              works until it is stopped; start as many as you like
    python3 jobs.py show                   prints what is done, what waits, and what has failed for good

PORT is the server's port (6379), LEASE_MS how long a worker may be silent before others take its job (5000).
"""

import os
import sys
import threading
import time

import redis

JOBS, DONE, DEAD = "{jobs}", "{jobs}:done", "{jobs}:dead"
GROUP = "workers"
LEASE_MS = int(os.environ.get("LEASE_MS", "5000"))
MOST_TRIES = 3

# Says that a job is being worked on, if this worker still has it. JUSTID counts no try.
KEEP = """
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)
if #pending == 1 and pending[1][2] == ARGV[3] then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[2], 'JUSTID')
end
"""

# Ends a job if this worker still has it. A worker that was silent for too long has lost it to another one, and
# must not report it too. The result, the end of the job and the check are one step.
END = """
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)
if #pending == 0 or pending[1][2] ~= ARGV[3] then return 0 end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('XADD', KEYS[2], '*', 'job', ARGV[2], unpack(ARGV, 4))
return 1
"""


def square(argument):
    return int(argument) ** 2


def wait(argument):
    time.sleep(float(argument))
    return argument


# What jobs may ask for. A job may be done twice if its worker dies just before the end, so a task that changes
# something elsewhere must bear that, for example by the job's id.
TASKS = {"square": square, "wait": wait}


class Worker:
    def __init__(self, server, name):
        self.server, self.name = server, name
        self.end = server.register_script(END)
        self.still = server.register_script(KEEP)
        self.current = None
        threading.Thread(target=self.keep, daemon=True).start()

    def keep(self):
        while True:
            time.sleep(LEASE_MS / 3000)
            job = self.current
            if job:
                try:
                    self.still(keys=[JOBS], args=[GROUP, job, self.name])
                except redis.RedisError:
                    pass  # The next time, or another worker takes the job.

    def next(self):
        """Returns a job that a worker has left behind or failed to do, or else a new one, with its number of tries."""
        cursor = None
        while cursor != "0-0":
            # A call looks at a few jobs that are being done, and says where to go on.
            cursor, left, _ = self.server.xautoclaim(JOBS, GROUP, self.name, LEASE_MS, cursor or "0-0", count=1)
            for job, fields in left:
                pending = self.server.xpending_range(JOBS, GROUP, job, job, 1)
                return job, fields, pending[0]["times_delivered"] if pending else 1
        for _, new in self.server.xreadgroup(GROUP, self.name, {JOBS: ">"}, count=1, block=LEASE_MS):
            for job, fields in new:
                return job, fields, 1
        return None

    def do(self, job, fields, tries):
        if tries > MOST_TRIES:
            return self.close(job, DEAD, fields, "why", "its workers died")
        try:
            self.current = job
            result = TASKS[fields["task"]](fields["argument"])
        except Exception as error:
            if tries == MOST_TRIES:
                self.close(job, DEAD, fields, "why", repr(error))
            # Otherwise it stays pending, and is tried again after LEASE_MS.
            return
        finally:
            self.current = None
        self.close(job, DONE, fields, "result", result)

    def close(self, job, where, fields, name, value):
        values = [word for pair in fields.items() for word in pair]
        self.end(keys=[JOBS, where], args=[GROUP, job, self.name, *values, name, value, "worker", self.name])

    def work(self):
        while True:
            try:
                job = self.next()
                if job:
                    self.do(*job)
            except redis.ConnectionError:
                time.sleep(0.2)  # The server is away; the job stays pending there.


def connect():
    server = redis.Redis(port=int(os.environ.get("PORT", "6379")), decode_responses=True)
    try:
        server.xgroup_create(JOBS, GROUP, id="0", mkstream=True)
    except redis.ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):
            raise
    return server


def main(action, *arguments):
    server = connect()
    if action == "add":
        print(server.xadd(JOBS, {"task": arguments[0], "argument": arguments[1]}))
    elif action == "work":
        Worker(server, arguments[0]).work()
    else:
        for _, fields in server.xrange(DONE):
            print("done", fields["task"], fields["argument"], fields["result"])
        print("waiting", server.xlen(JOBS))
        for _, fields in server.xrange(DEAD):
            print("dead", fields["task"], fields["argument"], fields["why"])


if __name__ == "__main__":
    try:
        main(*(sys.argv[1:] or ["show"]))
    except KeyboardInterrupt:
        pass
