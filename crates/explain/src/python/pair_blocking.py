"""A publisher and a subscriber with redis-py, as people write them; each is a process of its own."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator

sys.path.append(os.path.dirname(__file__))
from pair import CHANNEL, END, settings, tell, tell_failure, tell_silence, told_url, wait_until, write_rows

import redis

# Messages so far; a thread looks whether it grows.
progress = 0


def main() -> None:
    url = told_url()
    if url is None:
        return
    client = redis.Redis.from_url(url)
    try:
        work = connected(client)
        for order in orders():
            tell({"result": work(**order)})
    except (redis.RedisError, OSError) as error:
        tell_failure(error)
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
            tell_silence()
            os._exit(1)
        seen = progress


main()
