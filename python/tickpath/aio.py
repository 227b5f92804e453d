"""`async for` over subscribers, pullers and sessions with an OMS, on asyncio and uvloop.

    async for event in bus.subscribe("ticks"): ...
    async for event in orders: ...

For a task that finds no event, a lookout thread of the subscriber waits, and makes a descriptor readable that the event
loop watches: until then the wait takes no turn of the loop, and does not hold the interpreter. A session needs no
thread: the loop watches its socket and its heartbeat time, and other tasks can send requests meanwhile.
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
    """A subscriber, or a puller."""

    def _attempt(self) -> T_co | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...


TURN = 64
"""Events after which other tasks get a turn, even if more events are available."""

LONGEST = 0.1
"""Seconds after which a session is looked at in any case, since another task may have closed it."""


class Events(Generic[T]):
    """Iterator over the events of a source. A task cancelled during a wait loses no event: the next task receives it.
    """

    def __init__(self, source: _Source[T]) -> None:
        self._source = source
        self._number = 0
        self._arrival: asyncio.Future[None] | None = None
        self._reader: _LoopReader | None = None

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
        """Waits until an event may be available, or the source is closed."""
        loop = asyncio.get_running_loop()
        readable = self._source._watch()
        try:
            if self._reader is None or self._reader.loop is not loop:
                self._remove_reader()
                self._reader = _LoopReader(loop, readable, self._notify)
            arrival = self._arrival = loop.create_future()
            await arrival
        except BaseException:
            self._arrival = None
            self._remove_reader()
            raise
        finally:
            self._arrival = None
            self._source._unwatch()
        # Delayed, so that a task that waits again at once keeps its reader.
        loop.call_soon(self._remove_reader)

    def _notify(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _remove_reader(self) -> None:
        """Removes the reader from the loop, if no task waits."""
        if self._arrival is None and self._reader is not None:
            self._reader.end()
            self._reader = None


class Told:
    """Iterator over the events of a session. A task cancelled during a wait loses no event: the next task receives it.
    """

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
        """Waits until an event may be available, or a heartbeat is due."""
        sleeps = self._orders._sleeps()
        if sleeps is None:
            return await asyncio.sleep(0)
        descriptor, seconds = sleeps
        loop = asyncio.get_running_loop()
        arrival = loop.create_future()

        def notify() -> None:
            if not arrival.done():
                arrival.set_result(None)

        timer = loop.call_later(min(seconds, LONGEST), notify)
        reader = _LoopReader(loop, descriptor, notify) if descriptor >= 0 else None
        try:
            await arrival
        finally:
            timer.cancel()
            if reader is not None:
                reader.end()
            # Another task may have closed the session; the next `_attempt` raises that.
            with suppress(Closed):
                self._orders._is_awake()


class _LoopReader:
    """Watch of a loop on a duplicate of a descriptor: the source may be closed at any time, and the number be reused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, readable: int, notify: Callable[[], None]) -> None:
        self.loop, self._process, self._readable = loop, os.getpid(), os.dup(readable)
        try:
            loop.add_reader(self._readable, notify)
        except BaseException:
            os.close(self._readable)
            raise

    def end(self) -> None:
        # A fork shares the epoll set of its parent's loop.
        if os.getpid() == self._process and not self.loop.is_closed():
            self.loop.remove_reader(self._readable)
        os.close(self._readable)
