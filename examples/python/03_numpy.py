"""Copies ticks into a numpy array, as many at a time as have arrived, and prints their mean spread.

    python examples/python/03_numpy.py [URL]

Start it, then 01_publish.py in another terminal. It needs numpy.
"""

import sys
from contextlib import suppress

import numpy as np

import tickpath as tp

url = sys.argv[1] if len(sys.argv) > 1 else "shm://"
array = np.zeros(1024, tp.TOP_OF_BOOK)
total = 0

with suppress(KeyboardInterrupt), tp.connect(url) as bus, bus.subscribe("ticks") as ticks:
    print("waiting for 'ticks'")
    while ticks.wait():
        number = ticks.poll_into(array)
        if number == 0:
            # Copying stops before any other event: a trade, a message, or a gap.
            print(*ticks.poll(1))
            continue
        # The first call copies the tick that the wait has found; this call copies the ticks after it.
        number += ticks.poll_into(array[number:])
        batch = array[:number]
        total += number
        print(f"{total} ticks, mean spread {(batch['ask'] - batch['bid']).mean() / tp.SCALE:.2f}")
