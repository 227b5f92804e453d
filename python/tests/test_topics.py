"""Topics: messages arrive in order, complete and once, and losses are reported."""

import copy
import pickle
import threading
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tickpath as tp
from conftest import Place

KIND = 200


def collect(subscriber: tp.Subscriber, number: int) -> list[tp.Event]:
    """Collects so many events, each of which must arrive within a minute."""
    events: list[tp.Event] = []
    while len(events) < number:
        assert subscriber.wait(60), f"only {events} arrived"
        events += subscriber.poll(number - len(events))
    return events


def payloads(events: list[tp.Event]) -> list[bytes]:
    assert all(isinstance(event, tp.Message) for event in events), events
    return [event.payload for event in events if isinstance(event, tp.Message)]


def test_messages_arrive_in_order(any_place: Place) -> None:
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        sent = [bytes([number]) * number for number in range(100)]
        for data in sent[:50]:
            publisher.publish(data, KIND)
        publisher.publish_batch(sent[50:], KIND)
        received = collect(subscriber, len(sent))
        assert payloads(received) == sent
        assert all(isinstance(event, tp.Message) and event.kind == KIND for event in received)
        assert subscriber.poll() == []
        assert not subscriber.wait(0.01)


def test_ticks_and_trades_are_objects(any_place: Place) -> None:
    tick = tp.TopOfBook(tp.units("64000.25"), tp.units(1), tp.units("64000.5"), tp.units(2), event_ns=7, symbol=3)
    trade = tp.Trade(tp.units("64000.25"), tp.units("0.5"), trade_id=9, aggressor=1)
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        publisher.publish(tick, stamp=11)
        publisher.publish(trade)
        first, second = collect(subscriber, 2)
    assert isinstance(first, tp.TopOfBook) and isinstance(second, tp.Trade)
    assert bytes(first) == bytes(tick) and bytes(second) == bytes(trade)
    assert (first.stamp, first.bid, tp.decimal(first.ask)) == (11, 6_400_025_000_000, Decimal("64000.5"))
    assert str(first).startswith("TopOfBook(bid=64000.25")


def test_iteration_waits_for_the_next_event(any_place: Place) -> None:
    with any_place.bus.subscribe(any_place.name) as subscriber:
        received: list[tp.Event] = []
        thread = threading.Thread(target=lambda: received.append(next(subscriber)))
        thread.start()
        with any_place.bus.publisher(any_place.name) as publisher:
            publisher.publish(b"x", KIND)
            thread.join(60)
        assert payloads(received) == [b"x"]


@pytest.mark.parametrize("wait", ["busy", "yield", "block", "adaptive"])
def test_every_wait_mode_is_woken(log: Place, wait: Literal["busy", "yield", "block", "adaptive"]) -> None:
    with log.bus.publisher(log.name) as publisher, log.bus.subscribe(log.name, wait=wait) as subscriber:
        received: list[tp.Event] = []
        thread = threading.Thread(target=lambda: received.extend(collect(subscriber, 10)))
        thread.start()
        for number in range(10):
            publisher.publish(bytes([number]), KIND)
        thread.join(60)
        assert payloads(received) == [bytes([number]) for number in range(10)]


def test_lost_messages_are_reported_as_gaps(log: Place) -> None:
    with log.bus.publisher(log.name, capacity=64 << 10) as publisher:
        with log.bus.subscribe(log.name) as subscriber:
            for number in range(5_000):
                publisher.publish(number.to_bytes(8, "little"), KIND)
            expected = 0
            while expected < 5_000:
                for event in subscriber.poll(1_000):
                    match event:
                        case tp.Gap(int(missed)):
                            expected += missed
                        case tp.Message():
                            assert int.from_bytes(event.payload, "little") == expected
                            expected += 1
                        case other:
                            pytest.fail(f"{other}")


def test_fail_topic_refuses_messages(log: Place) -> None:
    with log.bus.publisher(log.name, "fail", capacity=64 << 10) as publisher:
        with pytest.raises(tp.NoSubscriber) as raised:
            publisher.publish(b"x", KIND)
        assert raised.value.may_pass
        with log.bus.subscribe(log.name) as subscriber:
            subscriber.poll()
            with pytest.raises(tp.TopicFull):
                for _ in range(10_000):
                    publisher.publish(b"x" * 100, KIND)


