from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Final, Literal, NoReturn, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer

__all__ = [
    "Blotter",
    "Bridge",
    "Bus",
    "Carried",
    "Denial",
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
    "Orders",
    "Publisher",
    "Pulled",
    "Puller",
    "Pusher",
    "Recording",
    "Report",
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
    """Connects to where topics and queues live: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST,
    kafka://HOST.
    """

def now() -> int:
    """Now, in ticks of the host's clock, as stamps are."""

def ns_between(earlier: int, later: int) -> int:
    """Nanoseconds from one stamp to a later one, negative if it is earlier. Both are of this host."""

def utc_ns(stamp: int) -> int:
    """A stamp of this host as UTC, in nanoseconds since the Unix epoch."""

def stamp_at(utc_ns: int) -> int:
    """The stamp on this host of a time in UTC, in nanoseconds since the Unix epoch: for what was stamped elsewhere, or long
    ago.
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
    """Carries topics from one bus to another, on threads of its own, until it is closed. Returns when both ends are
    open: what is published from then on is carried. `topics` is a name, several names, or a dict of names at the source
    with those at the target. It begins with the next message ('now'), the oldest ('oldest') or a sequence number; with
    a folder to `resume` in, where it was before. What other programs publish gets `foreign_kind`. It waits as
    `Bus.subscribe` says, and opens the target's topics by `policy`, `capacity` and `max_age` as `Bus.publisher` does.
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
    `account`; a symbol goes by its number in the OMS, or by its name there or in `symbols`, where no name of the OMS
    may have another number. Reports begin with what is new ('now') or with the first of the day ('start'). `heartbeat`
    and `connect_timeout` are seconds; requests get ids from `first_id` on, which must be new in this session today: it
    is made of the time if it is not given.
    """
def when(
    symbol: int | str,
    price: Literal["last", "bid", "ask"] = "last",
    *,
    at_least: int | None = None,
    at_most: int | None = None,
) -> Trigger:
    """That a price of an instrument, its 'last' trade, best 'bid' or best 'ask', must get to `at_least`, or to `at_most`;
    one of the two is given. An order with `trigger=` waits at the OMS for it.
    """

def recording(url: str, topic: str) -> Recording:
    """A topic that lies in a log, as tables: of a recording, file:///FOLDER, or of what of a topic is there, shm://."""
def journal(folder: str | PathLike[str]) -> Journal:
    """The journal of an OMS, as tables: the folder in which it lies, or its URL, file:///FOLDER."""
def blotter(
    folder: str | PathLike[str],
    *,
    day: int | None = None,
    first_record: int | None = None,
    marks: dict[str, int] | None = None,
    starts: dict[str, int] | None = None,
) -> Blotter:
    """The orders, fills and positions of a day of an OMS's journal: of the day that goes on, of the one that ended with
    the date `day`, like 20261128, or of the one that begins with `first_record`. `marks` are prices to value positions
    at, `starts` what they cost at the start of the day, by the names of instruments, in units of 10⁻⁸.
    """
@final
class Blotter:
    """The orders, fills and positions of a day, as they were when it was opened. Profit is by the average cost method."""

    @property
    def place(self) -> str:
        """Where its journal lies."""
    @property
    def day(self) -> int | None:
        """The date that the day ended with; None if it has not ended."""
    @property
    def first_record(self) -> int:
        """Its first record."""
    @property
    def before_record(self) -> int:
        """The record behind the last one that was read."""
    @property
    def orders(self) -> Table:
        """The orders, in the order of their entry."""
    @property
    def fills(self) -> Table:
        """The fills, in the order of their first reports."""
    @property
    def positions(self) -> Table:
        """The positions with their profit, by account and instrument."""

@final
class Bridge:
    """Carries topics from one bus to another, until it is closed. Use it in a `with` block, or close it: what has ended
    it before is raised there, unless `wait` has raised it. Threads may share it.
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it has ended, or `timeout` seconds are over; True if it has ended. Raises what has ended it,
        unless that was `close`.
        """
    def told(self) -> list[str]:
        """What it had to tell since the last call, in sentences, oldest first: that it carries, each loss, a target
        that takes nothing now. It keeps the last 1,000.
        """
    def totals(self) -> dict[str, Carried]:
        """What was carried so far, by the topics' names at the source."""
    def close(self) -> None:
        """Ends it, and returns when it has ended: about a tenth of a second. Raises what had ended it before, unless
        that was raised already. A second time does nothing.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Carried:
    """What was carried of one topic so far."""

    @property
    def messages(self) -> int:
        """Messages."""
    @property
    def foreign(self) -> int:
        """Of them, those that came from other programs."""
    @property
    def elsewhere(self) -> int:
        """Of them, those that another host had stamped, and which got the time at which they came."""
    @property
    def too_long(self) -> int:
        """Messages that were dropped because they are longer than the target takes."""
    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
    @property
    def gaps(self) -> int:
        """Losses at the source or on the way here, each of one message or more; the target's subscribers are told of
        them.
        """
    @property
    def missed(self) -> int:
        """Messages that were lost in them, as far as somebody counted."""
    @property
    def uncounted(self) -> int:
        """Losses of which nobody knows how many messages they were."""
    @property
    def refused(self) -> int:
        """Messages that a full target refused at first, and took later."""
    @property
    def left(self) -> int:
        """Messages that had come when it was closed, and were not published."""
    @property
    def delay_p50_ns(self) -> int | None:
        """The median of how long it had each message, in nanoseconds; None on too few messages."""
    @property
    def delay_p99_ns(self) -> int | None:
        """The 99th percentile of that."""

@final
class Bus:
    """Where topics and queues live. Threads may share it. Use it in a `with` block, or close it; what it opened stays
    open.
    """

    def publisher(
        self, topic: str, policy: _Policy | None = None, *, capacity: int | None = None, max_age: float | None = None
    ) -> Publisher:
        """Opens a topic for publishing. A full topic does as `policy` says: 'overwrite', 'fail' or 'keep'; if none
        is named, as the first of `capabilities()['policies']`. It holds about `capacity` bytes, a mebibyte if none are
        given, and with 'overwrite' nothing older than `max_age` seconds, where the transport can do that.
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
        """Subscribes to a topic, whether or not somebody publishes it yet. It begins with the next message ('now'), the
        oldest that is there ('oldest'), a sequence number, or behind a token. It waits 'block'ing, 'busy', by 'yield'
        or 'adaptive'. A list of topics gives one MultiSubscriber of them all.
        """
    def pusher(
        self,
        queue: str,
        delivery: _Delivery | None = None,
        *,
        capacity: int | None = None,
        most_deliveries: int | None = None,
    ) -> Pusher:
        """Opens a queue for pushing, and makes it if it is not there. Pushers and pullers of one queue agree on its
        `delivery`: 'at-most-once' or 'at-least-once', by default the first of `capabilities()['deliveries']`. It holds
        about `capacity` bytes, where it has a bound. What was delivered `most_deliveries` times, and never
        acknowledged, goes into the queue NAME.dead.
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
        """Opens a queue for pulling, whether or not somebody has pushed yet. `delivery`, `capacity` and
        `most_deliveries` are those of `pusher`. It waits as a subscriber does; a task can await one that waits by
        'block' only.
        """
    def remove(self, topic: str) -> None:
        """Removes what a topic has left. A topic that does not exist is no error."""
    def remove_queue(self, queue: str) -> None:
        """Removes a queue with all that is in it. A queue that does not exist is no error."""
    def waiting(self, queue: str) -> int | None:
        """How many messages wait in a queue that nobody has taken; None where the transport cannot tell."""
    def may_drop(self, queue: str) -> str | None:
        """How the server may lose or refuse what is pushed to a queue, by its own settings, in a sentence; None if it does
        neither. RabbitMQ's policies are read by its management API, whose port `?management=PORT` names; where nobody
        knows, that is an error."""
    def capabilities(self) -> dict[str, Any]:
        """What topics can do here, and how queues deliver: 'sequences' (messages have numbers, and losses are counted),
        'history' (a subscriber can start at the oldest message, or behind a token), 'max_age', 'single_publisher' (a
        second one is refused), 'publisher_liveness' (a subscriber knows whether somebody publishes), 'whole_batches'
        (who sees the first message of one finds all, unless it takes more than a sixteenth of its topic), 'policies'
        and 'deliveries', the usual one first, 'lends' (the policies whose messages `Subscriber.lend` lends), and
        'max_payload', the longest payload that is sure to pass, in bytes.
        """
    def close(self) -> None:
        """Closes it; a second time does nothing. While a message of one of its topics is lent it raises BufferError
        instead: close the frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Publisher:
    """Publishes one topic. Use it in a `with` block, or close it."""

    def publish(self, data: _Data, kind: int | None = None, *, stamp: int | None = None) -> None:
        """Publishes one message: bytes of a kind of 16 to 255, or a TopOfBook or Trade. Its stamp is now, in ticks of
        the host's clock, unless it is given.
        """
    def publish_batch(self, batch: Iterable[_Data], kind: int | None = None, *, stamp: int | None = None) -> None:
        """Publishes messages of one stamp, as cheaply as the transport can: ticks, trades and messages, also mixed,
        bytes of this kind, or a numpy array of `tickpath.TOP_OF_BOOK` or `tickpath.TRADE`.
        """
    def resend(self) -> None:
        """Finds out what has become of what the last call left unknown, and sends it again if need be."""
    @property
    def reconnects(self) -> int | None:
        """How often its connection was lost and made again; None where nobody knows."""
    def close(self) -> None:
        """Closes it; a second time does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Subscriber:
    """Receives one topic: iterate over it, or poll it. Use it in a `with` block, or close it."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _Event: ...
    def poll(self, max: int = 64) -> list[_Event]:
        """Up to `max` events that are there; never waits."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is something, or `timeout` seconds are over; True if there is."""
    def lend(self) -> Frame | Gap | None:
        """The next message where it lies, as a Frame, or the Gap before it; None if nothing is there. Never waits.
        Topics lend whose policy is in `capabilities()['lends']`; others raise NotLent, and are polled. Small messages
        are cheaper polled.
        """
    def poll_into(self, array: Any, stamps: Any | None = None) -> int:
        """Copies ticks into an array of `tickpath.TOP_OF_BOOK`, or trades into one of `tickpath.TRADE`, as many as fit
        and are there, at most 65,536; gives how many. It stops in front of anything else, which `poll(1)` hands over.
        The stamp of each goes into `stamps`, an array of uint64 that is as long, if it is given.
        """
    def __aiter__(self) -> AsyncIterator[_Event]: ...
    def _attempt(self) -> _Event | None: ...
    def _is_ready(self) -> bool: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    def token(self) -> str | None:
        """Where it stands, as text: `bus.subscribe(topic, token)` goes on behind all that was handed over. None where
        there is no history, or nothing is known of the topic yet.
        """
    @property
    def publisher(self) -> int | None:
        """The process that publishes, 0 if there is none, -1 if it is in another container, None where the transport cannot
        know.
        """
    @property
    def reconnects(self) -> int | None:
        """How often its connection was lost and made again; None where nobody knows."""
    @property
    def duplicates(self) -> int | None:
        """How many messages came again, by the numbers of their publishers, and were not handed over; None where nobody
        counts.
        """
    @property
    def late(self) -> int | None:
        """How many messages came behind a later one of their publisher, and were not handed over, for they had been told
        as missed; None where nobody counts.
        """
    @property
    def outage(self) -> str | None:
        """Why nothing comes now, in a sentence: its connection is lost, and is being made again. None while it stands."""
    def close(self) -> None:
        """Closes it; a second time does nothing. While a message is lent it raises BufferError instead: close the
        frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class MultiSubscriber:
    """Receives several topics. Each topic keeps its order, and the topics take turns. Iterate over it, also by `async
    for`, or poll it: each item is `(topic, event)`. `multi["btc"]` is the subscriber of one topic, for its `outage`,
    `reconnects` and so on. Use it in a `with` block, or close it.
    """

    def __getitem__(self, topic: str, /) -> Subscriber:
        """The subscriber of one topic."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[str, _Event]: ...
    def poll(self, max: int = 64) -> list[tuple[str, _Event]]:
        """Up to `max` events that are there; never waits. The next call starts with the topic behind the one that filled
        this call, so that a busy topic does not starve the others. An error of one topic is raised by the next call, if
        others have events now.
        """
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is something, or `timeout` seconds are over; True if there is."""
    def tokens(self) -> dict[str, str | None]:
        """The position in each topic, by name: `bus.subscribe(topics, tokens)` resumes there. None as in
        `Subscriber.token`.
        """
    def __aiter__(self) -> AsyncIterator[tuple[str, _Event]]: ...
    def _attempt(self) -> tuple[str, _Event] | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    def close(self) -> None:
        """Closes all of them; a second time does nothing. While a message is lent it raises BufferError instead, and
        closes the others: close the frames first.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Pusher:
    """Pushes to one queue. Use it in a `with` block, or close it."""

    def push(self, data: _Data, kind: int | None = None, *, stamp: int | None = None) -> None:
        """Pushes one message; returns when the queue has it."""
    def push_batch(self, batch: Iterable[_Data], kind: int | None = None, *, stamp: int | None = None) -> None:
        """Pushes messages of one stamp, as few pipelines as there are changes of the kind, confirmed together."""
    def resend(self) -> None:
        """Finds out what has become of what the last call left unknown, and sends it again if need be."""
    @property
    def reconnects(self) -> int | None:
        """How often its connection was lost and made again; None where nobody knows."""
    def close(self) -> None:
        """Closes it; a second time does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Puller:
    """Pulls from one queue: iterate over it, or pull. Use it in a `with` block, or close it."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Pulled: ...
    def pull(self, max: int = 64) -> list[Pulled]:
        """Up to `max` messages that are there; never waits for one to come."""
    def acknowledge(self) -> None:
        """Everything that was handed over so far is done with, and never comes again."""
    def give_back(self, pulled: Pulled) -> None:
        """One message that was handed over goes back, at once, and comes again, marked."""
    def wait(self, timeout: float | None = None) -> None:
        """Waits until there may be something, or `timeout` seconds are over, one if none are given. Pull behind it in
        any case.
        """
    def __aiter__(self) -> AsyncIterator[Pulled]: ...
    def _attempt(self) -> Pulled | None: ...
    def _watch(self) -> int: ...
    def _unwatch(self) -> None: ...
    @property
    def reconnects(self) -> int | None:
        """How often its connection was lost and made again; None where nobody knows."""
    @property
    def outage(self) -> str | None:
        """Why nothing comes now, in a sentence: its connection is lost, and is being made again. None while it stands."""
    def close(self) -> None:
        """Closes it; what is not acknowledged comes again. A second time does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Pulled:
    """A message of a queue."""

    @property
    def message(self) -> TopOfBook | Trade | Message:
        """The message: a TopOfBook, a Trade or a Message."""
    @property
    def redelivered(self) -> bool:
        """A puller may have had it already."""
    @property
    def deliveries(self) -> int | None:
        """How often it was delivered, this time included; None where that is not counted."""
    @property
    def tag(self) -> int:
        """Names it to this puller, for `give_back`."""

@final
class TopOfBook:
    """The best bid and offer."""

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
    ) -> Self:
        """One to publish; `units` makes prices and quantities."""
    @staticmethod
    def from_bytes(payload: bytes) -> TopOfBook:
        """The one whose bytes these are."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int | None]]: ...
    @property
    def bid(self) -> int:
        """The best bid, in units of 10⁻⁸."""
    @property
    def bid_quantity(self) -> int:
        """What is open at the best bid, in units of 10⁻⁸."""
    @property
    def ask(self) -> int:
        """The best offer, in units of 10⁻⁸."""
    @property
    def ask_quantity(self) -> int:
        """What is open at the best offer, in units of 10⁻⁸."""
    @property
    def event_ns(self) -> int:
        """The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given."""
    @property
    def symbol(self) -> int:
        """The instrument's number."""
    @property
    def stamp(self) -> int:
        """When it was published, in ticks of its publisher's clock; 0 in one that was made here."""
    @property
    def sequence(self) -> int | None:
        """Its number in the topic, from 0; None where the transport counts none, and in one that was made here."""

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
        """One to publish; `units` makes prices and quantities."""
    @staticmethod
    def from_bytes(payload: bytes) -> Trade:
        """The one whose bytes these are."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int, int, int, int, int | None]]: ...
    @property
    def price(self) -> int:
        """At this price, in units of 10⁻⁸."""
    @property
    def quantity(self) -> int:
        """So much, in units of 10⁻⁸."""
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
        """The side of who took: 1 buys, 2 sells; 0 if none was given."""
    @property
    def stamp(self) -> int:
        """When it was published, in ticks of its publisher's clock; 0 in one that was made here."""
    @property
    def sequence(self) -> int | None:
        """Its number in the topic, from 0; None where the transport counts none, and in one that was made here."""

@final
class Trigger:
    """A price that a market must reach, or two of them: `a & b` if both must hold at once, `a | b` if one is enough."""

    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __and__(self, value: object, /) -> Trigger: ...
    def __or__(self, value: object, /) -> Trigger: ...
    def __rand__(self, value: object, /) -> Trigger: ...
    def __ror__(self, value: object, /) -> Trigger: ...

@final
class Message:
    """A message of any other kind."""

    def __new__(cls, kind: int, payload: bytes, stamp: int = 0, sequence: int | None = None) -> Self:
        """One to publish."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, bytes, int, int | None]]: ...
    @property
    def kind(self) -> int:
        """What it is, 16 to 255."""
    @property
    def payload(self) -> bytes:
        """Its bytes."""
    @property
    def stamp(self) -> int:
        """When it was published, in ticks of its publisher's clock; 0 in one that was made here."""
    @property
    def sequence(self) -> int | None:
        """Its number in the topic, from 0; None where the transport counts none, and in one that was made here."""

@final
class Foreign:
    """What another program published, without our header."""

    def __new__(cls, payload: bytes, sequence: int | None = None, details: str | None = None) -> Self:
        """One to compare with."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[bytes, int | None, str | None]]: ...
    @property
    def payload(self) -> bytes:
        """Its bytes."""
    @property
    def sequence(self) -> int | None:
        """Its number in the topic, from 0; None where the transport counts none."""
    @property
    def details(self) -> str | None:
        """Details beside the bytes, as an object in JSON, or None: of Kafka 'key', 'headers' and 'tombstone', of NATS
        and RabbitMQ 'headers'."""

@final
class Gap:
    """Messages that this subscriber will never see; `missed` is None where nobody knows how many."""

    __match_args__: Final = ("missed",)
    def __new__(cls, missed: int | None) -> Self:
        """One to compare with."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int | None]]: ...
    @property
    def missed(self) -> int | None:
        """How many, as far as somebody counted; else None."""

@final
class Frame:
    """A message that is lent where it lies, until it is closed. Use it in a `with` block, or close it."""

    @property
    def kind(self) -> int:
        """What it is, 16 to 255."""
    @property
    def stamp(self) -> int:
        """When it was published, in ticks of its publisher's clock."""
    @property
    def sequence(self) -> int | None:
        """Its number in the topic, from 0; None where the transport counts none."""
    @property
    def data(self) -> memoryview:
        """Its bytes where they lie, a new view each time, which can only be read. As long as one lives, or something
        made of it such as an array, the frame cannot be closed.
        """
    def close(self) -> None:
        """Gives it back; a second time does nothing. While a view of its data lives it raises BufferError instead."""
    def __bytes__(self) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Orders:
    """A session with an OMS, for one account. Poll or wait more often than its heartbeat time. Use it in a `with`
    block, or close it: what works at a venue goes on working.
    """

    def submit(
        self,
        symbol: int | str,
        side: int,
        price: int | None,
        quantity: int,
        *,
        order_type: Literal["limit", "market"] = "limit",
        time_in_force: Literal["day", "gtc", "ioc", "fok"] = "day",
        cause: _Cause | None = None,
        id: int | None = None,
        trigger: Trigger | None = None,
    ) -> int:
        """Sends a new order, and gives the id by which `cancel` and `replace` know it. A 'limit' has a price, a
        'market' order None; it works for the 'day', 'gtc', 'ioc' or 'fok'. `cause` is the event to which it is the
        answer. `id` is one of your own, new in this session today: known before the call, whatever interrupts it. With a
        `trigger`, which `tickpath.when` makes, it waits at the OMS until that holds.
        """
    def cancel(self, id: int, *, cause: _Cause | None = None) -> int:
        """Asks to cancel an order, by the id that `submit` gave; gives the id of this request."""
    def replace(
        self, id: int, *, price: int, quantity: int, cause: _Cause | None = None, trigger: Trigger | None = None
    ) -> int:
        """Asks for another price and total quantity of an order, what is filled included, by the id that `submit` gave;
        gives the id of this request. With a `trigger` an order that waits for one gets this one.
        """
    def cancel_all(self, symbol: int | str | None = None, *, cause: _Cause | None = None) -> int:
        """Asks to cancel all open orders of this session and account, or those of one symbol; gives the id of this
        request. Each order is answered for.
        """
    def status(self, id: int) -> int:
        """Asks the OMS how an order stands, by the id that `submit` gave; gives the id of this request. The answer is a
        Report whose `exec_type` is 'order_status', with that as its `client_order_id`.
        """
    @property
    def open(self) -> dict[int, Report]:
        """Open orders, by the id that `submit` gave, with the last report of each: as the reports that were handed over have
        it. Who logs on with `since='start'` is handed those of the whole day first.
        """
    @property
    def positions(self) -> dict[int, int]:
        """Bought less sold by the reports that were handed over, by instrument: with `since='start'`
        of the whole day, else since the logon. It does not know what an account began the day with.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Told: ...
    def poll(self, max: int = 64) -> list[_Told]:
        """Up to `max` events that are there; never waits."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is something, or `timeout` seconds are over; True if there is."""
    def __aiter__(self) -> AsyncIterator[_Told]: ...
    def _attempt(self) -> _Told | None: ...
    def _sleeps(self) -> tuple[int, float] | None: ...
    def _is_awake(self) -> None: ...
    @property
    def session(self) -> int:
        """Which of the user's sessions it is."""
    @property
    def requests(self) -> int:
        """How many requests were sent through this object."""
    @property
    def connected(self) -> bool:
        """True while requests can be sent."""
    @property
    def heartbeat(self) -> float:
        """After so many seconds without a poll the OMS takes it for gone."""
    def close(self) -> None:
        """Closes it; a second time does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Report:
    """What became of an order, or of a request. Of a denial only `number` to `exec_type` ('denied') and `account` say
    something: an order that it was to change goes on as it was.
    """

    def __new__(cls, **fields: int | str | Denial | None) -> Self:
        """A report that was made here, for a test of `on_report`: of the fields that are not given, `exec_type` and
        `status` are 'new', `live` is True, and all others are 0.
        """
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str | Denial | None]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def number(self) -> int:
        """Its number in the session."""
    @property
    def stamp(self) -> int:
        """When the OMS sent it, in ticks of its host's clock."""
    @property
    def live(self) -> bool:
        """False if it is of the past: it was said while this client did not listen."""
    @property
    def denial(self) -> Denial | None:
        """Why the OMS has denied the request; None of all that is no denial."""
    @property
    def order_id(self) -> int:
        """The OMS's id of the order."""
    @property
    def client_order_id(self) -> int:
        """The id of the request that it answers; 0 if it answers none."""
    @property
    def exec_type(self) -> str:
        """What it tells: 'pending_new', 'new', 'trade', 'canceled', 'replaced', 'rejected', 'cancel_rejected', 'expired',
        'denied' and others, as FIX calls them.
        """
    @property
    def status(self) -> str | None:
        """How the order stands now: 'pending_new', 'new', 'partially_filled', 'filled', 'canceled', 'rejected' and
        others, as FIX calls them; None of a denial.
        """
    @property
    def symbol(self) -> int:
        """The instrument, by its number."""
    @property
    def account(self) -> int:
        """For whom."""
    @property
    def side(self) -> int:
        """BUY or SELL; 0 of what has none."""
    @property
    def price(self) -> int:
        """The limit after this."""
    @property
    def last_price(self) -> int:
        """Of this fill; 0 if it is none."""
    @property
    def last_quantity(self) -> int:
        """Of this fill; 0 if it is none."""
    @property
    def cumulative_quantity(self) -> int:
        """Filled so far."""
    @property
    def leaves_quantity(self) -> int:
        """Still open."""
    @property
    def reason(self) -> int:
        """The venue's own reason of a rejection."""
    @property
    def venue(self) -> int:
        """The venue, by its number."""
    @property
    def venue_order_id(self) -> int:
        """The venue's id of the order; 0 if it has said none."""
    @property
    def exec_id(self) -> int:
        """The venue's id of this fill; 0 if it is none."""
    @property
    def venue_sequence(self) -> int:
        """The venue's count of events of this order, from 1; 0 where it gives none."""
    @property
    def venue_stamp(self) -> int:
        """When the venue received the request or made the event, in ticks of the host's clock; 0 if unknown."""
    @property
    def manual(self) -> bool:
        """An admin has entered it by hand."""

@final
class Denial:
    """Why the OMS has denied a request: the check, its limit, and the value that broke it, in the unit of the check."""

    def __new__(cls, **fields: int) -> Self:
        """A denial that was made here, by its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def code(self) -> int:
        """Of the check: docs/risk-checks.md has them."""
    @property
    def limit(self) -> int:
        """What the check allows."""
    @property
    def value(self) -> int:
        """What the request would have made of it."""
    @property
    def name(self) -> str:
        """The check's name, as docs/risk-checks.md has it; empty if this version does not know the code."""
    @property
    def sentence(self) -> str:
        """Why, and what to do."""

@final
class NotTaken:
    """A request that the OMS did not take, and never will; nobody sends it again by itself."""

    def __new__(cls, **fields: int | str) -> Self:
        """One that was made here, by its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def client_order_id(self) -> int:
        """The id that the call gave."""
    @property
    def request(self) -> str:
        """What it was: 'submit', 'cancel' or 'replace'."""

@final
class InDoubt:
    """A request of which nobody can know any more whether the OMS took it: it may work. Do not send it again before
    `tickpath orders` has said.
    """

    def __new__(cls, **fields: int | str) -> Self:
        """One that was made here, by its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def client_order_id(self) -> int:
        """The id that the call gave."""
    @property
    def request(self) -> str:
        """What it was: 'submit', 'cancel' or 'replace'."""

@final
class Notice:
    """Something that happened to the session: `what`, for programs, and a sentence."""

    def __new__(cls, **fields: str) -> Self:
        """One that was made here, by its fields."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, str]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def what(self) -> str:
        """A word for programs: connected, disconnected, failed, other_journal, said_again, forgotten, and of a run waiting."""
    @property
    def sentence(self) -> str:
        """The same for people."""

@final
class Hop:
    """A stretch of your own code, of which each pass is a sample: `with hop:` around it, `@hop` above a function, or
    two stamps. `tickpath.lab.hop` makes it, and `tickpath.lab.hops` is what it measured. Threads may share it, and
    blocks may lie in each other, also of one hop. Tasks that take turns within a block would take each other's
    beginnings: there use `since`, or decorate the coroutine function.
    """

    def __new__(cls, name: str, samples: int = 1_000_000) -> Self: ...
    def since(self, stamp: int) -> None:
        """A sample from a stamp to now: `hop.since(tick.stamp)` is a tick's way to here. Both are of this host."""
    def between(self, earlier: int, later: int) -> None:
        """A sample from one stamp to a later one; an earlier one is counted as negative, and in no percentile. Both are
        of this host.
        """
    def clear(self) -> None:
        """Forgets its samples: what is measured begins here, as behind a warm-up."""
    @property
    def name(self) -> str:
        """What it is called; its name in a result is own.NAME."""
    @property
    def samples(self) -> int:
        """The samples for which it has room; of more it has only the number."""
    @property
    def count(self) -> int:
        """The samples that it has."""
    @property
    def left_out(self) -> int:
        """The samples that did not fit."""
    def __call__(self, function: _Function, /) -> _Function: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _kind: object, _value: object, _traceback: object, /) -> None: ...
    @staticmethod
    def _result(hops: list[Hop], command: str, runtime: str, record_cost_ns: float) -> str | None: ...

