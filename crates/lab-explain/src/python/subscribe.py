"""Prints how old each message is: spinning on get_message, as many scripts do, or in a blocking loop."""

import os
import sys
import time

URL = os.environ["TICKPATH_EXPLAIN_URL"]
CHANNEL = os.environ["TICKPATH_EXPLAIN_CHANNEL"]

if os.environ["TICKPATH_EXPLAIN_PARSER"] == "python":
    # As if hiredis were not installed, which `pip install redis` leaves out.
    sys.modules["hiredis"] = None

import redis


def spin() -> None:
    pubsub = redis.Redis.from_url(URL).pubsub()
    pubsub.subscribe(CHANNEL)
    while True:
        message = pubsub.get_message()
        if message and message["type"] == "message":
            show(message)


def listen() -> None:
    pubsub = redis.Redis.from_url(URL).pubsub()
    pubsub.subscribe(CHANNEL)
    for message in pubsub.listen():
        if message["type"] == "message":
            show(message)


async def listen_async() -> None:
    pubsub = redis.asyncio.from_url(URL).pubsub()
    await pubsub.subscribe(CHANNEL)
    async for message in pubsub.listen():
        if message["type"] == "message":
            show(message)


def show(message: dict) -> None:
    age = time.time() - float(message["data"])
    print(f"subscribe: {age * 1000:.3f} ms", flush=True)


match sys.argv[1]:
    case "spin":
        spin()
    case "listen":
        listen()
    case "asyncio":
        import asyncio

        asyncio.run(listen_async())
