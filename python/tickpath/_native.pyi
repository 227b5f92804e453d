from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Final, Literal, NoReturn, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer

__all__ = [
    "Blotter",
    "BookLevel",
    "Bridge",
    "Bus",
    "Carried",
    "Denial",
    "FeedStatus",
    "Foreign",
    "Frame",
    "Gap",
    "Hop",
    "InDoubt",
    "Journal",
    "Message",
    "MultiSubscriber",
    "NotTaken",
    "Notice",
    "OrderBook",
    "Orders",
    "Publisher",
    "Pulled",
    "Puller",
    "Pusher",
    "Recording",
    "Report",
    "ReportDetail",
    "Subscriber",
    "Table",
    "TopOfBook",
    "Trade",
    "Trigger",
    "blotter",
    "bridge",
    "connect",
    "journal",
    "now",
    "ns_between",
    "stamp_at",
    "utc_ns",
    "when",
    "orders",
    "recording",
    "trade",
]

_Policy: TypeAlias = Literal["overwrite", "fail", "keep"]
_Delivery: TypeAlias = Literal["at-most-once", "at-least-once"]
_Wait: TypeAlias = Literal["busy", "yield", "block", "adaptive"]
_Function = TypeVar("_Function", bound=Callable[..., Any])

def connect(url: str) -> Bus:
    """Connects to a message bus at a URL: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST, kafka://HOST.
    """

def now() -> int:
    """Returns the current time in ticks of the host's clock, the unit of all stamps."""

def ns_between(earlier: int, later: int) -> int:
    """Returns the nanoseconds from one stamp of this host to a later one, negative if the second stamp is earlier."""

def utc_ns(stamp: int) -> int:
    """Converts a stamp of this host to UTC, in nanoseconds since the Unix epoch."""

def stamp_at(utc_ns: int) -> int:
    """Converts a UTC time, in nanoseconds since the Unix epoch, to a stamp of this host: for events that were stamped
    on another host, or long ago.
    """

def bridge(
    source: str,
    target: str,
    topics: str | Iterable[str] | dict[str, str],
    *,
    start: str | int = "now",
    resume: str | PathLike[str] | None = None,
    foreign_kind: int = 128,
    wait: _Wait = "block",
    policy: _Policy | None = None,
    capacity: int | None = None,
    max_age: float | None = None,
) -> Bridge:
    """Carries topics from one bus to another, on threads of its own, until the bridge is closed. Returns when both ends
    are open: every message published from then on is carried. `topics` is a name, several names, or a dict that maps
    names at the source to names at the target. A topic starts with the next message ('now'), the oldest ('oldest') or a
    sequence number; with a folder to `resume` in, at the position where an earlier run of the bridge stopped. Messages
    of other programs get the kind `foreign_kind`. `wait` is as in `Bus.subscribe`; `policy`, `capacity` and `max_age`
    open the target's topics as in `Bus.publisher`.
    """

def orders(
    url: str,
    user: str,
    password: str,
    *,
    account: int,
    session: int | None = None,
    since: Literal["now", "start"] = "now",
    symbols: dict[str, int] | None = None,
    heartbeat: float | None = None,
    connect_timeout: float = 5.0,
    first_id: int | None = None,
) -> Orders:
    """Logs on to an OMS: unix:///PATH, shm+unix:///PATH, tcp://HOST:PORT or tls://HOST:PORT?ca=FILE. Orders are for
    `account`. A symbol is given by its number in the OMS, or by its name there or in `symbols`, which cannot give a
    name of the OMS another number. Reports start with the new ones ('now') or with the first of the day ('start').
    `heartbeat` and `connect_timeout` are seconds. Requests get ids from `first_id` on, which must be new in this
    session today; by default `first_id` is made from the time.
    """
def when(
    symbol: int | str,
    price: Literal["last", "bid", "ask"] = "last",
    *,
    at_least: int | None = None,
    at_most: int | None = None,
) -> Trigger:
    """Returns the condition that a price of an instrument, its 'last' trade, best 'bid' or best 'ask', is `at_least` or
    `at_most` a value; exactly one of the two is given. An order with `trigger=` waits at the OMS until the condition
    holds.
    """

def recording(url: str, topic: str) -> Recording:
    """Opens the log of a topic as tables: of a recording, file:///FOLDER, or of the messages that a topic in shared
    memory still holds, shm://.
    """
def journal(folder: str | PathLike[str]) -> Journal:
    """Opens the journal of an OMS as tables, by its folder or its URL, file:///FOLDER."""
def blotter(
    folder: str | PathLike[str],
    *,
    day: int | None = None,
    first_record: int | None = None,
    marks: dict[str, int] | None = None,
    starts: dict[str, int] | None = None,
) -> Blotter:
    """Returns the orders, fills and positions of a day of an OMS's journal: of the present day, of the day that ended
    with the date `day`, like 20261128, or of the day that begins with the record `first_record`. `marks` are the prices
    at which positions are valued, and `starts` the prices of positions held at the start of the day, by instrument
    name, in units of 10⁻⁸.
    """
@final
class Blotter:
    """The orders, fills and positions of a day, at the time of the call to `blotter`. Profit is computed by the average
    cost method.
    """

    @property
    def place(self) -> str:
        """The place of the journal."""
    @property
    def day(self) -> int | None:
        """The date that the day ended with; None if the day has not ended."""
    @property
    def first_record(self) -> int:
        """The first record of the day."""
    @property
    def before_record(self) -> int:
        """The record after the last one that was read."""
    @property
    def orders(self) -> Table:
        """The orders, by time of entry."""
    @property
    def fills(self) -> Table:
        """The fills, in the order of their first reports."""
    @property
    def positions(self) -> Table:
        """The positions and their profit, by account and instrument."""

