"""Order books: levels and events of a feed arrive as they were published, and a book names why it is not valid."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tickpath as tp
from conftest import Place

SYMBOL = 3
FIRST, LAST = tp.BookLevel.SNAPSHOT, tp.BookLevel.LAST


def level(side: int, price: str, quantity: int, flags: int, number: int) -> tp.BookLevel:
    """Returns a level of the exchange's message with this number."""
    return tp.BookLevel(side, tp.units(price), tp.units(quantity), flags, number, symbol=SYMBOL, event_ns=2 * number)


SNAPSHOT = [
    level(tp.BUY, "61800.1", 2, FIRST, 1),
    level(tp.BUY, "61800", 5, 0, 1),
    level(tp.SELL, "61800.3", 1, 0, 1),
    level(tp.SELL, "61800.4", 4, LAST, 1),
]


def collect(subscriber: tp.Subscriber, number: int) -> list[tp.Event]:
    """Collects so many events, each of which must arrive within a minute."""
    events: list[tp.Event] = []
    while len(events) < number:
        assert subscriber.wait(60), f"only {events} arrived"
        events += subscriber.poll(number - len(events))
    return events


def applied(*events: tp.Event) -> tp.OrderBook:
    """Returns a book of these events."""
    book = tp.OrderBook(SYMBOL)
    for event in events:
        book.apply(event)
    return book


def status(condition: int, symbol: int = tp.FeedStatus.ALL_SYMBOLS, connection: int = 0) -> tp.FeedStatus:
    return tp.FeedStatus(condition, symbol, connection, expected=7, found=9)


def test_a_book_of_received_events(any_place: Place) -> None:
    update = [level(tp.BUY, "61800.2", 1, 0, 2), level(tp.SELL, "61800.3", 0, LAST, 2)]
    book = tp.OrderBook(SYMBOL)
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        publisher.publish(status(tp.FeedStatus.CONNECTED))
        publisher.publish_batch([*SNAPSHOT, *update], stamp=11)
        events = collect(subscriber, 7)
    assert [type(event) for event in events] == [tp.FeedStatus, *[tp.BookLevel] * 6]
    assert [bytes(event) for event in events[1:] if isinstance(event, tp.BookLevel)] == [bytes(one) for one in SNAPSHOT + update]
    assert [book.apply(event) for event in events] == [False, False, False, False, True, False, True]
    assert (book.is_valid, book.invalid_because, book.symbol, book.sequence, book.event_ns) == (True, None, SYMBOL, 2, 4)
    one = tp.units(1)
    best_bid, best_ask = tp.units("61800.2"), tp.units("61800.4")
    assert book.best == (best_bid, one, best_ask, 4 * one)
    assert book.bids(2) == [(best_bid, one), (tp.units("61800.1"), 2 * one)]
    assert (len(book.bids()), book.asks(), book.asks(0)) == (3, [(best_ask, 4 * one)], [])
    assert repr(book) == "<tickpath.OrderBook of 3, valid, 3 bids, 1 offers>"


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([], "no snapshot of the book has arrived"),
        ([*SNAPSHOT[:3]], "no snapshot of the book has arrived"),
        ([*SNAPSHOT, level(tp.BUY, "61799", 1, 0, 2)], "the last message of the exchange is applied in part"),
        ([*SNAPSHOT, status(tp.FeedStatus.GAP)], "the update after 7 was expected, and one after 9 arrived"),
        ([*SNAPSHOT, status(tp.FeedStatus.GAP), *SNAPSHOT], "the update after 7 was expected, and one after 9 arrived"),
        ([*SNAPSHOT, status(tp.FeedStatus.DISCONNECTED)], "the connection to the exchange has ended"),
        ([*SNAPSHOT, tp.Gap(5)], "messages of the feed were lost on the way here"),
        ([*SNAPSHOT, tp.BookLevel(3, 1, 1, symbol=SYMBOL)], "a message of the feed has an unknown code"),
        ([*SNAPSHOT, level(tp.BUY, "61800.3", 1, LAST, 2)], "the best bid is not below the best offer"),
    ],
)
def test_a_book_names_why_it_is_not_valid(events: list[tp.Event], sentence: str) -> None:
    book = applied(*events)
    assert not book.is_valid and book.best is None
    assert book.invalid_because is not None and book.invalid_because.startswith(sentence)
    # The next snapshot makes any book valid, and a gap also has to end.
    again = applied(*events, *SNAPSHOT, status(tp.FeedStatus.BOOK_VALID))
    assert again.is_valid and len(again.bids()) == 2


