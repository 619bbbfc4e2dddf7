"""Follows the change stream of Dunlin into a table of SQLite, and goes on after any restart where it was: no change is
lost, and none takes effect twice.

    python3 consumer.py FILE [PREFIX]      follows until it is stopped (PREFIX is "order:" unless given)
    python3 consumer.py FILE --show        prints the table, and how many changes made it

HTTP_PORT is the server's port for HTTP (8379). It takes no package.
"""

import http.client
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = f"http://127.0.0.1:{os.environ.get('HTTP_PORT', '8379')}"
# A stream says something every ten seconds; a connection that is silent for longer is dead.
SILENCE = 30

TABLES = """
CREATE TABLE IF NOT EXISTS copy (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS effects (number INTEGER PRIMARY KEY, op TEXT, key TEXT, value TEXT);
CREATE TABLE IF NOT EXISTS position (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT);
"""


class Consumer:
    def __init__(self, file, prefix):
        self.table, self.prefix = sqlite3.connect(file, isolation_level=None), prefix
        self.table.executescript(TABLES)

    def position(self):
        row = self.table.execute("SELECT text FROM position").fetchone()
        return row and row[0]

    def forget(self):
        """From now on all keys are read anew."""
        self.table.execute("DELETE FROM position")

    def commit(self, changes, position):
        """The effects and the position are one transaction of the table. So after a crash both are there, or neither."""
        self.table.execute("BEGIN IMMEDIATE")
        try:
            for change in changes:
                self.apply(change)
            self.table.execute("INSERT OR REPLACE INTO position VALUES (0, ?)", (position,))
            self.table.execute("COMMIT")
        except BaseException:
            self.table.execute("ROLLBACK")
            raise

    def apply(self, change):
        """What a change does here. This example keeps a copy, and a list of what it has done."""
        op, key, value = change["op"], change.get("key"), change.get("value")
        if op == "update":
            # A command has changed the value in place, as INCR does: the change has no value, so read it.
            value = read(key)
            op = "delete" if value is None else "set"
        if op == "set":
            self.table.execute("INSERT OR REPLACE INTO copy VALUES (?, ?)", (key, value))
        elif op == "delete":
            self.table.execute("DELETE FROM copy WHERE key = ?", (key,))
        elif op == "flush":
            self.table.execute("DELETE FROM copy")
        self.table.execute("INSERT INTO effects (op, key, value) VALUES (?, ?, ?)", (op, key, value))

    def copy_all(self, position):
        """Begins anew: all keys as they are now. Changes after `position` come on top, those that the keys have already
        once more: they only say again what is there."""
        found, cursor = {}, None
        while True:
            query = {"prefix": self.prefix, "limit": "1000"} | ({"cursor": cursor} if cursor else {})
            page = json.load(ask("/v1/keys?" + urllib.parse.urlencode(query)))
            found.update((key, read(key)) for key in page["keys"])
            cursor = page["cursor"]
            if cursor is None:
                break
        changes = [{"op": "flush"}]
        changes += [{"op": "set", "key": key, "value": value} for key, value in found.items() if value is not None]
        self.commit(changes, position)

    def follow(self):
        """Reads events until the stream ends."""
        since = self.position()
        if since is None:
            # Take the position first and the keys after it, so that nothing falls between the two.
            with ask("/v1/changes?since=$&" + urllib.parse.urlencode({"prefix": self.prefix})) as stream:
                since = next(events(stream))["id"]
            self.copy_all(since)
        query = {"prefix": self.prefix, "db": "0", "since": since}
        with ask("/v1/changes?" + urllib.parse.urlencode(query)) as stream:
            together = []
            for event in events(stream):
                if event.get("event") == "gone":
                    return self.forget()
                if "data" in event:
                    together.append(json.loads(event["data"]))
                # Changes that were made at once (EXEC, MSET) come together, and the last of them has the position.
                if "id" in event:
                    if any(change["op"] == "swap" for change in together):
                        # Another database is in this one's place now.
                        return self.forget()
                    self.commit(together, event["id"])
                    together = []

    def run(self):
        while True:
            try:
                self.follow()
            except urllib.error.HTTPError as refused:
                if refused.code == 410:
                    # The server does not keep the changes since our position any more, or has another history.
                    self.forget()
                elif refused.code < 500:
                    raise
                # Otherwise it loads its data, or is about to stop.
            except (OSError, http.client.HTTPException) as error:
                print(f"trying again: {error!r}", file=sys.stderr)
            time.sleep(0.1)


def ask(path):
    return urllib.request.urlopen(SERVER + path, timeout=SILENCE)


def read(key):
    try:
        with ask("/v1/keys/" + urllib.parse.quote(key, safe="")) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refused:
        if refused.code == 404:
            return None
        raise


def events(stream):
    """The server-sent events of an answer, as dictionaries of their fields."""
    event = {}
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            event[name] = value
        elif event:
            yield event
            event = {}


def main(file, rest="order:"):
    consumer = Consumer(file, rest)
    if rest != "--show":
        return consumer.run()
    for key, value in consumer.table.execute("SELECT key, value FROM copy ORDER BY key"):
        print(key, value)
    print(*consumer.table.execute("SELECT count(*) FROM effects").fetchone(), "effects")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        pass
