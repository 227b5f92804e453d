"""Calls of an exchange's client and messages that it receives: their stamps, in the order in which they are taken.

call      called, encode, encoded, write, written, then those of its answer: read, decrypted, decoded, resumed, parsed,
          unified, returned
message   read, decrypted, decoded, resumed, parsed, unified, handed

A stamp that a library has no use for is the one before it. A stamp is 0 where the library lacks the seam for it, and
its stages stay unexplained. Pauses lie within the stages of a call: the library loads its markets, its rate limiter
waits, it connects, it logs on.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from time import monotonic_ns

from tickpath_rows import add, write
from tickpath_stamps import COROUTINE, stamped

CALLED, ENCODE, ENCODED, WRITE, WRITTEN, READ, DECRYPTED, DECODED, RESUMED, PARSED, UNIFIED, RETURNED = range(12)

LOADING, LIMITING, CONNECTING, LOGGING_ON = range(4)

# The call that the current thread or task is in; INSIDE of work that a library does for itself.
calling: ContextVar = ContextVar("calling", default=None)
INSIDE = object()

# Whether a message has arrived in this process.
has_arrived = False


class Call:
    """The stamps of one call."""

    __slots__ = ("names", "requests", "times", "pauses", "latest", "future", "id")

    def __init__(self, names: tuple[str, str, str]):
        self.names = names
        self.requests = 0
        self.times = [monotonic_ns()] + [0] * RETURNED
        self.pauses = [[0, 0] for _ in range(4)]
        # When the socket was last read, the future of an answer over a WebSocket, and the number of such a request.
        self.latest = 0
        self.future = self.id = None

    def row(self, failed: bool = False) -> None:
        """Writes the stamps, once; a call without a request has not reached the network."""
        if self.requests:
            add("called", [*self.names, int(failed), self.requests, self.times, self.pauses])
            self.requests = 0


def current() -> Call | None:
    call = calling.get()
    return call if type(call) is Call else None


def public(kind: type, name: str, names_of, finish) -> None:
    """Has a public method of a class make a call: `names_of(self, name)` has its client, exchange and name, and
    `finish(call, returned)` completes its stamps and writes them. A method within another is part of its call."""
    method = getattr(kind, name)
    code = getattr(method, "__code__", None)
    if code is None or hasattr(method, "_tickpath_call"):
        return
    if code.co_flags & COROUTINE:

        async def called(self, *args, **options):
            if calling.get() is not None:
                return await method(self, *args, **options)
            return await followed(Call(names_of(self, name)), method(self, *args, **options), finish)

    else:

        def called(self, *args, **options):
            if calling.get() is not None:
                return method(self, *args, **options)
            call = Call(names_of(self, name))
            token = calling.set(call)
            try:
                result = method(self, *args, **options)
            except Exception:
                call.row(failed=True)
                raise
            finally:
                calling.reset(token)
            if hasattr(result, "cr_code"):
                return followed(call, result, finish)
            finish(call, monotonic_ns())
            return result

    called.__name__, called.__qualname__, called.__doc__ = name, method.__qualname__, method.__doc__
    called._tickpath_call = True
    setattr(kind, name, called)


async def followed(call: Call, coroutine, finish):
    token = calling.set(call)
    try:
        result = await coroutine
    except Exception:
        call.row(failed=True)
        raise
    finally:
        calling.reset(token)
    finish(call, monotonic_ns())
    return result


class Library:
    """A library with seams for the stamps: it reports those that this version lacks."""

    def __init__(self, name: str, module: str | None = None):
        self.name, self.module = name, module

    def seam(self, kind, name: str, begins, ends) -> None:
        """Stamps a method of a class, inherited or its own."""
        method = getattr(kind, name, None)
        if getattr(method, "__code__", None) is None:
            self.lacks(f"{getattr(kind, '__name__', self.name)}.{name}")
        elif not hasattr(method, "_tickpath_seam"):
            found = stamped(method, name, begins, ends)
            found._tickpath_seam = True
            setattr(kind, name, found)

    def lacks(self, seam: str) -> None:
        add("lacking", f"{self.name} {self.version()} lacks {seam}, where a stamp is taken: its stages are unexplained")

    def version(self) -> str:
        if self.module is None:
            return sys.version.split()[0]
        return getattr(sys.modules.get(self.module), "__version__", "of this version")


PYTHON = Library("Python")


def encode_begins(*_args, **_options) -> None:
    call = current()
    if call is not None:
        call.requests += 1
        call.times[ENCODE] = monotonic_ns()


def encode_ends(*_args, **_options) -> None:
    call = current()
    if call is not None and call.requests:
        call.times[ENCODED] = monotonic_ns()


def write_begins(*_args, **_options) -> Call | None:
    """Within a call whose answer has not begun."""
    call = current()
    if call is None or not call.requests or call.times[READ]:
        return None
    if not call.times[WRITE]:
        call.times[WRITE] = monotonic_ns()
    return call


def write_ends(_self, _args: tuple, call: Call | None, _result) -> None:
    if call is not None:
        call.times[WRITTEN] = monotonic_ns()


def read_ends(*_args, **_options) -> None:
    call = current()
    if call is not None and call.times[WRITTEN]:
        call.latest = monotonic_ns()
        if not call.times[READ]:
            call.times[READ] = call.latest


def parse_begins(*_args, **_options) -> None:
    call = current()
    if call is not None:
        call.times[DECODED] = monotonic_ns()


def parse_ends(*_args, **_options) -> None:
    call = current()
    if call is not None:
        call.times[PARSED] = monotonic_ns()


def pause_begins(*_args, **_options):
    """Calls within a pause are the library's own."""
    call = calling.get()
    return None if call is INSIDE else (call, calling.set(INSIDE), monotonic_ns())


def pause_ends(number: int):
    """The longest of each kind counts."""

    def ends(_self, _args: tuple, begun, _result) -> None:
        if begun is None:
            return
        ended = monotonic_ns()
        call, token, began = begun
        calling.reset(token)
        if call is not None and ended - began > call.pauses[number][1] - call.pauses[number][0]:
            call.pauses[number] = [began, ended]

    return ends


def finish_request(call: Call, returned: int, unifies: bool) -> None:
    """Completes a call whose answer came by HTTP. A library that `unifies` makes a form of its own of the answer."""
    times = call.times
    times[DECRYPTED] = times[DECRYPTED] or times[READ]
    times[RESUMED] = times[DECODED]
    times[UNIFIED] = returned if unifies else times[PARSED]
    times[RETURNED] = returned
    call.row()


def finish_answer(call: Call, message: list[int] | None, returned: int) -> None:
    """Completes a call whose answer is a message of a WebSocket, if one is known."""
    if message is not None:
        call.times[READ:RETURNED] = message
    call.times[RETURNED] = returned
    call.row()


def arrived(names: tuple[str, str, str], message: list[int], handed: int) -> None:
    """Writes the stamps of a message that the script has."""
    global has_arrived
    add("arrived", [*names, [*message, handed]])
    if not has_arrived:
        has_arrived = True
        # The launcher waits for a companion to be ready.
        add("subscribed", [handed, handed])
        write()
