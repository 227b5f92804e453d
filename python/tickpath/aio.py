"""`async for` over subscribers and pullers, on asyncio and uvloop.

    async for event in bus.subscribe("ticks"): ...

A task that finds nothing has a thread of the subscriber's own wait for it, which makes a descriptor readable that the event
loop looks at: nothing runs and nobody holds the interpreter until something comes.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

from ._native import Puller, Subscriber

__all__ = ["Events"]

T = TypeVar("T")

TURN = 64
"""Events behind which other tasks have their turn, also where there is always another one."""


class Events(Generic[T]):
    """What comes, one at a time. Who is cancelled while it waits loses nothing: the next one gets it."""

    def __init__(self, source: Subscriber | Puller, take: Callable[[int], Sequence[T]]) -> None:
        self._source = source
        self._take = take
        self._number = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self._number += 1
        if self._number % TURN == 0:
            await asyncio.sleep(0)
        while not (taken := self._take(1)):
            await _news(self._source)
        return taken[0]


async def _news(source: Subscriber | Puller) -> None:
    """Waits until there may be something, or the source is closed."""
    loop = asyncio.get_running_loop()
    readable = source._watch()
    news: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(readable, _told, news)
        await news
    finally:
        loop.remove_reader(readable)
        source._unwatch()


def _told(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)
