"""Tickpath: topics and queues at the speed of shared memory, and the same API over Redis, NATS, RabbitMQ and Kafka.

    import tickpath as tp

    with tp.connect("shm://") as bus, bus.subscribe("ticks") as ticks:
        for event in ticks:  # TopOfBook | Trade | BookLevel | FeedStatus | Message | Foreign | Gap
            ...

Prices and quantities are whole numbers of 10⁻⁸: `tp.decimal(tick.bid)` converts a price to a Decimal. `tp.TOP_OF_BOOK`,
`tp.TRADE`, `tp.BOOK_LEVEL` and `tp.FEED_STATUS` are the numpy records of a tick, a trade, a level of a book and an event
of a feed; numpy is imported at their first use. `tp.OrderBook` builds a book. Exceptions are in `tickpath.errors`,
`async for` in `tickpath.aio`, the benches in `tickpath.lab`. `tp.run` and `tp.orders` trade; `tp.recording`,
`tp.journal` and `tp.blotter` give tables.
"""

from decimal import MAX_PREC, Context, Decimal, Inexact, InvalidOperation
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ._native import (
    Blotter,
    BookLevel,
    Bridge,
    Bus,
    Carried,
    Denial,
    FeedStatus,
    Foreign,
    Frame,
    Gap,
    InDoubt,
    Journal,
    Message,
    MultiSubscriber,
    Notice,
    NotTaken,
    OrderBook,
    Orders,
    Publisher,
    Puller,
    Pulled,
    Pusher,
    Recording,
    Report,
    ReportDetail,
    Subscriber,
    Table,
    TopOfBook,
    Trade,
    Trigger,
    blotter,
    bridge,
    connect,
    journal,
    now,
    ns_between,
    stamp_at,
    utc_ns,
    orders,
    recording,
    when,
)
from ._events import as_dict, wait_any
from .errors import (
    BatchError,
    Closed,
    ConnectError,
    Forked,
    Gone,
    InUse,
    NoSubscriber,
    NotAcknowledged,
    NotLent,
    NotSent,
    OutcomeUnknown,
    PublishError,
    ReceiveError,
    SessionEnded,
    TickpathError,
    TooLarge,
    TopicFull,
)
from .strategy import Stop, Strategy, instruments, run

if TYPE_CHECKING:
    import numpy as np

    from . import lab as lab

    TOP_OF_BOOK: np.dtype[np.void]
    TRADE: np.dtype[np.void]
    BOOK_LEVEL: np.dtype[np.void]
    FEED_STATUS: np.dtype[np.void]
    __version__: str

__all__ = [
    "BUY",
    "SCALE",
    "SELL",
    "STOP",
    "BatchError",
    "Blotter",
    "BookLevel",
    "Bridge",
    "Bus",
    "Carried",
    "Closed",
    "ConnectError",
    "Denial",
    "Event",
    "FeedStatus",
    "Foreign",
    "Forked",
    "Frame",
    "Gap",
    "Gone",
    "InDoubt",
    "InUse",
    "Journal",
    "Message",
    "MultiSubscriber",
    "NoSubscriber",
    "NotAcknowledged",
    "NotLent",
    "NotSent",
    "NotTaken",
    "Notice",
    "OrderBook",
    "Orders",
    "OutcomeUnknown",
    "PublishError",
    "Publisher",
    "Pulled",
    "Puller",
    "Pusher",
    "ReceiveError",
    "Recording",
    "Report",
    "ReportDetail",
    "SessionEnded",
    "Stop",
    "Strategy",
    "Subscriber",
    "Table",
    "TickpathError",
    "TooLarge",
    "TopOfBook",
    "TopicFull",
    "Trade",
    "Trigger",
    "as_dict",
    "blotter",
    "bridge",
    "connect",
    "decimal",
    "instruments",
    "journal",
    "now",
    "ns_between",
    "stamp_at",
    "utc_ns",
    "orders",
    "recording",
    "run",
    "units",
    "wait_any",
    "when",
]

