"""`async for` over subscribers, pullers and sessions with an OMS, on asyncio and uvloop.

    async for event in bus.subscribe("ticks"): ...
    async for told in orders: ...

A task that finds nothing has a thread of the subscriber's own wait for it, which makes a descriptor readable that the event
loop looks at: nothing runs and nobody holds the interpreter until something comes. Beside a session nothing runs: the loop
looks at its socket and at its heartbeat, and other tasks send by it meanwhile.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from .errors import Closed

if TYPE_CHECKING:
    from ._native import Orders, _Told

__all__ = ["Events", "Told"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Source(Protocol[T_co]):
    """A subscriber or a puller."""

    def _attempt(self) -> T_co | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...


TURN = 64
"""Events behind which other tasks have their turn, also where there is always another one."""

LONGEST = 0.1
"""Seconds behind which a session is looked at in any case: another task may have closed it."""


class Events(Generic[T]):
    """What comes, one at a time. Who is cancelled while it waits loses nothing: the next one gets it."""

    def __init__(self, source: _Source[T]) -> None:
        self._source = source
        self._number = 0
        self._news: asyncio.Future[None] | None = None
        self._reading: _Reading | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self._number += 1
        if self._number % TURN == 0:
            await asyncio.sleep(0)
        while (event := self._source._attempt()) is None:
            await self._wait()
        return event

    async def _wait(self) -> None:
        """Waits until there may be something, or the source is closed."""
        loop = asyncio.get_running_loop()
        readable = self._source._watch()
        try:
            if self._reading is None or self._reading.loop is not loop:
                self._rest()
                self._reading = _Reading(loop, readable, self._told)
            news = self._news = loop.create_future()
            await news
        except BaseException:
            self._news = None
            self._rest()
            raise
        finally:
            self._news = None
            self._source._unwatch()
        # Who waits again at once is read for still.
        loop.call_soon(self._rest)

    def _told(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _rest(self) -> None:
        """Has the loop look no more, if nobody waits."""
        if self._news is None and self._reading is not None:
            self._reading.end()
            self._reading = None


class Told:
    """What an OMS says, one event at a time. Who is cancelled while it waits loses nothing: the next one gets it."""

    def __init__(self, orders: "Orders") -> None:
        self._orders = orders
        self._number = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "_Told":
        self._number += 1
        if self._number % TURN == 0:
            await asyncio.sleep(0)
        while (event := self._orders._attempt()) is None:
            await self._wait()
        return event

    async def _wait(self) -> None:
        """Waits until there may be something, or it is time for a heartbeat."""
        sleeps = self._orders._sleeps()
        if sleeps is None:
            return await asyncio.sleep(0)
        descriptor, seconds = sleeps
        loop = asyncio.get_running_loop()
        news = loop.create_future()

        def told() -> None:
            if not news.done():
                news.set_result(None)

        timer = loop.call_later(min(seconds, LONGEST), told)
        reading = _Reading(loop, descriptor, told) if descriptor >= 0 else None
        try:
            await news
        finally:
            timer.cancel()
            if reading is not None:
                reading.end()
            # Another task may have closed it: the next look says so.
            with suppress(Closed):
                self._orders._is_awake()


class _Reading:
    """A loop that looks at a descriptor: at one of its own, for the source may be closed at any time, and its number be another's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, readable: int, told: Callable[[], None]) -> None:
        self.loop, self._process, self._readable = loop, os.getpid(), os.dup(readable)
        try:
            loop.add_reader(self._readable, told)
        except BaseException:
            os.close(self._readable)
            raise

    def end(self) -> None:
        # A fork shares what its parent's loop looks at.
        if os.getpid() == self._process and not self.loop.is_closed():
            self.loop.remove_reader(self._readable)
        os.close(self._readable)