@final
class Bridge:
    """A running bridge, which carries topics from one bus to another. Use it in a `with` block, or close it: `close`
    raises the error that ended the bridge, unless `wait` has raised it. Threads may share a bridge.
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the bridge has ended, or `timeout` seconds are over; returns True if the bridge has ended. Raises
        the error that ended the bridge; an end by `close` is no error.
        """
    def told(self) -> list[str]:
        """Returns the messages about the bridge since the last call, as sentences, oldest first: that topics are
        carried, each loss, a target that accepts nothing at present. At most the last 1,000 are kept.
        """
    def totals(self) -> dict[str, Carried]:
        """Returns the totals carried so far, by the topics' names at the source."""
    def close(self) -> None:
        """Ends the bridge; returns when the bridge has ended, after about a tenth of a second. Raises the error that
        had ended the bridge before, unless that was raised already; a second call does nothing.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Carried:
    """Totals of one topic that a bridge carries."""

    @property
    def messages(self) -> int:
        """Messages carried."""
    @property
    def foreign(self) -> int:
        """Messages carried that other programs had published."""
    @property
    def elsewhere(self) -> int:
        """Messages carried that were stamped on another host, and got the time of their arrival as their stamp."""
    @property
    def too_long(self) -> int:
        """Messages dropped because they are longer than the target accepts."""
    @property
    def bytes(self) -> int:
        """Payload bytes carried."""
    @property
    def gaps(self) -> int:
        """Losses at the source or on the way to the bridge, each of one message or more; the target's subscribers are
        notified of each.
        """
    @property
    def missed(self) -> int:
        """Messages lost in these gaps, as far as they were counted."""
    @property
    def uncounted(self) -> int:
        """Gaps whose number of messages is unknown."""
    @property
    def refused(self) -> int:
        """Messages that a full target refused at first, and accepted later."""
    @property
    def left(self) -> int:
        """Messages that had arrived when the bridge was closed, and were not published."""
    @property
    def delay_p50_ns(self) -> int | None:
        """Median time that a message spent in the bridge, in nanoseconds; None if there are too few messages."""
    @property
    def delay_p99_ns(self) -> int | None:
        """99th percentile of the time that a message spent in the bridge, in nanoseconds; None if there are too few
        messages.
        """

@final
class Bus:
    """A connection to topics and queues. Threads may share a bus. Use it in a `with` block, or close it; objects opened
    from the bus stay open.
    """

    def publisher(
        self, topic: str, policy: _Policy | None = None, *, capacity: int | None = None, max_age: float | None = None
    ) -> Publisher:
        """Opens a topic for publishing. `policy` is the behaviour of a full topic: 'overwrite', 'fail' or 'keep', by
        default the first of `capabilities()['policies']`. The topic holds about `capacity` bytes, by default a
        mebibyte, and with 'overwrite' no message older than `max_age` seconds, where the transport supports an age.
        """
    @overload
    def subscribe(self, topic: str, start: str | int = "now", *, wait: _Wait = "block") -> Subscriber: ...
    @overload
    def subscribe(
        self,
        topic: list[str] | tuple[str, ...],
        start: Literal["now", "oldest"] | Mapping[str, str | int | None] = "now",
        *,
        wait: _Wait = "block",
    ) -> MultiSubscriber:
        """Subscribes to a topic, with or without a publisher yet. `start` is the next message ('now'), the oldest
        available ('oldest'), a sequence number, or a token, behind which the subscriber resumes. `wait` is 'block',
        'busy', 'yield' or 'adaptive'. A list of topics gives one MultiSubscriber of them all.
        """
    def pusher(
        self,
        queue: str,
        delivery: _Delivery | None = None,
        *,
        capacity: int | None = None,
        most_deliveries: int | None = None,
    ) -> Pusher:
        """Opens a queue for pushing, and creates the queue if it does not exist. Pushers and pullers of a queue must
        agree on its `delivery`: 'at-most-once' or 'at-least-once', by default the first of
        `capabilities()['deliveries']`. A bounded queue holds about `capacity` bytes. A message delivered
        `most_deliveries` times without an acknowledgement moves to the dead-letter queue NAME.dead.
        """
    def puller(
        self,
        queue: str,
        delivery: _Delivery | None = None,
        *,
        wait: _Wait = "block",
        capacity: int | None = None,
        most_deliveries: int | None = None,
    ) -> Puller:
        """Opens a queue for pulling, whether or not a message has been pushed yet. `delivery`, `capacity` and
        `most_deliveries` are as in `pusher`. `wait` is as in `subscribe`; a task can await only a puller whose `wait`
        is 'block'.
        """
    def remove(self, topic: str) -> None:
        """Removes the data that a topic has left. A missing topic is no error."""
    def remove_queue(self, queue: str) -> None:
        """Removes a queue with all its messages. A missing queue is no error."""
    def waiting(self, queue: str) -> int | None:
        """Returns the number of messages in a queue that no puller has taken; None where the transport does not report
        the number.
        """
    def may_drop(self, queue: str) -> str | None:
        """Returns a sentence on how the server's own settings may lose or refuse messages pushed to a queue; None if
        they do neither. RabbitMQ's policies are read by its management API, whose port `?management=PORT` names;
        policies that cannot be read are an error.
        """
    def capabilities(self) -> dict[str, Any]:
        """Returns the features of topics and queues on this bus: 'sequences' (messages have sequence numbers, and
        losses are counted), 'history' (a subscriber can start at the oldest message, or behind a token), 'max_age',
        'single_publisher' (a second publisher is refused), 'publisher_liveness' (a subscriber knows whether the topic
        has a publisher), 'whole_batches' (a subscriber that receives the first message of a batch finds all of them,
        unless the batch takes more than a sixteenth of its topic), 'policies' and 'deliveries', the default first,
        'lends' (the policies whose messages `Subscriber.lend` lends), and 'max_payload', the longest payload that is
        sure to pass, in bytes.
        """
    def close(self) -> None:
        """Closes the bus; a second call does nothing. Raises BufferError while a message of one of its topics is lent:
        close the frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Publisher:
    """Publisher of one topic. Use it in a `with` block, or close it."""

    def publish(self, data: _Data, kind: int | None = None, *, stamp: int | None = None) -> None:
        """Publishes one message: bytes with a kind of 16 to 255, a TopOfBook, a Trade, a BookLevel or a FeedStatus.
        `stamp` is in ticks of the host's clock, by default now.
        """
    def publish_batch(self, batch: Iterable[_Data], kind: int | None = None, *, stamp: int | None = None) -> None:
        """Publishes messages with one stamp, as cheaply as the transport can: events, also mixed, bytes of the given
        kind, or a numpy array of `tickpath.TOP_OF_BOOK`, `TRADE`, `BOOK_LEVEL` or `FEED_STATUS`.
        """
    def resend(self) -> None:
        """Determines the outcome of messages that the last call left unknown, and sends them again if necessary."""
    @property
    def reconnects(self) -> int | None:
        """Number of times that the connection was lost and restored; None where the number is unknown."""
    def close(self) -> None:
        """Closes the publisher; a second call does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Subscriber:
    """Subscriber of one topic: iterate over it, or poll it. Use it in a `with` block, or close it."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _Event: ...
    def poll(self, max: int = 64) -> list[_Event]:
        """Returns up to `max` available events; never waits."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until an event is available, or `timeout` seconds are over; returns True if an event is available."""
    def lend(self) -> Frame | Gap | None:
        """Returns the next message in place, as a Frame, or the Gap before it; None if no event is available. Never
        waits. Only topics whose policy is in `capabilities()['lends']` lend; others raise NotLent, and must be polled.
        Small messages are cheaper to poll.
        """
    def poll_into(self, array: Any, stamps: Any | None = None) -> int:
        """Copies available ticks into an array of `tickpath.TOP_OF_BOOK`, trades into one of `TRADE`, levels of books
        into one of `BOOK_LEVEL`, or events of a feed into one of `FEED_STATUS`, as many as fit, at most 65,536; returns
        their number. Copying stops before any other event, which `poll(1)` returns. The stamp of each goes into
        `stamps`, a uint64 array of the same length, if given.
        """
    def __aiter__(self) -> AsyncIterator[_Event]: ...
    def _attempt(self) -> _Event | None: ...
    def _is_ready(self) -> bool: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    def token(self) -> str | None:
        """Returns the present position as text: `bus.subscribe(topic, token)` resumes behind all events returned so
        far. None where there is no history, or nothing is known of the topic yet.
        """
    @property
    def publisher(self) -> int | None:
        """Process id of the publisher: 0 without a publisher, -1 if it is in another container, None where the
        transport cannot know.
        """
    @property
    def reconnects(self) -> int | None:
        """Number of times that the connection was lost and restored; None where the number is unknown."""
    @property
    def duplicates(self) -> int | None:
        """Number of duplicates, by sequence numbers of their publishers, that were not returned; None where they are
        not counted.
        """
    @property
    def late(self) -> int | None:
        """Number of messages that arrived out of order, and were not returned because they had been reported as missed;
        None where they are not counted.
        """
    @property
    def outage(self) -> str | None:
        """Reason why nothing arrives now, as a sentence: the connection is lost, and is being restored. None while
        connected.
        """
    def close(self) -> None:
        """Closes the subscriber; a second call does nothing. Raises BufferError while a message is lent: close the
        frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class MultiSubscriber:
    """Subscriber of several topics. Each topic keeps its order, and the topics take turns. Iterate over it, also by
    `async for`, or poll it: each item is `(topic, event)`. `multi["btc"]` is the subscriber of one topic, for its
    `outage`, `reconnects` and so on. Use it in a `with` block, or close it.
    """

    def __getitem__(self, topic: str, /) -> Subscriber:
        """Returns the subscriber of one topic."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[str, _Event]: ...
    def poll(self, max: int = 64) -> list[tuple[str, _Event]]:
        """Returns up to `max` available events; never waits. The next call starts with the topic behind the one that
        filled this call, so that a busy topic does not starve the others. An error of one topic is raised by the next
        call if other topics have events now.
        """
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until an event is available, or `timeout` seconds are over; returns True if an event is available."""
    def tokens(self) -> dict[str, str | None]:
        """Returns the position in each topic, by name: `bus.subscribe(topics, tokens)` resumes there. None as in
        `Subscriber.token`.
        """
    def __aiter__(self) -> AsyncIterator[tuple[str, _Event]]: ...
    def _attempt(self) -> tuple[str, _Event] | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    def close(self) -> None:
        """Closes all subscribers; a second call does nothing. While a message is lent, raises BufferError and closes
        the others: close the frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Pusher:
    """Pusher of one queue. Use it in a `with` block, or close it."""

    def push(self, data: _Data, kind: int | None = None, *, stamp: int | None = None) -> None:
        """Pushes one message; returns when the queue has the message."""
    def push_batch(self, batch: Iterable[_Data], kind: int | None = None, *, stamp: int | None = None) -> None:
        """Pushes messages with one stamp, in one pipeline for each change of kind, confirmed together."""
    def resend(self) -> None:
        """Determines the outcome of messages that the last call left unknown, and sends them again if necessary."""
    @property
    def reconnects(self) -> int | None:
        """Number of times that the connection was lost and restored; None where the number is unknown."""
    def close(self) -> None:
        """Closes the pusher; a second call does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Puller:
    """Puller of one queue: iterate over it, or pull. Use it in a `with` block, or close it."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Pulled: ...
    def pull(self, max: int = 64) -> list[Pulled]:
        """Returns up to `max` available messages; never waits for a message to arrive."""
    def acknowledge(self) -> None:
        """Acknowledges all messages returned so far; none of them is delivered again."""
    def give_back(self, pulled: Pulled) -> None:
        """Returns one message to the queue, at once; the message is delivered again, marked as redelivered."""
    def wait(self, timeout: float | None = None) -> None:
        """Waits until a message may be available, or `timeout` seconds are over, one by default. Pull afterwards in any
        case.
        """
    def __aiter__(self) -> AsyncIterator[Pulled]: ...
    def _attempt(self) -> Pulled | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    @property
    def reconnects(self) -> int | None:
        """Number of times that the connection was lost and restored; None where the number is unknown."""
    @property
    def outage(self) -> str | None:
        """Reason why nothing arrives now, as a sentence: the connection is lost, and is being restored. None while
        connected.
        """
    def close(self) -> None:
        """Closes the puller; unacknowledged messages are delivered again. A second call does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Pulled:
    """A message that was pulled from a queue."""

    @property
    def message(self) -> TopOfBook | Trade | BookLevel | FeedStatus | Message:
        """The message: a TopOfBook, a Trade, a BookLevel, a FeedStatus or a Message."""
    @property
    def redelivered(self) -> bool:
        """True if a puller may have received the message before."""
    @property
    def deliveries(self) -> int | None:
        """Number of deliveries of the message, this one included; None where they are not counted."""
    @property
    def tag(self) -> int:
        """Identifies the message to this puller, for `give_back`."""

@final
class TopOfBook:
    """The best bid and offer of an instrument."""

    def __new__(
        cls,
        bid: int,
        bid_quantity: int,
        ask: int,
        ask_quantity: int,
        event_ns: int = 0,
        symbol: int = 0,
        stamp: int = 0,
        sequence: int | None = None,
        wire_age_ns: int = 0,
    ) -> Self:
        """Creates an event to publish; `units` makes prices and quantities."""
    @staticmethod
    def from_bytes(payload: bytes) -> TopOfBook:
        """Decodes an event from its bytes."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int | None, int]]: ...
    @property
    def bid(self) -> int:
        """The best bid, in units of 10⁻⁸."""
    @property
    def bid_quantity(self) -> int:
        """The quantity open at the best bid, in units of 10⁻⁸."""
    @property
    def ask(self) -> int:
        """The best offer, in units of 10⁻⁸."""
    @property
    def ask_quantity(self) -> int:
        """The quantity open at the best offer, in units of 10⁻⁸."""
    @property
    def event_ns(self) -> int:
        """The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given."""
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock; 0 in an event that the program made."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
        made.
        """
    @property
    def wire_age_ns(self) -> int:
        """Time from the packet's arrival at the feed's host to the stamp, in nanoseconds; 0 if unknown."""

@final
class Trade:
    """One trade at the exchange."""

    def __new__(
        cls,
        price: int,
        quantity: int,
        trade_id: int = 0,
        event_ns: int = 0,
        symbol: int = 0,
        aggressor: int = 0,
        stamp: int = 0,
        sequence: int | None = None,
    ) -> Self:
        """Creates an event to publish; `units` makes prices and quantities."""
    @staticmethod
    def from_bytes(payload: bytes) -> Trade:
        """Decodes an event from its bytes."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int | None]]: ...
    @property
    def price(self) -> int:
        """The price, in units of 10⁻⁸."""
    @property
    def quantity(self) -> int:
        """The quantity, in units of 10⁻⁸."""
    @property
    def trade_id(self) -> int:
        """The exchange's id of the trade."""
    @property
    def event_ns(self) -> int:
        """The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given."""
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def aggressor(self) -> int:
        """Side of the aggressor: 1 buys, 2 sells; 0 if none was given."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock; 0 in an event that the program made."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
        made.
        """

