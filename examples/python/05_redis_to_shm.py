"""Carries 'ticks' from a Redis server into shared memory, until Ctrl-C: one connection, any number of readers.

    python examples/python/05_redis_to_shm.py [SOURCE_URL [TARGET_URL]]

Whoever publishes there stays as he is, with redis-py too. 02_subscribe.py shows what comes here: a redis-py message as
Message(kind=128, …), one of ours as what it was. Without URLs it is from redis://localhost to shm://.
"""

import sys
from contextlib import suppress

import tickpath as tp

source = sys.argv[1] if len(sys.argv) > 1 else "redis://localhost"
target = sys.argv[2] if len(sys.argv) > 2 else "shm://"

with suppress(KeyboardInterrupt), tp.bridge(source, target, "ticks") as bridge:
    shown = -1
    # What ends it by itself, like a server that refuses for good, is raised here.
    while not bridge.wait(0.5):
        for sentence in bridge.told():
            print(sentence)
        carried = bridge.totals()["ticks"]
        if carried.messages != shown:
            shown = carried.messages
            print(f"{shown} messages, {carried.missed} missed")
