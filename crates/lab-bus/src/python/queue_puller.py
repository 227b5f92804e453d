"""Pulls JSON records from a Redis list, and does not decode them.

One process. It says "ready" when it is connected, waits for "go", and pulls until its share has come or nothing comes
any more. It writes down when each call that gave something began and returned, how many records it gave, and their
numbers.
"""

import os
import sys
import threading
import time
from array import array

sys.path.append(os.path.dirname(__file__))
from queue_end import connect, sentence, settings, tell
from reconnects import reconnects

import redis

LIST: str = settings["queue"]
# Records that a call asks for.
LIMIT: int = settings["limit"]
# Records that will come; none if others may get them.
SHARE: int | None = settings["share"]
# How long to wait for more when the pusher has ended.
PATIENCE_NS: int = settings["patience_ns"]

# How long a pop sleeps, in seconds.
SLEEP_S = 1
# What stands for the number of a record that has none.
FOREIGN = 2**64 - 1


def main() -> None:
    client = connect("pulling")
    tell("ready")
    if not sys.stdin.readline():
        return
    pusher_ended = threading.Event()
    listener = threading.Thread(target=listen, args=(pusher_ended,), daemon=True)
    listener.start()
    # Of each call: when it began and returned, nanoseconds of the monotonic clock, and how many records it gave.
    calls = array("Q")
    # The ends of the records in which the numbers stand.
    heads: list[bytes] = []
    failed = None
    try:
        pull_all(client, pusher_ended, calls, heads)
    except redis.RedisError as error:
        failed = sentence("pulling", error)
    with open(settings["out"], "wb") as file:
        calls.tofile(file)
    with open(settings["numbers"], "wb") as file:
        array("Q", map(number, heads)).tofile(file)
    tell({"result": {"redelivered": 0, "reconnects": reconnects(), "failed": failed}})
    # Until it is told to stop.
    listener.join()
    client.close()
    tell({"result": None})


def pull_all(client: redis.Redis, pusher_ended: threading.Event, calls: array, heads: list[bytes]) -> None:
    pull = {"published": published, "brpop": brpop, "count": by_count}[settings["variant"]]
    quiet_since = None
    while SHARE is None or len(heads) < SHARE:
        called = time.monotonic_ns()
        records = pull(client)
        returned = time.monotonic_ns()
        if records:
            calls.extend((called, returned, len(records)))
            heads.extend(record[8:18] for record in records)
            quiet_since = None
        elif pusher_ended.is_set():
            quiet_since = quiet_since or called
            # A pull that began when it was over already: one that was held up has not looked in all that time.
            if called - quiet_since > PATIENCE_NS:
                break


def published(client: redis.Redis) -> list[bytes]:
    """As the published experiment does: a pop that sleeps, and for each record a second round trip."""
    found = brpop(client)
    if found:
        client.get(LIST + ":published")
    return found


def brpop(client: redis.Redis) -> list[bytes]:
    """A pop that sleeps: one round trip a record."""
    found = client.brpop(LIST, timeout=SLEEP_S)
    return [found[1]] if found else []


def by_count(client: redis.Redis) -> list[bytes]:
    """One round trip for many records; where there are none, a pop that sleeps."""
    return client.rpop(LIST, LIMIT) or brpop(client)


def number(head: bytes) -> int:
    return int(head) if len(head) == 10 and head.isdigit() else FOREIGN


def listen(pusher_ended: threading.Event) -> None:
    """Any word says that the pusher has ended; the end of all words, that this process may stop."""
    for _ in sys.stdin:
        pusher_ended.set()
    pusher_ended.set()


main()