def test_batches_are_copied_into_arrays(any_place: Place) -> None:
    ticks = [tp.TopOfBook(number, 1, number + 1, 2, symbol=5) for number in range(300)]
    array = np.zeros(128, tp.TOP_OF_BOOK)
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        publisher.publish_batch(ticks[:200])
        publisher.publish(b"in between", KIND)
        publisher.publish_batch(ticks[200:])
        bids: list[int] = []
        between: list[bytes] = []
        while len(bids) < 300:
            assert subscriber.wait(60)
            number = subscriber.poll_into(array)
            bids += array["bid"][:number].tolist()
            if number == 0:
                between += payloads(subscriber.poll(1))
                assert len(bids) == 200
        assert bids == list(range(300)) and between == [b"in between"]
        assert array["symbol"][0] == 5


def test_poll_continues_after_the_events_found_by_wait(log: Place, tmp_path: Path) -> None:
    with tp.connect(f"file://{tmp_path}") as kept:
        for bus in (log.bus, kept):
            with bus.subscribe(log.name) as subscriber, bus.publisher(log.name) as publisher:
                publisher.publish_batch([bytes([number]) for number in range(10)], KIND)
                assert subscriber.wait(60)
                assert payloads(subscriber.poll(4)) == [bytes([number]) for number in range(4)]
                assert subscriber.wait(60)
                assert payloads(subscriber.poll()) == [bytes([number]) for number in range(4, 10)]
                publisher.publish_batch([tp.TopOfBook(number, 1, number, 1) for number in range(10)])
                publisher.publish(b"behind", KIND)
                array = np.zeros(64, tp.TOP_OF_BOOK)
                assert subscriber.wait(60)
                assert subscriber.poll_into(array) == 10
                assert array["bid"][:10].tolist() == list(range(10))
                assert payloads(subscriber.poll()) == [b"behind"]


def test_unusable_array_is_refused(log: Place) -> None:
    array = np.zeros(4, tp.TOP_OF_BOOK)
    array.setflags(write=False)
    with log.bus.subscribe(log.name) as subscriber:
        with pytest.raises(TypeError, match="cannot be written"):
            subscriber.poll_into(array)
        for wrong in (np.zeros(4), np.zeros(8, tp.TOP_OF_BOOK)[::2], bytearray(48)):
            with pytest.raises(TypeError, match="other records|not contiguous"):
                subscriber.poll_into(wrong)


def test_subscriber_resumes_at_its_token(any_place: Place) -> None:
    bus, name = any_place.bus, any_place.name
    if not bus.capabilities()["history"]:
        with bus.subscribe(name) as subscriber:
            assert subscriber.token() is None
        return
    with bus.publisher(name) as publisher:
        publisher.publish_batch([bytes([number]) for number in range(10)], KIND)
        with bus.subscribe(name, "oldest") as first:
            assert payloads(collect(first, 4)) == [bytes([number]) for number in range(4)]
            token = first.token()
        assert token is not None
        with bus.subscribe(name, token) as second:
            assert payloads(collect(second, 6)) == [bytes([number]) for number in range(4, 10)]


def test_invalid_arguments_raise_the_remedy(log: Place) -> None:
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: log.bus.subscribe(log.name, wait="spin"), "use one of 'busy', 'yield'"),  # type: ignore[call-overload]
        (lambda: log.bus.publisher(log.name, "drop"), "use one of 'overwrite'"),  # type: ignore[arg-type]
        (lambda: log.bus.subscribe(log.name, "yesterday"), "start with 'now', 'oldest'"),
        (lambda: log.bus.publisher(log.name, max_age=-1.0), "give seconds above 0"),
        (lambda: tp.units("0.123456789"), "more than eight decimals"),
        (lambda: tp.units("99999999999999999999999.000000001"), "more than eight decimals"),
        (lambda: tp.units("abc"), "no decimal number"),
        (lambda: tp.units("inf"), "no decimal number"),
    ]
    for act, words in mistakes:
        with pytest.raises(ValueError, match=words):
            act()
    with pytest.raises(tp.ConnectError, match="names no transport"):
        tp.connect("zmq://localhost")
    with log.bus.publisher(log.name) as publisher:
        with pytest.raises(TypeError, match="bytes have no kind"):
            publisher.publish(b"x")
        with pytest.raises(ValueError, match="use 16 to 255"):
            publisher.publish(b"x", 3)
        with pytest.raises(tp.TooLarge):
            publisher.publish(b"x" * (1 << 20), KIND)
        with pytest.raises(tp.ConnectError, match="already"):
            tp.connect(log.url).publisher(log.name)
    with pytest.raises(TypeError, match="a float, which is not exact"):
        tp.units(64000.25)  # type: ignore[arg-type]


def test_prices_are_exact_in_any_context() -> None:
    with localcontext(prec=3):
        assert (tp.units("64000.25"), tp.decimal(6_400_025_000_000)) == (6_400_025_000_000, Decimal("64000.25"))


