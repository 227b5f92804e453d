"""The two processes of pubsub in Python: a publisher and a subscriber of a topic.

What the library does that carries it is a module of its own, `pubsub_tickpath.py` or `pubsub_redis_py.py`. Stamps are
nanoseconds of the monotonic clock. docs/clients.md says how a process of a bench speaks.
"""

import json
import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable
from importlib import import_module
from struct import Struct
from time import monotonic_ns as now

sys.path.append(os.path.dirname(__file__))

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
library = import_module(settings["library"])
COUNT: int = settings["count"]
WAIT: str = settings["thread"]["wait"]

# How a payload begins: when it was sent, and its number. A row: when it was meant to be sent, when it was, and when the
# call was back, or when it had come.
WORDS = Struct("<QQ")
ROW = Struct("<QQQ")

# How long before its time a message is waited for by nothing but looking at the clock, and how long before it a sleep ends:
# a timer wakes late.
SPIN_NS = 20_000
SLEEP_MARGIN_NS = 200_000
# How late a message may be, if its interval is not longer.
GRACE_NS = 10_000
# How often, and how far apart in seconds, nothing is to have come behind the publisher's end before nothing comes any more.
LOOKS = 20
LOOK_S = 0.5


def main() -> None:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        {"publisher": publisher, "subscriber": subscriber}[settings["role"]]()
    except library.Error as error:
        tell({"error": library.sentence(error)})
        sys.exit(1)


def publisher() -> None:
    if settings["arrivals"] != "Steady":
        tell({"error": "a Python client sends at equal distances only; leave --arrivals out"})
        sys.exit(1)
    rate = settings["rate"]
    topic = library.Publisher(settings)
    settle()
    rows = touched(COUNT if rate else 0)
    tell("ready")
    if not sys.stdin.readline():
        return
    result = paced(topic.sends(), rate, rows) if rate else flood(topic)
    save(rows, len(rows))
    tell({"result": {"sent": COUNT, "reconnects": topic.reconnects(), **result}})


def paced(send: Callable[[int, bytes], int], rate: float, rows: bytearray) -> dict:
    """One message at each intended time. A row each, which is written when the call is back."""
    begin, keep, rest = WORDS.pack, ROW.pack_into, bytes(settings["size"] - WORDS.size)
    refused = place = 0
    first = now() + 1_000_000
    for number in range(COUNT):
        intended = first + int(number * 1e9 / rate)
        actual = until(intended)
        refused += send(intended, begin(actual, number) + rest)
        keep(rows, place, intended, actual, now())
        place += ROW.size
    return {"refused": refused, "first": first, **punctuality(rows, first, rate)}


def until(intended: int) -> int:
    """Waits for a time as the process was told to; gives what it is then, never before."""
    while (left := intended - now()) > SPIN_NS:
        if WAIT in ("block", "adaptive") and left > SLEEP_MARGIN_NS:
            time.sleep((left - SLEEP_MARGIN_NS) / 1e9)
        elif WAIT != "busy":
            os.sched_yield()
    while (at := now()) < intended:
        pass
    return at