@final
class Recording:
    """What lies in a log. Each of its tables is read from the log when somebody takes it."""

    @property
    def place(self) -> str:
        """Where it lies."""
    @property
    def tops_of_book(self) -> Table:
        """The best bids and offers."""
    @property
    def trades(self) -> Table:
        """The trades."""
    @property
    def messages(self) -> Table:
        """The messages of all other kinds, as bytes."""
    @property
    def gaps(self) -> Table:
        """Where messages were lost before they came here, and how many: null where nobody knows."""

@final
class Journal:
    """What an OMS wrote down. Each of its tables is made from the journal when somebody takes it, by a replay."""

    @property
    def place(self) -> str:
        """Where it lies."""
    @property
    def requests(self) -> Table:
        """The requests that the OMS took, with what became of each at once."""
    @property
    def reports(self) -> Table:
        """The reports of its venues."""
    @property
    def denials(self) -> Table:
        """The requests that its checks denied, and why."""

@final
class Table:
    """Rows of one kind, for whatever takes Arrow's streams: polars.DataFrame(table), pyarrow.table(table). Whoever
    takes it reads its log anew, from the oldest row to the last one that is there.
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
    """Trades until the strategy gives `stop`, or to the end of a recording, and until no report has come for `linger`
    seconds then. However that ends, `denied` holds then how many requests the OMS has denied, by the check's name.
    """

_Event: TypeAlias = TopOfBook | Trade | Message | Foreign | Gap
_Data: TypeAlias = Buffer | TopOfBook | Trade | Message | Foreign
_Told: TypeAlias = Report | Gap | NotTaken | InDoubt | Notice
_Cause: TypeAlias = TopOfBook | Trade | Message | int