@final
class BookLevel:
    """A level of an order book: its new quantity. A message of the exchange is as many of these in a row as it changes
    levels; OrderBook applies them.
    """

    SNAPSHOT: Final = 1
    """Flag of a snapshot's first level: the book is emptied before it."""
    LAST: Final = 2
    """Flag of a message's last level: the book is complete after it."""
    def __new__(
        cls,
        side: int,
        price: int,
        quantity: int,
        flags: int = 2,
        exchange_sequence: int = 0,
        event_ns: int = 0,
        symbol: int = 0,
        wire_age_ns: int = 0,
        stamp: int = 0,
        sequence: int | None = None,
    ) -> Self:
        """Creates an event to publish; `units` makes prices and quantities."""
    @staticmethod
    def from_bytes(payload: bytes) -> BookLevel:
        """Decodes an event from its bytes."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int, int, int | None]]: ...
    @property
    def side(self) -> int:
        """BUY for bids, SELL for offers; 0 in a message that changes no level."""
    @property
    def price(self) -> int:
        """The price of the level, in units of 10⁻⁸."""
    @property
    def quantity(self) -> int:
        """The new quantity of the level, in units of 10⁻⁸; 0 removes the level."""
    @property
    def flags(self) -> int:
        """Sum of SNAPSHOT, for the first level of a snapshot, and LAST, for the last level of a message of the
        exchange.
        """
    @property
    def exchange_sequence(self) -> int:
        """The exchange's sequence number of its message."""
    @property
    def event_ns(self) -> int:
        """The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given."""
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def wire_age_ns(self) -> int:
        """Time from the packet's arrival at the feed's host to the stamp, in nanoseconds; 0 if unknown."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock; 0 in an event that the program made."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
        made.
        """

