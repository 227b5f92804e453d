"""Lent messages: they are read in place, and stay unchanged while a frame or a view of them exists."""

import asyncio
import gc
import os
import pickle
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import tickpath as tp
from conftest import Place

KIND = 200
LONG = 16 << 10


def lend(subscriber: tp.Subscriber) -> tp.Frame:
    frame = subscriber.lend()
    assert isinstance(frame, tp.Frame), frame
    return frame


def test_lent_message_equals_the_published_one(log: Place) -> None:
    sent = [b"", b"x", bytes(range(256)), b"y" * LONG]
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name, "oldest") as subscriber:
        for number, data in enumerate(sent):
            publisher.publish(data, KIND + number, stamp=number)
        for number, data in enumerate(sent):
            with lend(subscriber) as frame:
                assert (frame.kind, frame.stamp, frame.sequence) == (KIND + number, number, number)
                assert bytes(frame) == data
                with frame.data as view:
                    assert view.readonly and view.nbytes == len(data) and view == data
                    if data:
                        with pytest.raises(TypeError, match="read-only"):
                            view[0] = 1
        assert subscriber.lend() is None


def test_a_tick_is_lent_as_its_bytes(log: Place) -> None:
    tick = tp.TopOfBook(tp.units("64000.25"), tp.units(1), tp.units("64000.5"), tp.units(2), event_ns=7, symbol=3)
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish(tick)
        with lend(subscriber) as frame:
            assert frame.kind == 16 and tp.TopOfBook.from_bytes(bytes(frame)) == tick


@pytest.mark.parametrize("policy", ["overwrite", "fail"])
def test_topics_that_overwrite_or_fail_do_not_lend(log: Place, policy: Literal["overwrite", "fail"]) -> None:
    with log.bus.publisher(log.name, policy) as publisher, log.bus.subscribe(log.name) as subscriber:
        subscriber.poll()
        publisher.publish(b"x", KIND)
        for _ in range(2):
            with pytest.raises(tp.NotLent, match=f"'{policy}' lends nothing.*poll"):
                subscriber.lend()
            assert subscriber.wait(60)
        (event,) = subscriber.poll()
        assert isinstance(event, tp.Message) and event.payload == b"x"


def test_capabilities_match_lending_on_every_transport(any_place: Place) -> None:
    can = any_place.bus.capabilities()
    assert set(can["lends"]) <= set(can["policies"])
    usual = can["policies"][0]
    with any_place.bus.publisher(any_place.name, usual), any_place.bus.subscribe(any_place.name) as subscriber:
        if usual in can["lends"]:
            assert subscriber.lend() is None
        else:
            with pytest.raises(tp.NotLent, match="poll"):
                subscriber.lend()


