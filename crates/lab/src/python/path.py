"""From a tick to an order in Python, with Redis before and after the strategy; each part is a process of its own.

feed ── ticks ──> strategy ── orders ──> venue

Ticks and orders are JSON, as people send them. Stamps are nanoseconds of the monotonic clock, which all processes of a
host share.
"""

import json
import os
import sys
import time
from array import array

sys.path.append(os.path.dirname(__file__))
from reconnects import connected, reconnects

import redis

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
os.sched_setaffinity(0, {settings["cpu"]})
COUNT: int = settings["count"]
TICKS: str = settings["name"] + ":ticks"
ORDERS: str = settings["name"] + ":orders"

# How long before a tick's time the feed stops sleeping: longer than a timer wakes late.
SPIN_NS = 200_000


def tell(what) -> None:
    print(json.dumps(what), flush=True)


def save(rows: array) -> None:
    with open(settings["out"], "wb") as file:
        rows.tofile(file)
    tell({"result": reconnects()})


def feed(client: redis.Redis) -> None:
    """Publishes each tick at its intended time, however late the one before was."""
    client.ping()
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
        client.publish(TICKS, json.dumps({"number": number, "intended": intended, "bid": 64_000.5, "ask": 64_000.6}))
        rows.extend((intended, called))
    save(rows)


def strategy(client: redis.Redis) -> None:
    """Buys at the ask, each time."""
    ticks = client.pubsub(ignore_subscribe_messages=True)
    ticks.subscribe(TICKS)
    # The first reply is the confirmation: what is published later is not missed.
    ticks.get_message(timeout=5)
    client.ping()
    tell("ready")
    rows = array("Q")
    for message in ticks.listen():
        tick = json.loads(message["data"])
        seen = time.monotonic_ns()
        order = {"number": tick["number"], "side": "buy", "price": tick["ask"], "quantity": 1}
        client.publish(ORDERS, json.dumps(order))
        rows.extend((tick["number"], tick["intended"], seen, time.monotonic_ns()))
        if tick["number"] == COUNT - 1:
            break
    save(rows)


def venue(client: redis.Redis) -> None:
    orders = client.pubsub(ignore_subscribe_messages=True)
    orders.subscribe(ORDERS)
    orders.get_message(timeout=5)
    tell("ready")
    rows = array("Q")
    for message in orders.listen():
        number = json.loads(message["data"])["number"]
        rows.extend((number, time.monotonic_ns()))
        if number == COUNT - 1:
            break
    save(rows)


try:
    play = {"feed": feed, "strategy": strategy, "venue": venue}[settings["role"]]
    play(redis.Redis(port=settings["port"], redis_connect_func=connected))
except redis.RedisError as error:
    tell({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
