"""What schemathesis cannot know of the server: see schemathesis.toml for the rest."""

import schemathesis

# Requests that wait for a key take a second each, so there are few of them.
waits_left = 5


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@schemathesis.hook
def map_query(context, query):
    """Keeps what is right as it is, but for what would make a run long, or its steps forget each other."""
    global waits_left
    if not query:
        return query
    if query.get("wait") == "true":
        waits_left -= 1
        seconds = query.get("timeout", 50)
        if waits_left < 0:
            for name in ("wait", "since", "timeout"):
                query.pop(name, None)
        elif isinstance(seconds, int) and is_number(seconds) and 1 <= seconds <= 3600:
            query["timeout"] = 1
    # What one step stores the next one finds, in the same database, and still there.
    if context.operation.path == "/v1/keys/{key}":
        if isinstance(query.get("db"), int) and is_number(query["db"]) and 0 <= query["db"] <= 15:
            del query["db"]
        if is_number(query.get("ttl")) and 0.001 <= query["ttl"] < 600:
            query["ttl"] = 600
    return query


@schemathesis.hook
def before_call(context, case, kwargs):
    """Leaves out what has no end by itself: a wait for an event of etcd's tree. tests/tests/etcd.rs is about it."""
    if case.operation.path == "/v2/keys/{path}" and case.query:
        case.query.pop("wait", None)
