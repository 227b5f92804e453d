"""The same publisher and subscriber with redis-py's asyncio client, on asyncio's own loop or on uvloop."""

import asyncio
import json
import os
import sys
import time

sys.path.append(os.path.dirname(__file__))
from pair import CHANNEL, END, settings, tell, tell_failure, tell_silence, told_url, wait_until, write_rows

import redis.asyncio


class Silence(Exception):
    """No message came for too long."""


async def main() -> None:
    url = told_url()
    if url is None:
        return
    client = redis.asyncio.from_url(url)
    try:
        work = await connected(client)
        for line in sys.stdin:
            tell({"result": await work(**json.loads(line))})
    except (redis.RedisError, OSError) as error:
        tell_failure(error)
        sys.exit(1)
    except Silence:
        tell_silence()
        sys.exit(1)


async def connected(client: redis.asyncio.Redis):
    """What to do at each order, the connection being there."""
    if settings["role"] == "publisher":
        await client.ping()
        tell({"result": None})
        return lambda **order: publish(client, **order)
    pubsub = client.pubsub()
    await pubsub.subscribe(CHANNEL)
    # What is published after the confirmation is not missed.
    if await pubsub.get_message(timeout=5) is None:
        raise redis.TimeoutError("the server does not confirm the subscription within 5 s")
    tell({"result": None})
    return lambda **order: receive(pubsub, **order)


async def publish(client, count: int, every_ns: int, pause_ns: int, size: int, out: str | None) -> dict:
    """Publishes at intended times, however late the message before was; or each after a pause."""
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
        message = f"{number:012}".ljust(size, ".")
        called = time.monotonic_ns()
        await client.publish(CHANNEL, message)
        stamps.append((intended, called, time.monotonic_ns()))
    await client.publish(CHANNEL, END)
    write_rows(out)
    return {"stamps": stamps}


async def receive(pubsub, out: str | None) -> dict:
    """Receives until the publisher has said that this was all."""
    stamps = []
    began, cpu_began = time.monotonic_ns(), time.process_time_ns()
    watched = asyncio.create_task(watch(asyncio.current_task(), stamps))
    try:
        async for message in pubsub.listen():
            now = time.monotonic_ns()
            if message["type"] != "message":
                continue
            text = message["data"].decode()
            if text == END:
                break
            stamps.append((int(text[:12]), now))
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
