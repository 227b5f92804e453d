"""`async for` over subscribers and pullers, on asyncio and uvloop.

    async for event in bus.subscribe("ticks"): ...

A task that finds nothing has a thread of the subscriber's own wait for it, which makes a descriptor readable that the event
loop looks at: nothing runs and nobody holds the interpreter until something comes.
"""

import asyncio
import os
from typing import Generic, Protocol, Self, TypeVar

__all__ = ["Events"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Source(Protocol[T_co]):
    """A subscriber or a puller."""

    def _attempt(self) -> T_co | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...


TURN = 64
"""Events behind which other tasks have their turn, also where there is always another one."""


class Events(Generic[T]):
    """What comes, one at a time. Who is cancelled while it waits loses nothing: the next one gets it."""

    def __init__(self, source: _Source[T]) -> None:
        self._source = source
        self._number = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self._number += 1
        if self._number % TURN == 0:
            await asyncio.sleep(0)
        while (event := self._source._attempt()) is None:
            await _news(self._source)
        return event


async def _news(source: _Source[object]) -> None:
    """Waits until there may be something, or the source is closed."""
    loop, process = asyncio.get_running_loop(), os.getpid()
    readable = source._watch()
    news: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(readable, _told, news)
        await news
    finally:
        try:
            # A fork shares what its parent's loop looks at.
            if os.getpid() == process:
                loop.remove_reader(readable)
        finally:
            source._unwatch()


def _told(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)