@final
class FeedStatus:
    """An event of a feed: its connections, and the validity of its books."""

    CONNECTED: Final = 1
    """A connection to the exchange is up and subscribed."""
    DISCONNECTED: Final = 2
    """A connection has ended."""
    GAP: Final = 3
    """Updates of a book are missing."""
    BOOK_VALID: Final = 4
    """A book is valid again."""
    SILENCE: Final = 5
    """Nothing has arrived for longer than the exchange allows."""
    MAINTENANCE: Final = 6
    """The exchange announces maintenance or the end of the connection."""
    CLOCK_OFFSET: Final = 7
    """The offset of the exchange's clock was measured."""
    ALL_SYMBOLS: Final = 4294967295
    """Symbol of an event that concerns all instruments."""
    def __new__(
        cls,
        condition: int,
        symbol: int = 4294967295,
        connection: int = 0,
        value: int = 0,
        expected: int = 0,
        found: int = 0,
        event_ns: int = 0,
        stamp: int = 0,
        sequence: int | None = None,
    ) -> Self:
        """Creates an event to publish."""
    @staticmethod
    def from_bytes(payload: bytes) -> FeedStatus:
        """Decodes an event from its bytes."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int, int | None]]: ...
    @property
    def condition(self) -> int:
        """Kind of the event: CONNECTED, DISCONNECTED, GAP, BOOK_VALID, SILENCE, MAINTENANCE or CLOCK_OFFSET."""
    @property
    def symbol(self) -> int:
        """The instrument's number; ALL_SYMBOLS if the event concerns all."""
    @property
    def connection(self) -> int:
        """Connection of the event, from 0."""
    @property
    def value(self) -> int:
        """A silence, or the offset of the exchange's clock, in nanoseconds; 0 for other conditions."""
    @property
    def expected(self) -> int:
        """Sequence number that the next update should have followed, for a gap."""
    @property
    def found(self) -> int:
        """Sequence number that it follows, for a gap."""
    @property
    def event_ns(self) -> int:
        """Time of the event at the feed's host, in nanoseconds since the Unix epoch."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock; 0 in an event that the program made."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
        made.
        """

