"""One publish from a new process, timed: the connection is made inside the call, for nobody asked for it before."""

import os
import sys
import time

URL = os.environ["TICKPATH_EXPLAIN_URL"]
CHANNEL = os.environ["TICKPATH_EXPLAIN_CHANNEL"]

if os.environ["TICKPATH_EXPLAIN_PARSER"] == "python":
    # As if hiredis were not installed, which `pip install redis` leaves out.
    sys.modules["hiredis"] = None

import redis


def publish() -> None:
    client = redis.Redis.from_url(URL)
    began = time.time()
    client.publish(CHANNEL, str(time.time()))
    print(f"publish: {(time.time() - began) * 1000:.3f} ms")


async def publish_async() -> None:
    client = redis.asyncio.from_url(URL)
    began = time.time()
    await client.publish(CHANNEL, str(time.time()))
    print(f"publish: {(time.time() - began) * 1000:.3f} ms")
    await client.aclose()


if sys.argv[1] == "asyncio":
    import asyncio

    asyncio.run(publish_async())
else:
    publish()
