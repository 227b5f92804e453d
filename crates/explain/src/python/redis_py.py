"""A publisher and a subscriber with redis-py, as people write them; each is a process of its own.

It says "ready", is told the server's URL, and says when it is connected. Then each line on standard input is an order:
the publisher publishes so many messages, the subscriber receives until the end of that. Stamps are nanoseconds of the
monotonic clock, which all processes of a host share.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

settings = json.loads(sys.argv[1])
CHANNEL: str = settings["channel"]

# What the publisher says last of an order.
END = "end"

# How long before a message's time the publisher stops sleeping: longer than a timer wakes late.
SPIN_NS = 200_000

if settings["parser"] == "python":
    # As if hiredis were not installed, which `pip install redis` leaves out.
    sys.modules["hiredis"] = None

if settings["hook"] is not None:
    sys.path.insert(0, settings["hook"])
    import tickpath_hook
    import tickpath_rows

    tickpath_hook.watch()

import redis

# Messages so far; a thread looks whether it grows.
progress = 0


def main() -> None:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if settings["cpu"] is not None:
        os.sched_setaffinity(0, {settings["cpu"]})
    tell("ready")
    url = json.loads(sys.stdin.readline() or "null")
    if url is None:
        return
    client = redis.Redis.from_url(url)
    try:
        work = connected(client)
        for order in orders():
            tell({"result": work(**order)})
    except (redis.RedisError, OSError) as error:
        what = f"{type(error).__name__}: {error}".rstrip(".")
        tell({"error": f"{what}; look whether the server is still there, and try again"})
        sys.exit(1)


def connected(client: redis.Redis):
    """What to do at each order, the connection being there."""
    if settings["role"] == "publisher":
        client.ping()
        tell({"result": None})
        return lambda **order: publish(client, **order)
    pubsub = client.pubsub()
    pubsub.subscribe(CHANNEL)
    # What is published after the confirmation is not missed.
    if pubsub.get_message(timeout=5) is None:
        raise redis.TimeoutError("the server does not confirm the subscription within 5 s")
    tell({"result": None})
    return lambda **order: receive(pubsub, **order)


def publish(client: redis.Redis, count: int, every_ns: int, pause_ns: int, size: int, out: str | None) -> dict:
    """Publishes at intended times, however late the message before was; or each after a pause."""
    global progress
    stamps = []
    start = time.monotonic_ns() + 10_000_000
    for number in range(count):
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
            intended = time.monotonic_ns()
        else:
            intended = start + number * every_ns
            wait_until(intended)
        message = f"{number:012}".ljust(size, ".")
        called = time.monotonic_ns()
        client.publish(CHANNEL, message)
        stamps.append((intended, called, time.monotonic_ns()))
        progress += 1
    client.publish(CHANNEL, END)
    write_rows(out)
    return {"stamps": stamps}


def receive(pubsub, out: str | None) -> dict:
    """Receives until the publisher has said that this was all."""
    global progress
    stamps = []
    began, cpu_began = time.monotonic_ns(), time.process_time_ns()
    for message in messages(pubsub):
        now = time.monotonic_ns()
        if message["type"] != "message":
            continue
        text = message["data"].decode()
        if text == END:
            break
        stamps.append((int(text[:12]), now))
        progress += 1
    cpu_ns, took_ns = time.process_time_ns() - cpu_began, time.monotonic_ns() - began
    write_rows(out)
    return {"stamps": stamps, "cpu_ns": cpu_ns, "took_ns": took_ns}


def messages(pubsub) -> Iterator[dict]:
    match settings["receive"]:
        case "listen":
            yield from pubsub.listen()
        case "spin":
            while True:
                message = pubsub.get_message()
                if message:
                    yield message
        case "sleep":
            while True:
                message = pubsub.get_message()
                if message:
                    yield message
                time.sleep(0.001)


def wait_until(intended: int) -> None:
    left = intended - time.monotonic_ns()
    if left > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.monotonic_ns() < intended:
        pass


def orders() -> Iterator[dict]:
    """Lines until standard input ends; while one is worked on, messages must come."""
    for line in sys.stdin:
        done = threading.Event()
        threading.Thread(target=watch, args=(done,), daemon=True).start()
        yield json.loads(line)
        done.set()


def watch(done: threading.Event) -> None:
    """Ends the process when no message has come for so long: a server that hangs must not hang the bench."""
    seen = progress
    while not done.wait(settings["silence_s"]):
        if progress == seen:
            silence = f"{settings['silence_s']:.0f}"
            tell({"error": f"no message came within {silence} s; look whether the server hangs, and try again"})
            os._exit(1)
        seen = progress


def write_rows(out: str | None) -> None:
    """The stamps that the hook took."""
    if out is not None:
        tickpath_rows.write(out)


def tell(what) -> None:
    print(json.dumps(what), flush=True)


main()