@final
class OrderBook:
    """The order book of one instrument, from the events of its feed. It names why it is not valid: it is empty and
    invalid until the end of a snapshot, and again after a gap, the end of the last connection, or a loss of messages.
    """

    def __new__(cls, symbol: int) -> Self:
        """Creates the book of an instrument, by its number."""
    def apply(self, event: _Event) -> bool:
        """Applies an event of a subscriber: a BookLevel, a FeedStatus, or a Gap of the topic; other events and other
        instruments change nothing. A Gap names no instrument: apply it to each book of the subscriber. Returns True if
        the event completes a message of the exchange, so that the book can be read if it is valid.
        """
    @property
    def is_valid(self) -> bool:
        """True if the book may be used."""
    @property
    def invalid_because(self) -> str | None:
        """Reason why the book must not be used, as a sentence; None if it is valid."""
    @property
    def best(self) -> tuple[int, int, int, int] | None:
        """The best bid, its quantity, the best offer and its quantity; None if the book is not valid or a side is
        empty.
        """
    def bids(self, depth: int | None = None) -> list[tuple[int, int]]:
        """Returns the bids, best first, up to a depth: the price and the quantity of each. Check `is_valid` first."""
    def asks(self, depth: int | None = None) -> list[tuple[int, int]]:
        """Returns the offers, best first, up to a depth: the price and the quantity of each. Check `is_valid` first."""
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def sequence(self) -> int:
        """The exchange's sequence number of the last message; 0 before the first."""
    @property
    def event_ns(self) -> int:
        """The exchange's time of the last message, in nanoseconds since the Unix epoch; 0 if none was given."""

@final
class Trigger:
    """A condition on a price, or two conditions: `a & b` if both must hold at once, `a | b` if one suffices."""

    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __and__(self, value: object, /) -> Trigger: ...
    def __or__(self, value: object, /) -> Trigger: ...
    def __rand__(self, value: object, /) -> Trigger: ...
    def __ror__(self, value: object, /) -> Trigger: ...

