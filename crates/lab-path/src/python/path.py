"""From a tick to an order in Python, with a bus before and after the strategy; each part is a process of its own.

feed ── ticks ──> strategy ── orders ──> venue

Ticks and orders are JSON, as people send them. What carries them is a module of its own, `path_redis_py.py` or
`path_tickpath.py`; all else is the same. Stamps are nanoseconds of the monotonic clock, which all processes of a host share.
"""

import json
import os
import sys
import time
from array import array
from importlib import import_module

sys.path.append(os.path.dirname(__file__))

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
library = import_module(settings["library"])
os.sched_setaffinity(0, {settings["cpu"]})
COUNT: int = settings["count"]
TICKS: str = settings["name"] + ":ticks"
ORDERS: str = settings["name"] + ":orders"

# How long before a tick's time the feed stops sleeping: longer than a timer wakes late.
SPIN_NS = 200_000


def tell(what) -> None:
    print(json.dumps(what), flush=True)


def save(rows: array, reconnects: int) -> None:
    with open(settings["out"], "wb") as file:
        rows.tofile(file)
    tell({"result": reconnects})


def feed(bus) -> None:
    """Publishes each tick at its intended time, however late the one before was."""
    publish = bus.publisher(TICKS)
    tell("ready")
    sys.stdin.readline()
    interval_ns = 1_000_000_000 // settings["rate"]
    start = time.monotonic_ns() + 10_000_000
    rows = array("Q")
    for number in range(COUNT):
        intended = start + number * interval_ns
        left = intended - time.monotonic_ns()
        if left > SPIN_NS:
            time.sleep((left - SPIN_NS) / 1e9)
        while time.monotonic_ns() < intended:
            pass
        called = time.monotonic_ns()
        publish(json.dumps({"number": number, "intended": intended, "bid": 64_000.5, "ask": 64_000.6}))
        rows.extend((intended, called))
    save(rows, bus.reconnects())


def strategy(bus) -> None:
    """Buys at the ask, each time."""
    ticks = bus.messages(TICKS)
    publish = bus.publisher(ORDERS)
    tell("ready")
    rows = array("Q")
    for data in ticks:
        tick = json.loads(data)
        seen = time.monotonic_ns()
        order = {"number": tick["number"], "side": "buy", "price": tick["ask"], "quantity": 1}
        publish(json.dumps(order))
        rows.extend((tick["number"], tick["intended"], seen, time.monotonic_ns()))
        if tick["number"] == COUNT - 1:
            break
    save(rows, bus.reconnects())


def venue(bus) -> None:
    orders = bus.messages(ORDERS)
    tell("ready")
    rows = array("Q")
    for data in orders:
        number = json.loads(data)["number"]
        rows.extend((number, time.monotonic_ns()))
        if number == COUNT - 1:
            break
    save(rows, bus.reconnects())


try:
    play = {"feed": feed, "strategy": strategy, "venue": venue}[settings["role"]]
    play(library.Bus(settings["url"]))
except library.Error as error:
    tell({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
