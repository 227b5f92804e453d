"""Publishes a tick ten times a second, until Ctrl-C.

    python examples/python/01_publish.py [URL]

The URL is the bus: shm:// is shared memory on this host, redis://localhost a server. 02_subscribe.py prints the ticks in another
terminal, with the same URL.
"""

import itertools
import sys
import time
from contextlib import suppress

import tickpath as tp

url = sys.argv[1] if len(sys.argv) > 1 else "shm://"

with suppress(KeyboardInterrupt), tp.connect(url) as bus, bus.publisher("ticks") as ticks:
    print("publishing 'ticks'")
    for number in itertools.count():
        # Prices and quantities are whole numbers of 10⁻⁸, and so never rounded.
        bid = tp.units("64000.25") + number % 100 * tp.units("0.25")
        ticks.publish(tp.TopOfBook(bid, tp.units(1), bid + tp.units("0.5"), tp.units(2), event_ns=time.time_ns()))
        time.sleep(0.1)
