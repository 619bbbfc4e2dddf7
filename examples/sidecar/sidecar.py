"""A hosted Redis with a password, which takes encrypted connections only, and readers that each have a Dunlin beside
them: its replica, which answers HTTP.

It needs redis-server (with TLS) and dunlin in the PATH, and `pip install redis`:

    python3 examples/sidecar/sidecar.py [readers]

It starts everything on free ports, shows what readers see, and ends it all when you press Enter.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import redis

PASSWORD = "of the hosted primary"
# How long anything may take, in seconds.
PATIENCE = 60
PRICES = 20


def free_port():
    # Below those that the system gives to other programs meanwhile.
    while True:
        port = random.randrange(20000, 30000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextlib.contextmanager
def process(*command):
    """Runs a server in a directory of its own, and ends it."""
    with tempfile.TemporaryDirectory(prefix="dunlin-sidecar-") as directory:
        server = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
        try:
            yield server
        finally:
            server.terminate()
            server.wait()


def wait_until(what, holds):
    """Returns the seconds until something holds."""
    begin = time.monotonic()
    while True:
        with contextlib.suppress(OSError, redis.ConnectionError):
            if holds():
                return time.monotonic() - begin
        if time.monotonic() - begin > PATIENCE:
            sys.exit(f"{what} does not happen")
        time.sleep(0.0005)


class Reader:
    """A reader and the replica beside it."""

    def __init__(self, stack, primary_port, authority):
        self.port, self.http_port = free_port(), free_port()
        stack.enter_context(
            process(
                *("dunlin", "serve", "--bind", "127.0.0.1", "--port", str(self.port)),
                *("--http-port", str(self.http_port), "--save", ""),
                *("--replicaof", f"127.0.0.1 {primary_port}", "--masterauth", PASSWORD),
                *("--tls-replication", "yes", "--tls-verify-names", "yes", "--tls-ca-cert-file", authority),
            )
        )
        self.replica = redis.Redis(port=self.port, decode_responses=True)

    def is_up(self):
        return self.replica.info("replication")["master_link_status"] == "up"

    def read(self, key):
        """Reads over HTTP from the replica on the same machine."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/v1/keys/{key}") as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            refused.close()
            if refused.code == 404:
                return None
            raise

    def read_after(self, position, key):
        """Reads what the replica has when it has applied all writes up to a position of the primary."""
        with self.replica.client() as connection:
            connection.execute_command("CLIENT", "READAFTER", position, "TIMEOUT", PATIENCE * 1000)
            return connection.get(key)


def position(primary):
    """Returns where the primary's stream of writes is now."""
    seen = primary.info("replication")
    return f"{seen['master_replid']}:{seen['master_repl_offset']}"


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with contextlib.ExitStack() as stack:
        port = free_port()
        certificates = stack.enter_context(tempfile.TemporaryDirectory(prefix="dunlin-sidecar-"))
        subprocess.run(["dunlin", "tls", "dev", certificates], check=True, stdout=subprocess.DEVNULL)
        authority, certificate, key = (
            os.path.join(certificates, name) for name in ("ca.crt", "server.crt", "server.key")
        )
        stack.enter_context(
            process(
                *("redis-server", "--bind", "127.0.0.1", "--port", "0", "--tls-port", str(port), "--save", ""),
                *("--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no"),
                *("--requirepass", PASSWORD, "--repl-diskless-sync-delay", "0"),
            )
        )
        primary = redis.Redis(
            port=port, password=PASSWORD, decode_responses=True, ssl=True, ssl_ca_certs=authority
        )
        wait_until("the primary's start", primary.ping)
        primary.set("tea", "3")
        readers = [Reader(stack, port, authority) for _ in range(count)]
        for number, reader in enumerate(readers, 1):
            wait_until(f"the first copy of reader {number}", reader.is_up)
            print(f"reader {number} reads tea {reader.read('tea')}")
        for number, reader in enumerate(readers, 1):
            primary.set("coffee", str(number))
            own = reader.read_after(position(primary), "coffee")
            print(f"reader {number} reads its own write {own}")
        for number, reader in enumerate(readers, 1):
            longest = 0
            for price in range(PRICES):
                primary.set(f"price-{number}", str(price))
                seen = lambda: reader.read(f"price-{number}") == str(price)
                longest = max(longest, wait_until("a write's arrival", seen))
            print(f"reader {number} has seen {PRICES} writes, each within {longest * 1000:.1f} ms")
        for number, reader in enumerate(readers, 1):
            print(f"reader {number}: curl http://127.0.0.1:{reader.http_port}/v1/keys/tea", file=sys.stderr)
        way = f"redis-cli -p {port} --tls --cacert {authority} -a '{PASSWORD}'"
        print(f"primary: {way}; press Enter to end", file=sys.stderr)
        sys.stdin.readline()


main()
