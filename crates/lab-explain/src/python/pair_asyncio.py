"""The same publisher and subscriber on asyncio, on its own loop or on uvloop."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterable, Callable
from importlib import import_module

sys.path.append(os.path.dirname(__file__))
from pair import END, message_of, number_of, settings, tell, tell_silence, told_url, wait_until, write_rows

library = import_module(settings["library"])


class Silence(Exception):
    """No message came for too long."""


async def main() -> None:
    url = told_url()
    if url is None:
        return
    try:
        work = await connected(url)
        for line in sys.stdin:
            tell({"result": await work(**json.loads(line))})
    except library.FAILURES as error:
        tell({"error": library.sentence(error)})
        sys.exit(1)
    except Silence:
        tell_silence()
        sys.exit(1)


async def connected(url: str):
    """What to do at each order, the connection being there."""
    if settings["role"] == "publisher":
        send = await library.publisher_on_asyncio(url)
        tell({"result": None})
        return lambda **order: publish(send, **order)
    messages = await library.subscriber_on_asyncio(url)
    tell({"result": None})
    return lambda **order: receive(messages, **order)


async def publish(send: Callable[[str], object], count: int, every_ns: int, pause_ns: int, out: str | None) -> dict:
    """Sends at intended times, however late the message before was; or each after a pause."""
    stamps = []
    start = time.monotonic_ns() + 10_000_000
    for number in range(count):
        # There is nothing else for the loop to do, and its own timers are a millisecond coarse.
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
            intended = time.monotonic_ns()
        else:
            intended = start + number * every_ns
            wait_until(intended)
        message = message_of(number)
        called = time.monotonic_ns()
        await send(message)
        stamps.append((intended, called, time.monotonic_ns()))
    await send(END)
    write_rows(out)
    return {"stamps": stamps}


async def receive(messages: Callable[[], AsyncIterable], out: str | None) -> dict:
    """Receives until the publisher has said that this was all."""
    text_of, stamps = library.text_of, []
    began, cpu_began = time.monotonic_ns(), time.process_time_ns()
    watched = asyncio.create_task(watch(asyncio.current_task(), stamps))
    try:
        async for message in messages():
            now = time.monotonic_ns()
            text = text_of(message)
            if text is None:
                continue
            if text == END:
                break
            stamps.append((number_of(text), now))
    except asyncio.CancelledError:
        raise Silence from None
    finally:
        watched.cancel()
    cpu_ns, took_ns = time.process_time_ns() - cpu_began, time.monotonic_ns() - began
    write_rows(out)
    return {"stamps": stamps, "cpu_ns": cpu_ns, "took_ns": took_ns}


async def watch(receiving: asyncio.Task, stamps: list) -> None:
    """Ends the receiving when no message has come for so long: a server that hangs must not hang the bench."""
    seen = -1
    while len(stamps) != seen:
        seen = len(stamps)
        await asyncio.sleep(settings["silence_s"])
    receiving.cancel()


if settings["loop"] == "uvloop":
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