Event = TopOfBook | Trade | BookLevel | FeedStatus | Message | Foreign | Gap
"""An event of a subscriber."""

BUY: Final = 1
"""The side of an order or a report that buys, and of the aggressor of a trade that bought."""

SELL: Final = 2
"""The side that sells."""

STOP: Final = Stop.STOP
"""The value that a method of a strategy returns to end its run."""

SCALE = 100_000_000
"""Units in one whole price or quantity."""


_EXACT = Context(prec=MAX_PREC, traps=[Inexact, InvalidOperation])
"""An exact context, independent of the rounding of the user's own context."""


def decimal(units: int) -> Decimal:
    """Converts a price or a quantity in units of 10⁻⁸ to a Decimal."""
    if isinstance(units, float):
        raise TypeError(f"{units!r} is a float, and units are whole numbers; give an int, such as the price of a tick")
    return Decimal(int(units)).scaleb(-8, _EXACT)


def units(number: Decimal | int | str) -> int:
    """Converts a price or a quantity to units of 10⁻⁸, exactly; a float is refused, and must be rounded by the caller
    first.
    """
    if isinstance(number, float):
        raise TypeError(f"{number!r} is a float, which is not exact; give a Decimal, an int or text")
    try:
        exact = Decimal(number).scaleb(8, _EXACT).to_integral_exact(context=_EXACT)
        if not exact.is_finite():
            raise InvalidOperation
    except Inexact:
        raise ValueError(f"{number} has more than eight decimals") from None
    except (InvalidOperation, ValueError):
        raise ValueError(f"{number!r} is no decimal number; write a number like '61800.25'") from None
    if not -(1 << 63) <= exact < 1 << 63:
        raise ValueError(f"{number} is out of range; prices and quantities are below 92233720368.54775808")
    return int(exact)


_RECORDS: dict[str, Any] = {
    "TOP_OF_BOOK": [
        ("bid", "<i8"),
        ("bid_quantity", "<i8"),
        ("ask", "<i8"),
        ("ask_quantity", "<i8"),
        ("event_ns", "<u8"),
        ("symbol", "<u4"),
        ("wire_age_ns", "<u4"),
    ],
    "TRADE": [
        ("price", "<i8"),
        ("quantity", "<i8"),
        ("trade_id", "<u8"),
        ("event_ns", "<u8"),
        ("symbol", "<u4"),
        ("aggressor", "u1"),
        ("reserved", "u1", (3,)),
    ],
    "BOOK_LEVEL": [
        ("price", "<i8"),
        ("quantity", "<i8"),
        ("event_ns", "<u8"),
        ("sequence", "<u8"),
        ("symbol", "<u4"),
        ("wire_age_ns", "<u4"),
        ("side", "u1"),
        ("flags", "u1"),
        ("reserved", "u1", (6,)),
    ],
    "FEED_STATUS": [
        ("event_ns", "<u8"),
        ("value", "<i8"),
        ("expected", "<u8"),
        ("found", "<u8"),
        ("symbol", "<u4"),
        ("condition", "u1"),
        ("connection", "u1"),
        ("reserved", "u1", (10,)),
    ],
}


def __getattr__(name: str) -> Any:
    """Returns the version, the numpy records of the schema, or the lab, which are imported at their first use."""
    if name == "__version__":
        return import_module("importlib.metadata").version("tickpath")
    if name == "lab":
        return import_module(".lab", __name__)
    fields = _RECORDS.get(name)
    if fields is None:
        raise AttributeError(f"module 'tickpath' has no attribute {name!r}")
    import numpy

    record = numpy.dtype(fields)
    globals()[name] = record
    return record


def __dir__() -> list[str]:
    """Lists the public names, for completion and `dir`."""
    return sorted({*__all__, *_RECORDS, "__version__", "errors", "lab"})