def test_topic_may_be_created_later(log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber:
        assert subscriber.lend() is None
        assert not subscriber.wait(0.01)
        with log.bus.publisher(log.name, "keep") as publisher:
            publisher.publish(b"first", KIND)
            assert subscriber.wait(60)
            with lend(subscriber) as frame:
                assert bytes(frame) == b"first"


def test_frame_with_views_cannot_be_closed(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish(b"0123456789", KIND)
        frame = lend(subscriber)
        views: list[Callable[[], Any]] = [
            lambda: frame.data,
            lambda: frame.data[:4],
            lambda: np.frombuffer(frame.data, np.uint8)[:4],
        ]
        for create in views:
            view = create()
            with pytest.raises(BufferError, match="views of this frame's data"):
                frame.close()
            assert bytes(view[:4]) == b"0123"
            del view
        assert repr(frame) == "Frame(kind=200, bytes=10)"
        frame.close()
        frame.close()
        assert repr(frame) == "Frame(kind=200, closed)"
        for use in (lambda: frame.data, lambda: bytes(frame)):
            with pytest.raises(tp.Closed, match="this frame is closed"):
                use()


def test_handles_with_lent_messages_cannot_be_closed(log: Place) -> None:
    bus = tp.connect(log.url)
    with bus.publisher(log.name, "keep") as publisher:
        publisher.publish(b"x", KIND)
    subscriber, other = bus.subscribe(log.name, "oldest"), bus.subscribe(log.name)
    frame = lend(subscriber)
    other.close()
    for close in (subscriber.close, bus.close):
        with pytest.raises(BufferError, match=r"are lent \(1\)"):
            close()
    # A view of the dropped frame is left.
    view = frame.data
    del frame
    for close in (subscriber.close, bus.close):
        with pytest.raises(BufferError, match=r"are lent \(1\)"):
            close()
    assert bytes(view) == b"x"
    view.release()
    for close in (subscriber.close, bus.close, subscriber.close, bus.close):
        close()


def test_exception_in_a_with_block_propagates(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher:
        publisher.publish(b"x", KIND)
    with pytest.raises(KeyError, match="mine"):
        with log.bus.subscribe(log.name, "oldest") as subscriber, lend(subscriber) as frame:
            view = frame.data
            raise KeyError("mine")
    with pytest.raises(tp.Closed):
        subscriber.lend()
    assert bytes(view) == b"x"
    view.release()
    frame.close()


@pytest.mark.parametrize("scheme", ["shm", "file"])
def test_lent_messages_are_unchanged_by_later_messages(log: Place, scheme: str, tmp_path: Path) -> None:
    url = log.url if scheme == "shm" else f"file://{tmp_path}"

    def data(number: int) -> bytes:
        return number.to_bytes(2, "little") * (LONG // 2)

    with tp.connect(url) as bus, bus.subscribe(log.name) as subscriber:
        with bus.publisher(log.name, "keep", capacity=64 << 10) as publisher:
            frames = []
            for number in range(60):
                publisher.publish(data(number), KIND)
                frames.append(lend(subscriber))
            for number in range(60, 120):
                publisher.publish(data(number), KIND)
        bus.remove(log.name)
        with bus.publisher(log.name, "keep", capacity=64 << 10) as publisher:
            publisher.publish(bytes(LONG), KIND)
        # A subscriber keeps the log that it opened.
        frames += [lend(subscriber) for _ in range(60)]
        assert subscriber.lend() is None
        for number, frame in enumerate(frames):
            with frame, frame.data as view:
                assert view == data(number)
        bus.remove(log.name)


def test_lent_objects_may_be_collected_in_any_order(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher:
        publisher.publish(b"0123", KIND)
    for order in permutations(range(4)):
        bus = tp.connect(log.url)
        subscriber = bus.subscribe(log.name, "oldest")
        frame = lend(subscriber)
        held: dict[int, Any] = dict(enumerate([bus, subscriber, frame, np.frombuffer(frame.data, np.uint8)]))
        del bus, subscriber, frame
        for number in order:
            assert 3 not in held or held[3].tobytes() == b"0123"
            del held[number]
            gc.collect()
    with tp.connect(log.url) as bus:
        subscriber = bus.subscribe(log.name, "oldest")
        frame = lend(subscriber)
        circle = [subscriber, frame, frame.data]
        circle.append(circle)
        del subscriber, frame, circle
        gc.collect()


def test_fork_reads_lent_messages(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish(b"x" * LONG, KIND)
        publisher.publish(b"next", KIND)
        with lend(subscriber) as frame:
            view = frame.data
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    is_unchanged = view == b"x" * LONG and bytes(frame) == b"x" * LONG
                    try:
                        subscriber.lend()
                    except tp.Forked:
                        code = 0 if is_unchanged else 2
                    # The parent keeps the loans that the fork returns.
                    view.release()
                    frame.close()
                    subscriber.close()
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert view == b"x" * LONG
            view.release()
        with lend(subscriber) as frame:
            assert bytes(frame) == b"next"


def test_lend_and_poll_alternate(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        for number in range(12):
            publisher.publish(bytes([number]), KIND)
        received = []
        for number in range(12):
            if number % 3 == 0:
                assert subscriber.wait(60)
            if number % 2 == 0:
                with lend(subscriber) as frame:
                    received.append(bytes(frame))
            else:
                (event,) = subscriber.poll(1)
                assert isinstance(event, tp.Message)
                received.append(event.payload)
        assert received == [bytes([number]) for number in range(12)]


def test_awaited_events_are_polled_with_their_type(log: Place) -> None:
    tick, trade = tp.TopOfBook(1, 2, 3, 4, symbol=5), tp.Trade(6, 7, symbol=5)
    room = np.zeros(4, tp.TOP_OF_BOOK)
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish_batch([tick, tick])
        assert subscriber.wait(60) and subscriber.poll_into(room[:1]) == 1
        assert room[:1].tobytes() == bytes(tick)
        publisher.publish(trade)
        assert subscriber.wait(60)
        (event,) = subscriber.poll(1)
        assert isinstance(event, tp.TopOfBook) and bytes(event) == bytes(tick)
        assert subscriber.wait(60) and subscriber.poll_into(room) == 0
        (event,) = subscriber.poll(1)
        assert isinstance(event, tp.Trade) and bytes(event) == bytes(trade)


def test_task_receives_messages_of_a_keep_topic(log: Place) -> None:
    async def main() -> None:
        with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
            events = aiter(subscriber)
            for data in (b"x", b"y" * LONG):
                publisher.publish(data, KIND)
                event = await anext(events)
                assert isinstance(event, tp.Message) and event.payload == data

    asyncio.run(main())


def test_token_is_behind_the_lent_message(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish_batch([b"0", b"1", b"2"], KIND)
        for number in (b"1", b"2"):
            lend(subscriber).close()
            token = subscriber.token()
            assert token is not None
            with log.bus.subscribe(log.name, token) as behind, lend(behind) as frame:
                assert bytes(frame) == number
            # A waiting message is not returned yet.
            assert subscriber.wait(60) and subscriber.token() == token


def test_frame_cannot_be_pickled(log: Place) -> None:
    with log.bus.publisher(log.name, "keep") as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish(b"x", KIND)
        with lend(subscriber) as frame, pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(frame)


def test_world_writable_log_is_refused(tmp_path: Path) -> None:
    with tp.connect(f"file://{tmp_path}") as bus, bus.publisher("ticks", "keep") as publisher:
        publisher.publish(b"x", KIND)
        for file in (tmp_path / "ticks").iterdir():
            file.chmod(0o666)
        with pytest.raises(tp.ConnectError, match="every user can write to .*; look at what it holds, then run chmod o-w"):
            bus.subscribe("ticks", "oldest")