@final
class Message:
    """A message of a kind that has no class of its own."""

    def __new__(cls, kind: int, payload: bytes, stamp: int = 0, sequence: int | None = None) -> Self:
        """Creates a message to publish."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, bytes, int, int | None]]: ...
    @property
    def kind(self) -> int:
        """Kind of the message, 16 to 255."""
    @property
    def payload(self) -> bytes:
        """Bytes of the message."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock; 0 in a message that the program made."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none, and in a message that the program
        made.
        """

@final
class Foreign:
    """A message of another program, without Tickpath's header."""

    def __new__(cls, payload: bytes, sequence: int | None = None, details: str | None = None) -> Self:
        """Creates an event to compare with."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[bytes, int | None, str | None]]: ...
    @property
    def payload(self) -> bytes:
        """Bytes of the message."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none."""
    @property
    def details(self) -> str | None:
        """Details beside the bytes, as a JSON object, or None: for Kafka 'key', 'headers' and 'tombstone', for NATS and
        RabbitMQ 'headers'.
        """

@final
class Gap:
    """Messages that this subscriber will never receive; `missed` is None where their number is unknown."""

    __match_args__: Final = ("missed",)
    def __new__(cls, missed: int | None) -> Self:
        """Creates an event to compare with."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int | None]]: ...
    @property
    def missed(self) -> int | None:
        """Number of missed messages; None where the number is unknown."""

@final
class Frame:
    """A message that is lent in place, until the frame is closed. Use it in a `with` block, or close it."""

    @property
    def kind(self) -> int:
        """Kind of the message, 16 to 255."""
    @property
    def stamp(self) -> int:
        """Time of publication, in ticks of the publisher's clock."""
    @property
    def sequence(self) -> int | None:
        """Sequence number in the topic, from 0; None where the transport counts none."""
    @property
    def data(self) -> memoryview:
        """Bytes of the message in place, as a new read-only view each time. The frame cannot be closed while a view
        lives, or an object made from a view, such as an array.
        """
    def close(self) -> None:
        """Gives the message back; a second call does nothing. Raises BufferError while a view of its data lives."""
    def __bytes__(self) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Orders:
    """A session with an OMS, for one account. Poll or wait more often than its heartbeat time. Use it in a `with`
    block, or close it: orders at a venue keep working.
    """

    def submit(
        self,
        symbol: int | str,
        side: int,
        price: int | None,
        quantity: int,
        *,
        order_type: Literal["limit", "market"] = "limit",
        time_in_force: Literal["day", "gtc", "gtd", "ioc", "fok"] = "day",
        cause: _Cause | None = None,
        id: int | None = None,
        trigger: Trigger | None = None,
        post_only: bool = False,
        reduce_only: bool = False,
        self_trade: Literal["cancel_maker", "cancel_taker", "cancel_both"] | None = None,
        trade_mode: Literal["cash", "cross", "isolated"] | None = None,
        client_id: str | None = None,
        expire_ns: int | None = None,
    ) -> int:
        """Sends a new order; returns the id for `cancel` and `replace`. A 'limit' order has a price, a 'market' order
        None; the order works for the 'day', 'gtc', 'gtd', 'ioc' or 'fok'. `cause` is the event that the order answers.
        `id` is an id of your own, new in this session today, and so known before the call, whatever interrupts it. With
        a `trigger`, as made by `tickpath.when`, the order waits at the OMS until the condition holds. The venue rejects
        a `post_only` order that would trade at once, and a `reduce_only` order only reduces a position. `self_trade`
        names the order to cancel instead of a trade between two orders of one owner, None leaves that to the account's
        setting at the venue; `trade_mode` is the margin, None as the instrument requires. The simulated exchange knows
        `post_only` alone, and rejects an order with any of the others. `client_id` is a text of your own, up to 36
        printable characters, which no open order of the account has. `expire_ns` is the end of a 'gtd' order, in
        nanoseconds since the Unix epoch: the OMS cancels the order then, and reports it as expired. An order with a
        `trigger` has neither.
        """
    def cancel(self, id: int | None = None, *, cause: _Cause | None = None, client_id: str | None = None) -> int:
        """Requests the cancellation of an order, by the id that `submit` returned, or by the `client_id` of an order of
        any session of the account: its latest order with this text. Returns the id of this request.
        """
    def replace(
        self, id: int, *, price: int, quantity: int, cause: _Cause | None = None, trigger: Trigger | None = None
    ) -> int:
        """Requests another price and total quantity of an order, the filled quantity included, by the id that `submit`
        returned; returns the id of this request. With a `trigger`, an order that waits for its trigger gets this
        trigger instead.
        """
    def cancel_all(self, symbol: int | str | None = None, *, cause: _Cause | None = None) -> int:
        """Requests the cancellation of all open orders of this session and account, or of those in one symbol; returns
        the id of this request. Each order gets an answer of its own.
        """
    def status(self, id: int | None = None, *, client_id: str | None = None) -> int:
        """Queries the state of an order at the OMS, by the id that `submit` returned, or by the `client_id` of an order
        of any session of the account: its latest order with this text. Returns the id of this request. The answer is a
        Report whose `exec_type` is 'order_status', with the id of this request as its `client_order_id`.
        """
    def client_id(self, order_id: int) -> str | None:
        """Returns the `client_id` of an order by the OMS's id of the order, a report's `order_id`; None if the order
        has none, or if the OMS has not reported the order to this session yet. The session keeps those of the latest
        65,536 orders that have one.
        """
    @property
    def open(self) -> dict[int, Report]:
        """Open orders, by the id that `submit` returned, each with its last report, according to the reports returned
        so far. A session with `since='start'` first returns the reports of the whole day.
        """
    @property
    def positions(self) -> dict[int, int]:
        """Quantity bought less quantity sold, by instrument, according to the reports returned so far: of the whole day
        with `since='start'`, else since the logon. Positions held at the start of the day are not known here.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Told: ...
    def poll(self, max: int = 64) -> list[_Told]:
        """Returns up to `max` available events; never waits."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until an event is available, or `timeout` seconds are over; returns True if an event is available."""
    def __aiter__(self) -> AsyncIterator[_Told]: ...
    def _attempt(self) -> _Told | None: ...
    def _sleeps(self) -> tuple[int, float] | None: ...
    def _is_awake(self) -> None: ...
    @property
    def session(self) -> int:
        """Number of the session, among the user's sessions."""
    @property
    def requests(self) -> int:
        """Number of requests sent through this object."""
    @property
    def connected(self) -> bool:
        """True while requests can be sent."""
    @property
    def heartbeat(self) -> float:
        """Seconds without a poll after which the OMS considers the client dead."""
    def close(self) -> None:
        """Closes the session; a second call does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Report:
    """The outcome of an order or a request. A denial has only the fields from `number` to `exec_type` ('denied') and
    `account`: an order that the denied request was to change stays as it was.
    """

    def __new__(cls, **fields: int | str | Denial | None) -> Self:
        """Creates a report, for a test of `on_report`: of the fields that are not given, `exec_type` and `status` are
        'new', `live` is True, and all others are 0.
        """
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str | Denial | None]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def number(self) -> int:
        """Sequence number of the report in the session."""
    @property
    def stamp(self) -> int:
        """Time at which the OMS sent the report, in ticks of its host's clock."""
    @property
    def live(self) -> bool:
        """False for a replayed report, first sent while this client was not connected."""
    @property
    def denial(self) -> Denial | None:
        """Reason why the OMS denied the request; None in other reports."""
    @property
    def order_id(self) -> int:
        """The OMS's id of the order."""
    @property
    def client_order_id(self) -> int:
        """Id of the request that the report answers; 0 if it answers none."""
    @property
    def exec_type(self) -> str:
        """Type of the report: 'pending_new', 'new', 'trade', 'canceled', 'replaced', 'rejected', 'cancel_rejected',
        'expired', 'denied' and others, named as in FIX.
        """
    @property
    def status(self) -> str | None:
        """State of the order now: 'pending_new', 'new', 'partially_filled', 'filled', 'canceled', 'rejected' and
        others, named as in FIX; None in a denial.
        """
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def account(self) -> int:
        """The account of the order."""
    @property
    def side(self) -> int:
        """BUY or SELL; 0 in a report without a side."""
    @property
    def price(self) -> int:
        """Limit price of the order after this report."""
    @property
    def last_price(self) -> int:
        """Price of this fill; 0 if the report is no fill."""
    @property
    def last_quantity(self) -> int:
        """Quantity of this fill; 0 if the report is no fill."""
    @property
    def cumulative_quantity(self) -> int:
        """Quantity filled so far."""
    @property
    def leaves_quantity(self) -> int:
        """Quantity still open."""
    @property
    def reason(self) -> int:
        """The venue's own reason code of a rejection."""
    @property
    def venue(self) -> int:
        """The venue's number."""
    @property
    def venue_order_id(self) -> int:
        """The venue's id of the order; 0 if the venue has reported none."""
    @property
    def exec_id(self) -> int:
        """The venue's id of this fill; 0 if the report is no fill."""
    @property
    def venue_sequence(self) -> int:
        """The venue's count of events of this order, from 1; 0 where the venue gives none."""
    @property
    def venue_stamp(self) -> int:
        """Time at which the venue received the request or made the event, in ticks of the host's clock; 0 if unknown.
        """
    @property
    def manual(self) -> bool:
        """True if an admin entered the report by hand."""

