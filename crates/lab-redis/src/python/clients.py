"""Sets keys, gets them again and compares: what a program without tricks gets out of redis-py.

One process is one client. It says "ready" when everything is imported, waits for "go", connects, works, writes when
each pair began and ended to a file, and tells what came of it.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Iterable

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
CLIENT: str = settings["client"]
URL: str = settings["url"]
KEYS: str = settings["keys"]

# A hundred connections at once take longer than redis-py's five seconds on a busy host; `watch` ends a silent run.
LIMITS = {"socket_timeout": 60, "socket_connect_timeout": 60}

if CLIENT.endswith("-pure"):
    # As if hiredis were not installed: redis-py then writes and reads the protocol in Python.
    sys.modules["hiredis"] = None

import redis
import redis.asyncio

if CLIENT == "redis-py-uvloop":
    import uvloop


def main() -> None:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if settings["cpu"] is not None:
        os.sched_setaffinity(0, {settings["cpu"]})
    tell("ready")
    if not sys.stdin.readline():
        return
    # When each pair began and when it ended, nanoseconds of the monotonic clock.
    samples = array("Q")
    threading.Thread(target=watch, args=(samples, settings["silence_s"]), daemon=True).start()
    try:
        result = work(samples)
        with open(settings["out"], "wb") as file:
            samples.tofile(file)
    except Exception as error:
        what = f"{type(error).__name__}: {error}".rstrip(".")
        tell({"error": f"{what}; look whether the server is still there, and try again"})
        sys.exit(1)
    tell({"result": result})


def work(samples: array) -> dict[str, int]:
    numbers = range(settings["count"])
    match CLIENT:
        case "redis-py" | "redis-py-pure":
            return in_turn(set_get, numbers, samples)
        case "redis-py-pipeline" | "redis-py-pipeline-pure":
            return in_turn(set_get_in_one, numbers, samples)
        case "redis-py-asyncio":
            return asyncio.run(side_by_side(settings["workers"], numbers, samples))
        case "redis-py-uvloop":
            return uvloop.run(side_by_side(settings["workers"], numbers, samples))
    raise ValueError(f"there is no client '{CLIENT}'")


def in_turn(do, numbers: range, samples: array) -> dict[str, int]:
    """One connection, one pair after the other."""
    began = time.monotonic_ns()
    client = redis.Redis.from_url(URL, **LIMITS)
    # The first command connects.
    client.ping()
    connected = time.monotonic_ns()
    mismatched = do(client, numbers, samples)
    ended = time.monotonic_ns()
    client.close()
    return outcome(began, connected, ended, samples, mismatched)


def set_get(client: redis.Redis, numbers: Iterable[int], samples: array) -> int:
    """Two commands, two round trips."""
    mismatched = 0
    began = time.monotonic_ns()
    for number in numbers:
        key, value = f"{KEYS}:{number}", f"value:{number}"
        client.set(key, value)
        found = client.get(key)
        mismatched += found != value.encode()
        ended = time.monotonic_ns()
        samples.extend((began, ended))
        began = ended
    return mismatched


def set_get_in_one(client: redis.Redis, numbers: Iterable[int], samples: array) -> int:
    """Two commands, one round trip."""
    mismatched = 0
    began = time.monotonic_ns()
    for number in numbers:
        key, value = f"{KEYS}:{number}", f"value:{number}"
        # Without MULTI and EXEC: a pipeline saves round trips, a transaction is something else.
        pipeline = client.pipeline(transaction=False)
        pipeline.set(key, value)
        pipeline.get(key)
        _, found = pipeline.execute()
        mismatched += found != value.encode()
        ended = time.monotonic_ns()
        samples.extend((began, ended))
        began = ended
    return mismatched


async def side_by_side(workers: int, numbers: range, samples: array) -> dict[str, int]:
    """Workers that take turns on one thread, each with its connection."""
    began = time.monotonic_ns()
    clients = [redis.asyncio.from_url(URL, **LIMITS) for _ in range(workers)]
    await asyncio.gather(*(client.ping() for client in clients))
    connected = time.monotonic_ns()
    shares = (set_get_async(client, numbers[first::workers], samples) for first, client in enumerate(clients))
    mismatched = sum(await asyncio.gather(*shares))
    ended = time.monotonic_ns()
    await asyncio.gather(*(client.aclose() for client in clients))
    return outcome(began, connected, ended, samples, mismatched)


async def set_get_async(client: redis.asyncio.Redis, numbers: Iterable[int], samples: array) -> int:
    """Two commands, two round trips in which other workers have their turn."""
    mismatched = 0
    began = time.monotonic_ns()
    for number in numbers:
        key, value = f"{KEYS}:{number}", f"value:{number}"
        await client.set(key, value)
        found = await client.get(key)
        mismatched += found != value.encode()
        ended = time.monotonic_ns()
        samples.extend((began, ended))
        began = ended
    return mismatched


def outcome(began: int, connected: int, ended: int, samples: array, mismatched: int) -> dict[str, int]:
    return {
        "connect_ns": connected - began,
        "elapsed_ns": ended - connected,
        "pairs": len(samples) // 2,
        "mismatched": mismatched,
    }


def watch(samples: array, silence_s: float) -> None:
    """Ends the process when no pair has come to its end for so long: a server that hangs must not hang the bench."""
    seen = len(samples)
    while True:
        time.sleep(silence_s)
        if len(samples) == seen:
            tell({"error": f"no answer came within {silence_s:.0f} s; look whether the server hangs, and try again"})
            os._exit(1)
        seen = len(samples)


def tell(what) -> None:
    print(json.dumps(what), flush=True)


main()
