"""Prints the events of the topic 'ticks', gaps included, until Ctrl-C.

    python examples/python/02_subscribe.py [URL]

Start it before its publisher, 01_publish.py, or after; each of several subscribers receives every tick.
"""

import sys
from contextlib import suppress

import tickpath as tp

url = sys.argv[1] if len(sys.argv) > 1 else "shm://"

with suppress(KeyboardInterrupt), tp.connect(url) as bus, bus.subscribe("ticks") as ticks:
    print("waiting for 'ticks'")
    for event in ticks:
        match event:
            case tp.TopOfBook():
                print(f"bid {tp.decimal(event.bid):.2f}, ask {tp.decimal(event.ask):.2f}")
            case tp.Gap(None):
                print("missed an unknown number of messages")
            case tp.Gap(missed):
                print(f"missed {missed}")
            case _:
                print(event)
