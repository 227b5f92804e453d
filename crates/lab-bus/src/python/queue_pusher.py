"""Pushes JSON records to Redis lists, one list a puller, in turn.

A call is one LPUSH, or a pipeline of them; making the records and encoding them is a part of it. One process. It says
"ready" when it is connected, waits for "go", pushes, writes when each call began and returned to a file, and tells what
came of it.
"""

import json
import os
import random
import sys
import time
from array import array

sys.path.append(os.path.dirname(__file__))
from queue_end import connect, sentence, settings, tell
from reconnects import reconnects

import redis

LISTS: list[str] = settings["queues"]
COUNT: int = settings["count"]
# Records of a call.
BATCH: int = settings["batch"]
# Whether a call is a transaction: MULTI, the pushes, EXEC.
TRANSACTION: bool = settings["transaction"]
# Whether each push is followed by a trim, to a length at which nothing is lost.
TRIM: bool = settings["variant"] == "push-ltrim"
# Records a second; none for as fast as it goes.
RATE: float | None = settings["rate"]

# How long before its time a call stops sleeping: longer than a timer wakes late.
SPIN_NS = 200_000
# How late a call may be, if its interval is not longer.
GRACE_NS = 10_000

made_up = random.Random(settings["seed"])
SYMBOLS = ("BTC-USD", "ETH-USD", "SOL-USD", "XRP-USD")
TICKS = [(made_up.choice(SYMBOLS), f"{made_up.uniform(10_000, 99_999):.2f}") for _ in range(1_000)]


def main() -> None:
    client = connect("pushing")
    server_version = version_of(client)
    tell("ready")
    if not sys.stdin.readline():
        return
    # When each call began and when it returned, nanoseconds of the monotonic clock.
    calls = array("Q")
    start = time.monotonic_ns() + 1_000_000
    late, failed = 0, None
    try:
        late = push_all(client, start, calls)
    except redis.RedisError as error:
        failed = sentence("pushing", error)
    with open(settings["out"], "wb") as file:
        calls.tofile(file)
    done = len(calls) // 2
    tell({"result": {
        "sent": min(done * BATCH, COUNT),
        "full": 0,
        "start": start,
        "late_share": late / max(done, 1),
        "reconnects": reconnects(),
        "failed": failed,
        "server_version": server_version,
    }})
    # Until it is told to stop.
    sys.stdin.read()
    client.close()
    tell({"result": None})


def push_all(client: redis.Redis, start: int, calls: array) -> int:
    """Pushes all records; gives how many calls came late."""
    pipeline = client.pipeline(transaction=TRANSACTION) if BATCH > 1 or TRANSACTION else None
    late = 0
    for first in range(0, COUNT, BATCH):
        numbers = range(first, min(first + BATCH, COUNT))
        if RATE is not None:
            late += is_late(start + int(numbers[-1] * 1e9 / RATE))
        called = time.monotonic_ns()
        if pipeline is None:
            push(client, first)
        else:
            for number in numbers:
                push(pipeline, number)
            pipeline.execute()
        calls.extend((called, time.monotonic_ns()))
    return late


def push(client: redis.Redis, number: int) -> None:
    """One record, to the client or into a pipeline."""
    name = LISTS[number % len(LISTS)]
    client.lpush(name, json.dumps(record(number)))
    if TRIM:
        client.ltrim(name, 0, COUNT)


def record(number: int) -> dict[str, str | int]:
    symbol, price = TICKS[number % len(TICKS)]
    return {
        "id": f"{number:010}",
        "timestamp": time.time_ns() // 1_000,
        "symbol": symbol,
        "price": price,
        "padding": PADDING,
    }


def is_late(due: int) -> bool:
    """Waits for a time; whether it had passed already."""
    while (left := due - time.monotonic_ns()) > 0:
        if left > SPIN_NS:
            time.sleep((left - SPIN_NS) / 1e9)
    return -left > max(GRACE_NS, BATCH * 1e9 / RATE)


def version_of(client: redis.Redis) -> str | None:
    try:
        return client.info("server").get("redis_version")
    except redis.ResponseError:
        # Not every user may ask.
        return None


PADDING = ""
PADDING = "x" * (settings["size"] - len(json.dumps(record(0))))

main()