def punctuality(rows: bytearray, first: int, rate: float) -> dict:
    """How the plan was kept: a send is late for which the call before it was not to blame."""
    own, free = array("q"), first
    for intended, actual, done in ROW.iter_unpack(rows):
        own.append(actual - max(intended, free))
        free = done
    late = sum(ns > max(GRACE_NS, 1e9 / rate) for ns in own)
    p99 = sorted(own)[len(own) * 99 // 100]
    return {
        "last": actual,
        "planned_ns": intended - first,
        "late_share": late / COUNT,
        "own_p99_ns": min(p99, 2**32 - 1),
    }


def flood(topic) -> dict:
    """As fast as it goes, in batches that share a stamp."""
    send, send_batch, begin = topic.sends(), topic.send_batch, WORDS.pack
    batch, rest = settings["batch"], bytes(settings["size"] - WORDS.size)
    refused = 0
    first = now()
    for sent in range(0, COUNT, batch):
        stamp = now()
        payloads = [begin(stamp, number) + rest for number in range(sent, min(sent + batch, COUNT))]
        refused += send(stamp, payloads[0]) if len(payloads) == 1 else send_batch(stamp, payloads)
    return {"refused": refused, "first": first, "last": now(), "planned_ns": 0, "late_share": 0, "own_p99_ns": 0}


class Over(BaseException):
    """Nothing comes any more. No library takes it for an error of its own."""


class Seen:
    """What has come: rows of what is stamped, and the numbers."""

    def __init__(self) -> None:
        # Messages that are still to come.
        self.left = COUNT
        self.rows = touched(COUNT if settings["stamps"] else 0)
        self.place = 0
        # When something came last.
        self.last = 0
        self.received = self.reordered = self.duplicated = self.next = 0
        # Numbers that were passed over and may still come late.
        self.passed_over: set[int] = set()
        self.looks = self.looked_at = 0

    def came(self, intended: int, payload: bytes, at: int) -> None:
        """A message that is stamped."""
        actual, number = WORDS.unpack_from(payload)
        ROW.pack_into(self.rows, self.place, intended, actual, at)
        self.place += ROW.size
        self.last = at
        self.count(number)

    def counted(self, payload: bytes) -> None:
        """One that is only counted."""
        self.count(WORDS.unpack_from(payload)[1])

    def missed(self, missed: int) -> None:
        """Messages that will not come."""
        self.next += missed
        self.left -= missed

    def count(self, number: int) -> None:
        self.received += 1
        if number == self.next:
            self.next += 1
            self.left -= 1
        elif number > self.next:
            self.passed_over.update(range(self.next, number))
            self.next = number + 1
            self.left -= 1
        elif number in self.passed_over:
            self.passed_over.remove(number)
            self.reordered += 1
            self.left -= 1
        else:
            self.duplicated += 1
            # Its row had the place of one that is still to come.
            self.rows.extend(bytes(ROW.size))

    def look(self, *_signal) -> None:
        """Looks whether something has come since the last look. Looks are counted, and not the time: a process that was held
        up has not looked in it."""
        self.looks = self.looks + 1 if self.received == self.looked_at else 0
        self.looked_at = self.received
        if self.looks > LOOKS:
            raise Over


def subscriber() -> None:
    seen = Seen()
    topic = library.Subscriber(settings)
    settle()
    signal.signal(signal.SIGALRM, seen.look)
    threading.Thread(target=listen, daemon=True).start()
    used_ns = time.process_time_ns()
    tell("ready")
    try:
        topic.stamped(seen) if settings["stamps"] else topic.counted(seen)
    except Over:
        pass
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    used_ns = time.process_time_ns() - used_ns
    save(seen.rows, seen.place)
    duplicates, late = topic.withheld()
    seen.received += duplicates + late
    seen.duplicated += duplicates
    seen.reordered += late
    counts = {name: getattr(seen, name) for name in ("received", "reordered", "duplicated", "last")}
    tell({"result": {**counts, "reconnects": topic.reconnects(), "cpu_ns": used_ns}})


def listen() -> None:
    """Any word says that the publisher has ended; the end of all words, that the bench is gone, or has all."""
    while os.read(sys.stdin.fileno(), 4096):
        signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)
    os._exit(0)


def settle() -> None:
    cpu = settings["thread"]["cpu"]
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def touched(rows: int) -> bytearray:
    """Room for rows whose pages are there already: a page fault between two stamps would be ours."""
    return bytearray(b"\1") * (rows * ROW.size)


def save(rows: bytearray, end: int) -> None:
    with open(settings["out"], "wb") as file:
        file.write(memoryview(rows)[:end])


def tell(what) -> None:
    print(json.dumps(what), flush=True)


main()
