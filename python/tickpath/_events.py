"""Events as dicts, and waits on several subscribers."""

import select
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._native import (
    BookLevel,
    Denial,
    FeedStatus,
    Foreign,
    Gap,
    InDoubt,
    Message,
    Notice,
    NotTaken,
    Pulled,
    Report,
    ReportDetail,
    Subscriber,
    TopOfBook,
    Trade,
)

if TYPE_CHECKING:
    from ._native import _Event, _Told

__all__ = ["as_dict", "wait_any"]

_ORDER_ID = ("client_order_id", "request")

_FIELDS: dict[type, tuple[str, ...]] = {
    TopOfBook: ("symbol", "bid", "bid_quantity", "ask", "ask_quantity", "event_ns", "wire_age_ns", "stamp", "sequence"),
    Trade: ("symbol", "price", "quantity", "aggressor", "trade_id", "event_ns", "stamp", "sequence"),
    BookLevel: (
        *("symbol", "side", "price", "quantity", "flags", "exchange_sequence", "event_ns", "wire_age_ns", "stamp"),
        "sequence",
    ),
    FeedStatus: (
        *("condition", "symbol", "connection", "value", "expected", "found", "event_ns", "stamp", "sequence"),
    ),
    Message: ("kind", "payload", "stamp", "sequence"),
    Foreign: ("payload", "sequence", "details"),
    Gap: ("missed",),
    Report: (
        *("number", "stamp", "live", "order_id", "client_order_id", "exec_type", "status", "symbol", "account", "side"),
        *("price", "last_price", "last_quantity", "cumulative_quantity", "leaves_quantity", "reason", "venue"),
        *("venue_order_id", "exec_id", "venue_sequence", "venue_stamp", "manual", "denial"),
    ),
    ReportDetail: (
        *("number", "stamp", "order_id", "exec_id", "fee", "fee_currency", "liquidity", "venue_received_ns"),
        *("venue_sent_ns", "text"),
    ),
    Denial: ("code", "name", "limit", "value", "sentence"),
    NotTaken: _ORDER_ID,
    InDoubt: _ORDER_ID,
    Notice: ("what", "sentence"),
    Pulled: ("message", "redelivered", "deliveries", "tag"),
}

LONGEST = 1e6
"""Max wait of one system call, in seconds."""


def as_dict(event: "_Event | _Told | Denial | Pulled") -> dict[str, Any]:
    """Returns the fields of an event by name, with `event`, the name of its class: a row of a table, or a JSON object.
    Prices and quantities stay whole numbers of 10⁻⁸. The denial of a report, and the message of a Pulled, are dicts
    themselves.

        pandas.DataFrame(tp.as_dict(event) for event in ticks.poll())
    """
    fields = _FIELDS.get(type(event))
    if fields is None:
        raise TypeError(f"{event!r} is no event; give an event of a subscriber or a session")
    row = {"event": type(event).__name__, **{name: getattr(event, name) for name in fields}}
    for part in ("denial", "message"):
        if row.get(part) is not None:
            row[part] = as_dict(row[part])
    return row


def wait_any(subscribers: Iterable[Subscriber], timeout: float | None = None) -> Sequence[Subscriber]:
    """Waits until one of several subscribers has an event, or `timeout` seconds are over; returns those that have one,
    in the given order. Each subscriber has a lookout thread that waits during the call.

        while ready := tp.wait_any([btc, eth]):
            for subscriber in ready:
                for event in subscriber.poll():
                    ...
    """
    sources = [] if isinstance(subscribers, Subscriber) else list(subscribers)
    if not sources or not all(isinstance(source, Subscriber) for source in sources):
        raise TypeError(f"give a list of subscribers, as in wait_any([btc, eth]), and not {subscribers!r}")
    if timeout is not None and not 0 <= timeout < float("inf"):
        raise ValueError(f"a timeout of {timeout} s is invalid; give seconds, 0 or more, or None")
    left = timeout
    end = None if left is None else time.monotonic() + left
    # `wait(0)` would block while the lookout thread of a quiet source holds it, for up to 0.01 s.
    while not (ready := [source for source in sources if source._is_ready()]):
        if end is not None and (left := end - time.monotonic()) <= 0:
            break
        _wait(sources, left)
    return ready


def _wait(sources: list[Subscriber], left: float | None) -> None:
    """Waits until one of the subscribers may have an event."""
    poll, watched = select.poll(), list[Subscriber]()
    try:
        for source in sources:
            poll.register(source._watch(), select.POLLIN)
            watched.append(source)
        poll.poll(None if left is None else min(left, LONGEST) * 1e3)
    finally:
        for source in watched:
            source._unwatch()
