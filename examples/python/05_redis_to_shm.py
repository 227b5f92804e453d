"""Carries 'ticks' from a Redis server into shared memory, until Ctrl-C: one connection, any number of readers.

    python examples/python/05_redis_to_shm.py [SOURCE_URL [TARGET_URL]]

Publishers on Redis stay unchanged, also those that use redis-py. 02_subscribe.py prints the messages: those of redis-py as
Message(kind=128, …), those of Tickpath as published. The default URLs are redis://localhost and shm://.
"""

import sys
from contextlib import suppress

import tickpath as tp

source = sys.argv[1] if len(sys.argv) > 1 else "redis://localhost"
target = sys.argv[2] if len(sys.argv) > 2 else "shm://"

with suppress(KeyboardInterrupt), tp.bridge(source, target, "ticks") as bridge:
    shown = -1
    # A failure, such as a server that refuses for good, is raised here.
    while not bridge.wait(0.5):
        for sentence in bridge.told():
            print(sentence)
        carried = bridge.totals()["ticks"]
        if carried.messages != shown:
            shown = carried.messages
            print(f"{shown} messages, {carried.missed} missed")
