"""What the pusher and the puller have in common: their settings, the connection, and how they speak."""

import json
import os
import signal
import sys

from reconnects import connected

import redis

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))

# How long the server may take to answer, in seconds.
ANSWER_S = 30


def connect(doing: str) -> redis.Redis:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.sched_setaffinity(0, {settings["cpu"]})
    client = redis.Redis.from_url(
        settings["url"], socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, redis_connect_func=connected
    )
    try:
        client.ping()
    except redis.RedisError as error:
        tell({"error": sentence(doing, error)})
        sys.exit(1)
    return client


def sentence(doing: str, error: Exception) -> str:
    what = f"{type(error).__name__}: {error}".rstrip(".")
    return f"{doing} failed ({what}); look whether the server is still there, and try again"


def tell(what) -> None:
    print(json.dumps(what), flush=True)
