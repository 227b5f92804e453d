"""One publish a process: its connection is made inside the only call. A subscriber spins on `get_message()` meanwhile.

A message is the moment before its call, in nanoseconds of the monotonic clock, which all processes of a host share.
"""

import json
import os
import sys
import time

import redis

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
CHANNEL = "tickpath:one"

# How long the subscriber waits for the next message.
SILENCE_S = 10


def tell(what) -> None:
    print(json.dumps(what), flush=True)


def subscriber(client: redis.Redis) -> None:
    """Tells how old each message was, until it has them all or none comes any more."""
    pubsub = client.pubsub()
    pubsub.subscribe(CHANNEL)
    # The first reply is the confirmation: what is published later is not missed.
    pubsub.get_message(timeout=5)
    tell("ready")
    ages = []
    end = time.monotonic() + SILENCE_S
    while len(ages) < settings["count"] and time.monotonic() < end:
        message = pubsub.get_message()
        if message and message["type"] == "message":
            ages.append(time.monotonic_ns() - int(message["data"]))
            end = time.monotonic() + SILENCE_S
    tell({"result": ages})


def publisher(client: redis.Redis) -> None:
    """Tells how long its call took."""
    tell("ready")
    began = time.monotonic_ns()
    client.publish(CHANNEL, str(began))
    tell({"result": time.monotonic_ns() - began})


try:
    {"subscriber": subscriber, "publisher": publisher}[settings["role"]](redis.Redis(port=settings["port"]))
except redis.RedisError as error:
    tell({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