@final
class ReportDetail:
    """The detail of a report, which the exchange sent beside it. It follows its report, which has the same `order_id`
    and `exec_id`; most reports have none.
    """

    def __new__(cls, **fields: int | str) -> Self:
        """Creates a detail, for a test of `on_detail`: of the fields that are not given, `liquidity` is 'unknown', and
        all others are 0 or empty.
        """
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def number(self) -> int:
        """Sequence number of the detail in the session; details are numbered apart from reports."""
    @property
    def stamp(self) -> int:
        """Time at which the OMS sent the detail, in ticks of its host's clock."""
    @property
    def order_id(self) -> int:
        """The OMS's id of the order."""
    @property
    def exec_id(self) -> int:
        """The venue's id of the fill; 0 if the report is no fill."""
    @property
    def fee(self) -> int:
        """Fee of the fill, in 10⁻¹⁶ of its currency; negative for a rebate."""
    @property
    def fee_currency(self) -> str:
        """Currency of the fee; empty if there is no fee."""
    @property
    def liquidity(self) -> str:
        """Role of the order in the fill: 'maker', 'taker' or 'unknown'."""
    @property
    def venue_received_ns(self) -> int:
        """Time at which the exchange received the request or made the event, in nanoseconds since the Unix epoch; 0 if
        unknown.
        """
    @property
    def venue_sent_ns(self) -> int:
        """Time at which the exchange sent the report, in nanoseconds since the Unix epoch; 0 if unknown."""
    @property
    def text(self) -> str:
        """The exchange's reason, as its text; empty if there is none."""

