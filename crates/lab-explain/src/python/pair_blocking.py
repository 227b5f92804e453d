"""A blocking publisher and a blocking subscriber in usual Python code; each is a process of its own."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

sys.path.append(os.path.dirname(__file__))
from pair import END, message_of, number_of, settings, tell, tell_silence, told_url, wait_until, write_rows

library = import_module(settings["library"])

# Messages so far; a thread looks whether it grows.
progress = 0


def main() -> None:
    url = told_url()
    if url is None:
        return
    try:
        work = connected(url)
        for order in orders():
            tell({"result": work(**order)})
    except library.FAILURES as error:
        tell({"error": library.sentence(error)})
        sys.exit(1)


def connected(url: str):
    """What to do at each order, the connection being there."""
    if settings["role"] == "publisher":
        send = library.publisher(url)
        tell({"result": None})
        return lambda **order: publish(send, **order)
    messages = library.subscriber(url)
    tell({"result": None})
    return lambda **order: receive(messages, **order)


def publish(send: Callable[[str], object], count: int, every_ns: int, pause_ns: int, out: str | None) -> dict:
    """Sends at intended times, however late the message before was; or each after a pause."""
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
        message = message_of(number)
        called = time.monotonic_ns()
        send(message)
        stamps.append((intended, called, time.monotonic_ns()))
        progress += 1
    send(END)
    write_rows(out)
    return {"stamps": stamps}


def receive(messages: Callable[[], Iterable], out: str | None) -> dict:
    """Receives until the publisher has said that this was all."""
    global progress
    text_of, stamps = library.text_of, []
    began, cpu_began = time.monotonic_ns(), time.process_time_ns()
    for message in messages():
        now = time.monotonic_ns()
        text = text_of(message)
        if text is None:
            continue
        if text == END:
            break
        stamps.append((number_of(text), now))
        progress += 1
    cpu_ns, took_ns = time.process_time_ns() - cpu_began, time.monotonic_ns() - began
    write_rows(out)
    return {"stamps": stamps, "cpu_ns": cpu_ns, "took_ns": took_ns}


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
