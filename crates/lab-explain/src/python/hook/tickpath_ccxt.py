"""The seams of ccxt: REST of its blocking and its asyncio classes, and the WebSockets of ccxt.pro.

create_order      ( load_markets, throttle, sign, fetch ( write, read, parse_json ) )
create_order_ws   ( authenticate, Client.send ( write ), Client.handle_message ( on_message_callback ( resolve ) ) )
watch_ticker      ( Client.handle_message ( on_message_callback ( resolve ) ) )
"""

from __future__ import annotations

from time import monotonic_ns

from tickpath_calls import (
    CONNECTING,
    LIMITING,
    LOADING,
    LOGGING_ON,
    Call,
    Library,
    arrived,
    current,
    encode_begins,
    encode_ends,
    finish_answer,
    finish_request,
    parse_begins,
    parse_ends,
    pause_begins,
    pause_ends,
    public,
)
from tickpath_sockets import stamp_aiohttp, stamp_asyncio, stamp_blocking, stamp_urllib3

CCXT = Library("ccxt", "ccxt")

# How the names of public methods begin.
CALLS = ("create_", "cancel_", "edit_", "fetch_")
WATCHES = "watch_"

# Places in the stamps of a message.
PARSED = 4


def stamp_exchange(module) -> None:
    """Stamps `ccxt.base.exchange`, the base of all exchanges."""
    base = getattr(module, "BaseExchange", module.Exchange)
    CCXT.seam(base, "__init__", stamp_class_of, None)
    stamp_blocking()
    stamp_urllib3()


def stamp_asyncio_exchange(module) -> None:
    """Stamps `ccxt.async_support.base.exchange`, the base of all exchanges on asyncio, and the WebSockets' client."""
    base = getattr(module, "BaseExchange", module.Exchange)
    for name in ("watch", "watch_multiple"):
        CCXT.seam(base, name, None, watch_ends)
    client = module.Client
    client._tickpath_message = None
    CCXT.seam(client, "__init__", None, client_ends)
    CCXT.seam(client, "open", pause_begins, pause_ends(CONNECTING))
    CCXT.seam(client, "send", encode_begins, None)
    CCXT.seam(client, "handle_message", message_begins, message_ends)
    CCXT.seam(client, "resolve", resolve_begins, None)
    module.Future.race = race(module.Future.race)
    stamp_asyncio()
    stamp_aiohttp()


def stamp_class_of(exchange, *_args, **_options) -> None:
    """Stamps the class of an exchange when its first object is made: exchanges have methods of their own."""
    kind = type(exchange)
    if "_tickpath_part" in kind.__dict__:
        return
    kind._tickpath_part = part_of(kind)
    CCXT.seam(kind, "load_markets", pause_begins, pause_ends(LOADING))
    CCXT.seam(kind, "throttle", pause_begins, pause_ends(LIMITING))
    CCXT.seam(kind, "sign", encode_begins, encode_ends)
    CCXT.seam(kind, "parse_json", parse_begins, parse_ends)
    if hasattr(kind, "authenticate"):
        CCXT.seam(kind, "authenticate", pause_begins, pause_ends(LOGGING_ON))
    for name in dir(kind):
        if name.startswith(CALLS):
            public(kind, name, names_of, call_ends)
        elif name.startswith(WATCHES) and name != "watch_multiple":
            public(kind, name, names_of, message_has_come)


def part_of(kind: type) -> str:
    """The part of the library that has an exchange's class, such as `ccxt.pro`."""
    modules = (base.__module__.rpartition(".")[0] for base in kind.__mro__)
    return next((part for part in modules if part == "ccxt" or part.startswith("ccxt.")), "ccxt")


def names_of(exchange, name: str) -> tuple[str, str, str]:
    return type(exchange)._tickpath_part, exchange.id or type(exchange).__name__, name


def call_ends(call: Call, returned: int) -> None:
    if call.future is None:
        finish_request(call, returned, unifies=True)
    else:
        finish_answer(call, message_of(call.future), returned)


def message_has_come(call: Call, handed: int) -> None:
    message = message_of(call.future)
    if message is not None:
        arrived(call.names, message, handed)


def message_of(future) -> list[int] | None:
    """The stamps of the message that has resolved a future, or the first of several."""
    found = getattr(future, "_tickpath_message", None)
    if found is not None:
        return found
    several = [getattr(other, "_tickpath_message", None) for other in getattr(future, "_tickpath_raced", ())]
    return min((found for found in several if found is not None), key=lambda found: found[-1], default=None)


def watch_ends(_exchange, _args: tuple, _begun, future) -> None:
    call = current()
    if call is not None:
        call.future = future


def race(method):
    """A race remembers its futures."""

    def stamped(futures):
        future = method(futures)
        future._tickpath_raced = list(futures)
        return future

    return staticmethod(stamped)


def client_ends(client, _args: tuple, _begun, _result) -> None:
    handle = client.on_message_callback

    def parsed(client, message):
        if client._tickpath_message is not None:
            client._tickpath_message[PARSED] = monotonic_ns()
        handle(client, message)

    client.on_message_callback = parsed


def message_begins(client, _message) -> None:
    resumed = monotonic_ns()
    try:
        frames = client.connection._conn.protocol._tickpath_frames
    except AttributeError:
        frames = None
    client._tickpath_message = [*(frames.popleft() if frames else (0, 0, 0)), resumed, 0, 0]


def message_ends(client, *_args) -> None:
    client._tickpath_message = None


def resolve_begins(client, _result, message_hash=None) -> None:
    future = client.futures.get(message_hash)
    if client._tickpath_message is not None and future is not None and not future.done():
        future._tickpath_message = [*client._tickpath_message[:-1], monotonic_ns()]
