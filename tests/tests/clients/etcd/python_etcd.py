"""Uses a tree on and on through python-etcd, with the client that it began with.

usage: python_etcd.py ROLE NAME PORTS     (of the members, with commas between them)

It prints what was acknowledged, or heard:

count   counts in /counter by compare-and-swap: `count VALUE INDEX`
queue   adds keys in order below /queue: `queue KEY INDEX`
lock    takes a lock and gives it back: `lock SEQUENCE`; fails if somebody else has it too
watch   hears of /counter from the first event on: `watch VALUE INDEX`

It ends with its standard input, and fails when the tree's index goes back.
"""

import itertools
import logging
import os
import sys
import threading
import time

import etcd

logging.disable(logging.CRITICAL)
role, name, ports = sys.argv[1:]
members = tuple(("127.0.0.1", int(port)) for port in ports.split(","))
client = etcd.Client(host=members, allow_reconnect=True, read_timeout=20)
newest = 0


def end():
    sys.stdin.read()
    # A watch does not end by itself.
    os._exit(0)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def fail(reason):
    print(reason, file=sys.stderr, flush=True)
    os._exit(1)


def checked(result):
    """The answer, whose index of the tree is none from before."""
    global newest
    if result.etcd_index < newest:
        fail(f"the index was {newest} and is {result.etcd_index}")
    newest = result.etcd_index
    return result


def count():
    before = checked(client.read("/counter"))
    value = int(before.value.split()[0]) + 1
    try:
        done = client.write("/counter", f"{value} {name}", prevIndex=before.modifiedIndex)
    except etcd.EtcdCompareFailed:
        return
    say("count", value, checked(done).modifiedIndex)


def queue(number):
    done = checked(client.write("/queue", f"{name} {number}", append=True))
    say("queue", done.key, done.modifiedIndex)


def lock():
    own = etcd.Lock(client, "shared")
    # When the answer to a request for it is lost, the lock is nobody's until that time is over. It
    # is asked for again and again, since this library waits for ever when what it waits for is
    # older than a thousand other events.
    while not own.acquire(blocking=False, lock_ttl=20):
        time.sleep(0.02)
    try:
        client.write("/holder", own.uuid, prevExist=False)
    except etcd.EtcdAlreadyExist:
        # The answer to the first try may have been lost.
        holder = client.read("/holder").value
        if holder != own.uuid:
            fail(f"{holder} has the lock of {own.uuid}")
    insist(lambda: client.delete("/holder"))
    sequence = own._sequence
    insist(own.release)
    say("lock", sequence)


def insist(act):
    while True:
        try:
            return act()
        except etcd.EtcdKeyNotFound:
            return None
        except Exception as error:
            complain(error)


def complain(error):
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    time.sleep(0.05)


threading.Thread(target=end, daemon=True).start()
since = 1
for number in itertools.count(1):
    try:
        if role == "watch":
            event = client.watch("/counter", index=since)
            since = event.modifiedIndex + 1
            say("watch", event.value.split()[0], event.modifiedIndex)
        elif role == "count":
            count()
        elif role == "queue":
            queue(number)
        else:
            lock()
    except etcd.EtcdEventIndexCleared as error:
        fail(error)
    except Exception as error:
        complain(error)
    if role != "watch":
        time.sleep(0.005)