def test_token_between_wait_and_poll_loses_no_message(any_place: Place) -> None:
    bus, name = any_place.bus, any_place.name
    if not bus.capabilities()["history"]:
        return
    with bus.publisher(name) as publisher, bus.subscribe(name, "oldest") as first:
        publisher.publish(b"0", KIND)
        assert payloads(collect(first, 1)) == [b"0"]
        publisher.publish(b"1", KIND)
        assert first.wait(60)
        token = first.token()
        assert token is not None
        publisher.publish(b"2", KIND)
        with bus.subscribe(name, token) as second:
            assert payloads(collect(second, 2)) == [b"1", b"2"]
    with pytest.raises(TypeError, match="None is no start"):
        bus.subscribe(name, None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "event",
    [
        tp.TopOfBook(1, 2, -3, 4),
        tp.TopOfBook(1, 2, 3, 4, event_ns=2**64 - 1, symbol=2**32 - 1, stamp=2**64 - 1, sequence=0),
        tp.Trade(1, 2),
        tp.Trade(1, 2, trade_id=3, event_ns=4, symbol=5, aggressor=6, stamp=7, sequence=8),
        tp.TopOfBook(1, 2, 3, 4, wire_age_ns=5),
        tp.BookLevel(tp.BUY, 1, 2),
        tp.BookLevel(0, 1, 2, 3, exchange_sequence=4, event_ns=5, symbol=6, wire_age_ns=7, stamp=8, sequence=9),
        tp.FeedStatus(tp.FeedStatus.SILENCE),
        tp.FeedStatus(3, 4, connection=255, value=-(2**63), expected=5, found=6, event_ns=7, stamp=8, sequence=9),
        tp.Message(KIND, b"'\"\x00" * 100),
        tp.Message(KIND, b"", stamp=1, sequence=2),
        tp.Foreign(b"\xff"),
        tp.Foreign(b"", sequence=2**64 - 1),
        tp.Gap(7),
        tp.Gap(None),
    ],
)
def test_event_is_recreated_from_repr_and_pickle(event: tp.Event) -> None:
    assert eval(repr(event), vars(tp)) == event
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(event, protocol)) == event


