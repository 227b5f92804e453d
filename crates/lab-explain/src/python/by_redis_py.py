"""A pair by redis-py in usual Python code: publish to a channel and listen, or push to a list and pop from it."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

from pair import settings

import redis
import redis.asyncio

CHANNEL: str = settings["channel"]
IS_QUEUE: bool = settings["way"] == "queue"

# How long a pop waits before it asks again, in seconds.
POP_S = 1

FAILURES = (redis.RedisError, OSError)


def sentence(error: Exception) -> str:
    what = f"{type(error).__name__}: {error}".rstrip(".")
    return f"{what}; look whether the server is still there, and try again"


def publisher(url: str) -> Callable[[str], object]:
    """What sends one message, the connection being there."""
    client = redis.Redis.from_url(url)
    client.ping()
    return partial(client.rpush if IS_QUEUE else client.publish, CHANNEL)


async def publisher_on_asyncio(url: str) -> Callable[[str], object]:
    client = redis.asyncio.from_url(url)
    await client.ping()
    return partial(client.rpush if IS_QUEUE else client.publish, CHANNEL)


def subscriber(url: str) -> Callable[[], Iterator]:
    """What gives the messages from now on, the connection being there."""
    client = redis.Redis.from_url(url)
    if IS_QUEUE:
        client.ping()
        return partial(popped, client)
    pubsub = client.pubsub()
    pubsub.subscribe(CHANNEL)
    # What is published after the confirmation is not missed.
    if pubsub.get_message(timeout=5) is None:
        raise redis.TimeoutError("the server does not confirm the subscription within 5 s")
    return partial(listened, pubsub)


async def subscriber_on_asyncio(url: str) -> Callable[[], AsyncIterator]:
    client = redis.asyncio.from_url(url)
    if IS_QUEUE:
        await client.ping()
        return partial(popped_on_asyncio, client)
    pubsub = client.pubsub()
    await pubsub.subscribe(CHANNEL)
    if await pubsub.get_message(timeout=5) is None:
        raise redis.TimeoutError("the server does not confirm the subscription within 5 s")
    return pubsub.listen


def listened(pubsub) -> Iterator[dict]:
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


def popped(client) -> Iterator[tuple]:
    while True:
        found = client.blpop(CHANNEL, timeout=POP_S)
        if found:
            yield found


async def popped_on_asyncio(client) -> AsyncIterator[tuple]:
    while True:
        found = await client.blpop(CHANNEL, timeout=POP_S)
        if found:
            yield found


def text_of(message) -> str | None:
    """What was sent; none of what is no message."""
    if IS_QUEUE:
        return message[1].decode()
    return message["data"].decode() if message["type"] == "message" else None
