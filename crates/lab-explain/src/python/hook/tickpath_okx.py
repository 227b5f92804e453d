"""The seams of python-okx: REST over httpx, and its two WebSocket classes over websockets.

TradeAPI.place_order        ( OkxClient._request ( request ( write, read ), Response.json ) )
WsPrivateAsync.place_order  ( send ( Connection.send ( write ) ) ); its answer comes to the callback
WsPublicAsync               Connection.recv, callback
"""

from __future__ import annotations

import atexit
from time import monotonic_ns

from tickpath_calls import (
    CALLED,
    ENCODE,
    READ,
    RETURNED,
    WRITTEN,
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
    public,
)
from tickpath_sockets import stamp_asyncio, stamp_blocking, stamp_httpcore, stamp_websockets

OKX = Library("python-okx", "okx")

# Methods of the WebSocket classes that send a request.
REQUESTS = (
    "send",
    "place_order",
    "batch_orders",
    "cancel_order",
    "batch_cancel_orders",
    "amend_order",
    "batch_amend_orders",
    "mass_cancel",
)

# Calls whose answers have not come, by the WebSocket object and the id of the request.
pending: dict[tuple[object, str], Call] = {}


def stamp_rest(module) -> None:
    """Stamps `okx.okxclient`, the base of the REST classes."""
    import httpx

    kind = module.OkxClient
    OKX.seam(kind, "__init__", stamp_class_of, None)
    OKX.seam(kind, "_request", encode_begins, None)
    Library("httpx", "httpx").seam(kind, "request", encode_ends, None)
    Library("httpx", "httpx").seam(httpx.Response, "json", parse_begins, parse_ends)
    stamp_blocking()
    stamp_httpcore()


def stamp_class_of(api, *_args, **_options) -> None:
    """Stamps the public methods of a REST class when its first object is made."""
    kind = type(api)
    if "_tickpath_public" in kind.__dict__:
        return
    kind._tickpath_public = True
    for base in kind.__mro__:
        if base.__name__ == "OkxClient":
            return
        for name in [name for name in base.__dict__ if not name.startswith("_")]:
            public(kind, name, names_of, request_ends)


def names_of(client, name: str) -> tuple[str, str, str]:
    return "python-okx", "okx", f"{type(client).__name__}.{name}"


def request_ends(call: Call, returned: int) -> None:
    finish_request(call, returned, unifies=False)


def stamp_stream(module) -> None:
    """Stamps `okx.websocket.WsPublicAsync` or `okx.websocket.WsPrivateAsync`."""
    kind = getattr(module, module.__name__.rpartition(".")[2])
    OKX.seam(kind, "send", send_begins, None)
    for name in REQUESTS:
        if hasattr(kind, name):
            public(kind, name, names_of, request_is_sent)
    kind.callback = property(lambda stream: stream.__dict__.get("_tickpath_callback"), keep_callback)
    stamp_asyncio()
    stamp_websockets()


def send_begins(stream, *args, **options) -> None:
    """`send(op, args, callback=None, id=None)`"""
    encode_begins()
    call = current()
    if call is None:
        return
    # The methods that call this one only pass on what they get.
    call.times[ENCODE] = call.times[CALLED]
    request = args[3] if len(args) > 3 else options.get("id")
    if request is not None:
        call.id = str(request)
        pending[stream, call.id] = call


def request_is_sent(call: Call, returned: int) -> None:
    """The answer to a request with an id is a message; without one it cannot be found, and the call ends here."""
    if call.id is None:
        finish_answer(call, [call.times[WRITTEN]] * (RETURNED - READ), returned)


def keep_callback(stream, callback) -> None:
    if callback is not None and not hasattr(callback, "_tickpath_call"):
        callback = received(stream, callback)
    stream.__dict__["_tickpath_callback"] = callback


def received(stream, callback):
    """The library hands over the text of a message as it is: parsing belongs to the script."""

    def receive(message):
        handed = monotonic_ns()
        found = getattr(stream.websocket, "_tickpath_message", None)
        if found is not None:
            stream.websocket._tickpath_message = None
            stamps = [*found, found[-1], found[-1]]
            call = answered(stream, message)
            if call is not None:
                finish_answer(call, stamps, handed)
            else:
                arrived(names_of(stream, "callback"), stamps, handed)
        return callback(message)

    receive._tickpath_call = True
    return receive


def answered(stream, message) -> Call | None:
    """The call that a message answers."""
    for (asked, request), call in pending.items():
        if asked is stream and '"id"' in message and f'"{request}"' in message:
            del pending[asked, request]
            return call
    return None


@atexit.register
def give_up() -> None:
    """Requests that were never answered have failed."""
    for call in pending.values():
        call.row(failed=True)