def test_other_events_change_no_book() -> None:
    other = tp.BookLevel(tp.BUY, 1, 1, symbol=SYMBOL + 1)
    gap = status(tp.FeedStatus.GAP, SYMBOL + 1)
    quiet = status(tp.FeedStatus.SILENCE)
    book = applied(*SNAPSHOT, other, gap, quiet, tp.TopOfBook(1, 1, 2, 1), tp.Trade(1, 1), tp.Message(200, b""), tp.Foreign(b""))
    assert book.is_valid and len(book.bids()) == 2
    book.apply(tp.Message(18, bytes(level(tp.BUY, "61799", 1, LAST, 2))))
    assert len(book.bids()) == 3
    with pytest.raises(ValueError, match="a BookLevel has 48 bytes, and the payload has 3"):
        book.apply(tp.Message(18, b"new"))
    with pytest.raises(TypeError, match="a book applies the events of a subscriber"):
        book.apply(7)  # type: ignore[arg-type]


def test_one_of_two_connections_keeps_a_book() -> None:
    connected = [status(tp.FeedStatus.CONNECTED, connection=number) for number in (0, 1)]
    ended = [status(tp.FeedStatus.DISCONNECTED, connection=number) for number in (0, 1)]
    assert applied(*connected, *SNAPSHOT, ended[0]).is_valid
    assert not applied(*connected, *SNAPSHOT, *ended).is_valid


def test_records_of_equal_size_keep_their_kinds(any_place: Place) -> None:
    levels, events = np.zeros(4, tp.BOOK_LEVEL), np.zeros(4, tp.FEED_STATUS)
    assert levels.itemsize == events.itemsize == np.dtype(tp.TOP_OF_BOOK).itemsize == 48
    levels["price"][:2], events["value"][:2] = (7, 8), (-7, -8)
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        publisher.publish_batch(levels[:2], stamp=1)
        publisher.publish_batch(events[:2], stamp=2)
        publisher.publish(tp.TopOfBook(9, 1, 10, 1, wire_age_ns=11), stamp=3)
        found = list[tuple[int, list[int]]]()
        for array, field, count in ((levels, "price", 2), (events, "value", 2), (np.zeros(1, tp.TOP_OF_BOOK), "bid", 1)):
            array[field], stamps, filled = 0, np.zeros(len(array), np.uint64), 0
            while filled < count:
                assert subscriber.wait(60)
                taken = subscriber.poll_into(array[filled:], stamps[filled:])
                filled += taken
                assert taken > 0, "the next event is of another kind"
            found.append((int(stamps[0]), array[field][:count].tolist()))
    assert found == [(1, [7, 8]), (2, [-7, -8]), (3, [9])]


def test_a_recording_has_tables_of_levels_and_events(tmp_path: Path) -> None:
    with tp.connect(f"file://{tmp_path}") as bus, bus.publisher("books", "keep") as publisher:
        publisher.publish_batch(SNAPSHOT)
        publisher.publish(status(tp.FeedStatus.GAP, SYMBOL))
        publisher.publish(status(tp.FeedStatus.CONNECTED))
    found = tp.recording(f"file://{tmp_path}", "books")
    levels = pl.DataFrame(found.book_levels).drop("sequence", "stamp", "time", "event_time")
    assert levels.columns == ["symbol", "side", "price", "quantity", "flags", "exchange_sequence", "wire_age_ns"]
    assert levels.row(0) == (SYMBOL, "buy", Decimal("61800.1"), Decimal(2), FIRST, 1, 0)
    assert levels["flags"].to_list() == [FIRST, 0, 0, LAST]
    events = pl.DataFrame(found.feed_events).drop("sequence", "stamp", "time", "event_time")
    assert events.columns == ["condition", "symbol", "connection", "value", "expected", "found"]
    assert events.rows() == [("gap", SYMBOL, 0, 0, 7, 9), ("connected", None, 0, 0, 7, 9)]
    assert pl.DataFrame(found.messages).height == 0


def test_events_print_for_people() -> None:
    assert str(SNAPSHOT[0]) == "BookLevel(buy, price=61800.1, quantity=2, symbol=3)"
    assert str(tp.BookLevel(0, 0, 0)) == "BookLevel(no side, price=0, quantity=0, symbol=0)"
    assert str(status(tp.FeedStatus.CLOCK_OFFSET)) == "FeedStatus(clock_offset, symbol=all, connection=0, value=0)"
    assert str(tp.FeedStatus(99, 3)) == "FeedStatus(99, symbol=3, connection=0, value=0)"