def test_repr_of_a_received_event_has_all_fields(log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
        publisher.publish(tp.Trade(1, 2, symbol=3), stamp=5)
        publisher.publish(b"x", KIND, stamp=6)
        for received in collect(subscriber, 2):
            assert not isinstance(received, tp.Gap) and f"sequence={received.sequence}" in repr(received)
            assert eval(repr(received), vars(tp)) == received


def test_dir_lists_only_public_names() -> None:
    assert not [name for name in dir(tp) if name.startswith("_") and name != "__version__"]
    # Only an installed package has a version.
    assert all(hasattr(tp, name) for name in dir(tp) if name != "__version__")


def test_repr_of_a_handle_has_place_and_state(log: Place) -> None:
    bus, name = log.bus, log.name
    with bus.subscribe(name) as subscriber, bus.publisher(name) as publisher:
        with bus.pusher(name) as pusher, bus.puller(name) as puller:
            for handle in (subscriber, publisher, pusher, puller):
                assert repr(handle) == f"<tickpath.{type(handle).__name__} '{name}' at shm://, open>"
    assert repr(puller) == f"<tickpath.Puller '{name}' at shm://, closed>"
    with tp.connect("shm://") as other:
        assert repr(other) == "<tickpath.Bus shm://, open>"
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(other)


def test_wrong_calls_raise_the_remedy(log: Place) -> None:
    wrong: list[tuple[Callable[[tp.Publisher, tp.Subscriber], object], type[Exception], str]] = [
        (lambda p, _: p.publish("ticks", b"x"), TypeError, r"publish\(data, kind\); the topic or queue was named"),  # type: ignore[arg-type]
        (lambda p, _: p.publish(3.5, KIND), TypeError, "a float has no bytes; give bytes with a kind"),  # type: ignore[arg-type]
        (lambda p, _: p.publish(None, KIND), TypeError, "a NoneType has no bytes"),  # type: ignore[arg-type]
        (lambda _, s: s.poll(-1), ValueError, "max=-1 is invalid; give 1 or more"),
        (lambda _, s: s.poll("all"), TypeError, "max is a whole number; give 1 or more"),  # type: ignore[arg-type]
        (lambda *_: tp.TopOfBook(64000.25, 1, 1, 1), TypeError, r"give tickpath.units\('64000.25'\)"),  # type: ignore[arg-type]
        (lambda *_: tp.Trade(Decimal("0.5"), 1), TypeError, r"give tickpath.units\('0.5'\)"),  # type: ignore[arg-type]
        (lambda *_: tp.Trade(2**63, 1), OverflowError, "does not fit a price or quantity|too big"),
    ]
    with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
        for call, error, words in wrong:
            with pytest.raises(error, match=words):
                call(publisher, subscriber)


def test_array_records_are_published_and_received_with_stamps(any_place: Place) -> None:
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        sent = np.zeros(10, tp.TOP_OF_BOOK)
        sent["bid"] = range(10)
        publisher.publish_batch(sent, stamp=7)
        publisher.publish_batch((tp.TopOfBook(number, 1, number, 1) for number in range(10, 12)), stamp=8)
        received, stamps = np.zeros(16, tp.TOP_OF_BOOK), np.zeros(16, np.uint64)
        count = 0
        while count < 12:
            assert subscriber.wait(60)
            count += subscriber.poll_into(received[count:], stamps[count:])
        assert received["bid"][:12].tolist() == list(range(12))
        assert stamps.tolist() == [7] * 10 + [8] * 2 + [0] * 4
        with pytest.raises(TypeError, match="the stamps do not fit"):
            subscriber.poll_into(received, stamps[:3])
        assert subscriber.poll_into(received[:0]) == 0


def test_received_event_can_be_compared_copied_and_published(log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
        first = tp.Message(KIND, b"anything")
        publisher.publish(first, stamp=5)
        (received,) = collect(subscriber, 1)
        assert isinstance(received, tp.Message) and (received.kind, bytes(received), received.stamp) == (KIND, b"anything", 5)
        publisher.publish(received, stamp=6)
        (again,) = collect(subscriber, 1)
        assert received != again and len({received, again, copy.copy(received), copy.deepcopy(again)}) == 2
        assert tp.Message(KIND, b"x") == tp.Message(KIND, b"x") != tp.Message(KIND + 1, b"x")
    tick = tp.TopOfBook(1, 2, 3, 4, symbol=5)
    assert tp.TopOfBook.from_bytes(bytes(tick)) == tick == copy.deepcopy(tick)
    assert tp.Gap(3) == tp.Gap(3) != tp.Gap(None)
    with pytest.raises(ValueError, match="a Trade has 40 bytes, and the payload has 48"):
        tp.Trade.from_bytes(bytes(tick))


def test_invalid_kinds_and_options_raise_the_remedy(log: Place) -> None:
    with log.bus.publisher(log.name) as publisher:
        for kind in (-1, 15, 256):
            with pytest.raises(ValueError, match=f"the kind {kind} is invalid; use 16 to 255"):
                publisher.publish(b"x", kind)
        with pytest.raises(TypeError, match=r"publish text\.encode\(\)"):
            publisher.publish("text", KIND)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="give kind=16 to 255"):
            publisher.publish(b"x")
    with pytest.raises(ValueError, match="most_deliveries=0 would deliver no message"):
        log.bus.puller(log.name, "at-least-once", most_deliveries=0)
    with pytest.raises(ValueError, match="'keeps' is not a valid policy; use one of 'overwrite', 'fail', 'keep'"):
        log.bus.publisher(log.name, "keeps")  # type: ignore[arg-type]


def test_batch_error_has_outcome_and_cause(log: Place) -> None:
    with log.bus.publisher(log.name, "fail") as publisher:
        with pytest.raises(tp.BatchError) as raised:
            publisher.publish_batch([b"x", b"y"], KIND)
        assert (raised.value.done, raised.value.unknown) == (0, [])
        assert isinstance(raised.value.__cause__, tp.NoSubscriber)


def test_stamps_are_of_the_clock_of_now(log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
        before = tp.now()
        publisher.publish(b"x", KIND)
        (received,) = collect(subscriber, 1)
        after = tp.now()
    assert isinstance(received, tp.Message) and before <= received.stamp <= after
    assert tp.ns_between(before, after) >= 0 >= tp.ns_between(after, before)


def test_mixed_batch_keeps_order_and_time(any_place: Place) -> None:
    top, trade = tp.TopOfBook(1, 2, 3, 4, symbol=5), tp.Trade(6, 7, symbol=8)
    batch: list[tp.TopOfBook | tp.Trade | tp.Message] = [top, top, tp.Message(200, b"own"), trade, tp.Message(201, b"other"), top]
    utc_ns = 1_704_067_200_000_000_000
    with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
        publisher.publish_batch(batch, stamp=tp.stamp_at(utc_ns))
        received = collect(subscriber, len(batch))
    kinds = [event.kind if isinstance(event, tp.Message) else type(event) for event in received]
    assert kinds == [tp.TopOfBook, tp.TopOfBook, 200, tp.Trade, 201, tp.TopOfBook]
    assert all(not isinstance(event, tp.Gap | tp.Foreign) and abs(tp.utc_ns(event.stamp) - utc_ns) <= 1 for event in received)