@final
class Denial:
    """Reason why the OMS denied a request: the check, its limit, and the value that broke the limit, in the unit of the
    check.
    """

    def __new__(cls, **fields: int) -> Self:
        """Creates a denial from its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def code(self) -> int:
        """Code of the check, as listed in docs/risk-checks.md."""
    @property
    def limit(self) -> int:
        """Limit of the check."""
    @property
    def value(self) -> int:
        """Value that the request would have led to."""
    @property
    def name(self) -> str:
        """Name of the check, as listed in docs/risk-checks.md; empty if this version does not know the code."""
    @property
    def sentence(self) -> str:
        """Reason and remedy, as a sentence."""

@final
class NotTaken:
    """A request that the OMS did not accept, and never will; the client does not send it again by itself."""

    def __new__(cls, **fields: int | str) -> Self:
        """Creates the event from its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def client_order_id(self) -> int:
        """Id of the request, as returned by the call."""
    @property
    def request(self) -> str:
        """Kind of the request: 'submit', 'cancel', 'replace' or 'status'."""

@final
class InDoubt:
    """A request in doubt: the OMS may have accepted it, and the order may work. Do not send the request again before
    `tickpath orders` has shown its state.
    """

    def __new__(cls, **fields: int | str) -> Self:
        """Creates the event from its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def client_order_id(self) -> int:
        """Id of the request, as returned by the call."""
    @property
    def request(self) -> str:
        """Kind of the request: 'submit', 'cancel', 'replace' or 'status'."""

@final
class Notice:
    """An event of the session: `what` for programs, `sentence` for people."""

    def __new__(cls, **fields: str) -> Self:
        """Creates the event from its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def what(self) -> str:
        """Keyword for programs: connected, disconnected, failed, other_journal, said_again, forgotten, and in a run
        waiting.
        """
    @property
    def sentence(self) -> str:
        """The event as a sentence, for people."""

@final
class Hop:
    """A stretch of your own code, each pass of which is a sample: `with hop:` around it, `@hop` above a function, or
    two stamps. `tickpath.lab.hop` creates a hop, and `tickpath.lab.hops` returns the measurements. Threads may share a
    hop, and blocks may be nested, also blocks of one hop. Tasks that take turns within a block would take each other's
    start times: there use `since`, or decorate the coroutine function.
    """

    def __new__(cls, name: str, samples: int = 1_000_000) -> Self: ...
    def since(self, stamp: int) -> None:
        """Records a sample from a stamp of this host to now: `hop.since(tick.stamp)` measures a tick's way to this
        call.
        """
    def between(self, earlier: int, later: int) -> None:
        """Records a sample from one stamp to a later one, both of this host; a sample to an earlier stamp is counted as
        negative, and in no percentile.
        """
    def clear(self) -> None:
        """Discards all samples, so that measurement starts here, as after a warm-up."""
    @property
    def name(self) -> str:
        """Name of the hop; its name in a result is own.NAME."""
    @property
    def samples(self) -> int:
        """Max samples stored; samples beyond it are only counted."""
    @property
    def count(self) -> int:
        """Number of samples stored."""
    @property
    def left_out(self) -> int:
        """Number of samples that did not fit."""
    def __call__(self, function: _Function, /) -> _Function: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _kind: object, _value: object, _trace: object, /) -> None: ...
    @staticmethod
    def _result(hops: list[Hop], command: str, runtime: str, record_cost_ns: float) -> str | None: ...

@final
class Recording:
    """The tables of a log. Each table reads the log when a consumer takes its rows."""

    @property
    def place(self) -> str:
        """The place of the log."""
    @property
    def tops_of_book(self) -> Table:
        """The best bids and offers."""
    @property
    def trades(self) -> Table:
        """The trades."""
    @property
    def book_levels(self) -> Table:
        """The levels of order books, as they changed."""
    @property
    def feed_events(self) -> Table:
        """The events of feeds: their connections, and the validity of their books."""
    @property
    def messages(self) -> Table:
        """The messages of all other kinds, as bytes."""
    @property
    def gaps(self) -> Table:
        """Losses of messages before they reached the log, with the number of messages: null where it is unknown."""

@final
class Journal:
    """The tables of the journal of an OMS. Each table replays the journal when a consumer takes its rows."""

    @property
    def place(self) -> str:
        """The place of the journal."""
    @property
    def requests(self) -> Table:
        """The requests that the OMS received, each with its immediate outcome."""
    @property
    def reports(self) -> Table:
        """The reports of the OMS's venues."""
    @property
    def denials(self) -> Table:
        """The requests that the OMS's checks denied, with the reasons."""

@final
class Table:
    """Rows of one kind, for any consumer of Arrow streams: polars.DataFrame(table), pyarrow.table(table). Each consumer
    reads the log anew, from the oldest row to the last one available.
    """

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def trade(
    strategy: object,
    stop: object,
    ticks: list[Subscriber],
    orders: Orders,
    sleeps: bool,
    is_recording: bool,
    linger: float,
    denied: dict[str, int],
) -> None:
    """Runs the strategy until it returns `stop`, or to the end of a recording and until no report has arrived for
    `linger` seconds after it. In either case `denied` then holds the number of requests that the OMS denied, by the
    check's name.
    """

_Event: TypeAlias = TopOfBook | Trade | BookLevel | FeedStatus | Message | Foreign | Gap
_Data: TypeAlias = Buffer | TopOfBook | Trade | BookLevel | FeedStatus | Message | Foreign
_Told: TypeAlias = Report | ReportDetail | Gap | NotTaken | InDoubt | Notice
_Cause: TypeAlias = TopOfBook | Trade | BookLevel | Message | int
