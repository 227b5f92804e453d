"""Pushes five orders into a queue and pulls them: an order is delivered once, and redelivered if it is not acknowledged.

    python examples/python/04_queue.py [URL]

The two pullers run one after the other here; they could as well be two processes at the same time.
"""

import sys

import tickpath as tp

url = sys.argv[1] if len(sys.argv) > 1 else "shm://"


def pull(puller: tp.Puller, name: str, number: int) -> None:
    """Pulls and prints this number of messages."""
    for _ in range(number):
        pulled = next(puller)
        assert isinstance(pulled.message, tp.Message)
        print(f"{name}: {pulled.message.payload.decode()}{', again' if pulled.redelivered else ''}")


with tp.connect(url) as bus, bus.pusher("orders", "at-least-once") as orders:
    orders.push_batch([f"order {number}".encode() for number in range(1, 6)], kind=200)
    with bus.puller("orders", "at-least-once") as first:
        pull(first, "first", 2)
        first.acknowledge()
        pull(first, "first", 1)
        # The puller is closed, and order 3 is not acknowledged.
    with bus.puller("orders", "at-least-once") as second:
        pull(second, "second", 3)
        second.acknowledge()
