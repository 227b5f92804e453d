"""Several topics in one subscriber."""

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal

import pytest

import tickpath as tp
from conftest import Place
from desk import PATIENCE_S

KIND = 200


@pytest.fixture
def several(any_place: Place) -> Iterator[tuple[Place, list[str]]]:
    """Provides a place, and three topics there."""
    names = [f"{any_place.name}-{number}" for number in range(3)]
    yield any_place, names
    for name in names:
        any_place.bus.remove(name)


def payload(event: object) -> bytes:
    assert isinstance(event, tp.Message), event
    return event.payload


def sent(names: list[str], most: int) -> list[tuple[str, bytes]]:
    chance = random.Random(29)
    return [(chance.choice(names), bytes([number])) for number in range(most)]


def by_topic(received: list[tuple[str, bytes]]) -> dict[str, list[bytes]]:
    topics: dict[str, list[bytes]] = {}
    for topic, data in received:
        topics.setdefault(topic, []).append(data)
    return topics


def test_each_topic_keeps_its_order_and_none_is_lost(several: tuple[Place, list[str]]) -> None:
    place, names = several
    messages = sent(names, 100)
    with ExitStack() as opened:
        multi = opened.enter_context(place.bus.subscribe(names))
        publishers = {name: opened.enter_context(place.bus.publisher(name)) for name in names}
        assert not multi.wait(0.01) and multi.poll() == []
        received: list[tuple[str, bytes]] = []
        # Poll during the publishing, then iterate.
        for topic, data in messages[:50]:
            publishers[topic].publish(data, KIND)
            received += [(name, payload(event)) for name, event in multi.poll(2)]
        while len(received) < 50:
            assert multi.wait(PATIENCE_S)
            received += [(name, payload(event)) for name, event in multi.poll()]
        for topic, data in messages[50:]:
            publishers[topic].publish(data, KIND)
        while len(received) < 100:
            name, event = next(multi)
            received.append((name, payload(event)))
        assert by_topic(received) == by_topic(messages)
        assert multi[names[1]].outage is None and multi.poll() == []


def test_multi_subscriber_resumes_at_its_tokens(several: tuple[Place, list[str]]) -> None:
    place, names = several
    if not place.bus.capabilities()["history"]:
        with place.bus.subscribe(names) as multi:
            assert multi.tokens() == dict.fromkeys(names)
        return
    messages = sent(names[:2], 20)
    with ExitStack() as opened:
        publishers = {name: opened.enter_context(place.bus.publisher(name)) for name in names}
        for topic, data in messages:
            publishers[topic].publish(data, KIND)
        with place.bus.subscribe(names, "oldest") as first:
            received = [(name, payload(event)) for name, event in (next(first) for _ in range(7))]
            tokens = first.tokens()
        # The third topic has no token, and starts with the oldest message.
        publishers[names[2]].publish(b"third", KIND)
        tokens.pop(names[2])
        with place.bus.subscribe(names, tokens) as second:
            received += [(name, payload(event)) for name, event in (next(second) for _ in range(14))]
    assert by_topic(received) == by_topic([*messages, (names[2], b"third")])


def test_task_receives_all_topics(several: tuple[Place, list[str]]) -> None:
    place, names = several
    messages = sent(names, 60)

    async def receive() -> list[tuple[str, bytes]]:
        received: list[tuple[str, bytes]] = []
        with place.bus.subscribe(names) as multi, ExitStack() as opened:
            publishers = {name: opened.enter_context(place.bus.publisher(name)) for name in names}
            events = aiter(multi)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(events), 0.01)
            for topic, data in messages:
                publishers[topic].publish(data, KIND)
                if len(received) % 3 == 0:
                    name, event = await asyncio.wait_for(anext(events), PATIENCE_S)
                    received.append((name, payload(event)))
            async for name, event in events:
                received.append((name, payload(event)))
                if len(received) == len(messages):
                    return received
        raise AssertionError("the iteration has ended")

    assert by_topic(asyncio.run(receive())) == by_topic(messages)


@pytest.mark.parametrize("wait", ["busy", "yield", "block", "adaptive"])
def test_wait_ends_with_a_message_of_any_topic_and_with_close(
    log: Place, wait: Literal["busy", "yield", "block", "adaptive"]
) -> None:
    names = [f"{log.name}-{number}" for number in range(2)]
    multi = log.bus.subscribe(names, wait=wait)
    try:
        with log.bus.publisher(names[1]) as publisher:
            waiting = threading.Thread(target=lambda: received.append(multi.wait(PATIENCE_S)))
            received: list[bool] = []
            waiting.start()
            publisher.publish(b"x", KIND)
            waiting.join()
            assert received == [True]
            assert [(name, payload(event)) for name, event in multi.poll()] == [(names[1], b"x")]
        ended = threading.Thread(target=lambda: endings.append(pytest.raises(tp.Closed, lambda: list(multi))))
        endings: list[object] = []
        ended.start()
        multi.close()
        ended.join()
        assert len(endings) == 1
        with pytest.raises(tp.Closed):
            multi.poll()
    finally:
        for name in names:
            log.bus.remove(name)


def test_an_error_of_one_topic_loses_no_events_of_others(log: Place) -> None:
    names = [f"{log.name}-{number}" for number in range(3)]
    with ExitStack() as opened:
        multi = opened.enter_context(log.bus.subscribe(names))
        publishers = [opened.enter_context(log.bus.publisher(name)) for name in names]
        multi[names[1]].close()
        received: list[bytes] = []
        errors = 0
        for number in range(10):
            publishers[0].publish(bytes([number]), KIND)
            publishers[2].publish(bytes([number]), KIND)
            for _ in range(6):
                try:
                    received += [payload(event) for _, event in multi.poll()]
                except tp.Closed:
                    errors += 1
        assert sorted(received) == sorted(2 * [bytes([number]) for number in range(10)])
        assert errors >= 10
        for call in (multi.wait, lambda: next(multi)):
            with pytest.raises(tp.Closed):
                call()
    for name in names:
        log.bus.remove(name)


def test_wait_for_one_topic_leaves_the_others_usable(log: Place) -> None:
    names = [f"{log.name}-{number}" for number in range(2)]
    with log.bus.subscribe(names) as multi, log.bus.publisher(names[1]) as publisher:
        # A lookout thread of each topic has begun to wait, and may still hold its topic.
        for number in range(20):
            assert not multi.wait(0)
            publisher.publish(bytes([number]), KIND)
            name, event = next(multi)
            assert (name, payload(event)) == (names[1], bytes([number]))
            assert multi[names[0]].poll() == [] and multi[names[0]].outage is None
            assert set(multi.tokens()) == set(names)
    for name in names:
        log.bus.remove(name)


def test_busy_topic_does_not_starve_the_others(log: Place) -> None:
    names = [f"{log.name}-{number}" for number in range(2)]
    with ExitStack() as opened:
        multi = opened.enter_context(log.bus.subscribe(names))
        for name in names:
            publisher = opened.enter_context(log.bus.publisher(name))
            publisher.publish_batch([bytes([number]) for number in range(100)], KIND)
        # Each topic has more events than a call returns.
        polls = [{name for name, _ in multi.poll(10)} for _ in range(4)]
        assert polls == [{names[0]}, {names[1]}, {names[0]}, {names[1]}]
        assert [name for name, _ in (next(multi) for _ in range(4))] == [*names, *names]
    for name in names:
        log.bus.remove(name)


def test_invalid_topics_raise_the_remedy(log: Place) -> None:
    with pytest.raises(ValueError, match="no topic is given; give one or more"):
        log.bus.subscribe([])
    with pytest.raises(ValueError, match="'a' is given twice; give each topic once"):
        log.bus.subscribe(["a", "b", "a"])
    with pytest.raises(ValueError, match="'c' has a start, and is not among the topics"):
        log.bus.subscribe(["a", "b"], {"c": "now"})
    with log.bus.publisher(log.name) as publisher, log.bus.subscribe(log.name) as subscriber:
        publisher.publish(b"x", KIND)
        next(subscriber)
        token = subscriber.token()
    assert token is not None
    for start in (3, token):
        with pytest.raises(ValueError, match="several topics start with 'now' or 'oldest', or with a dict"):
            log.bus.subscribe(["a", "b"], start)  # type: ignore[call-overload]
    for wrong in (3, None, b"ticks", ["a", 3]):
        with pytest.raises(TypeError, match="give the name of a topic, or a list of names, and not"):
            log.bus.subscribe(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a start is 'now'"):
        log.bus.subscribe("a", {"a": "now"})  # type: ignore[call-overload]
    with log.bus.subscribe(["a", "b"]) as multi:
        with pytest.raises(KeyError, match="'c' is not subscribed to; use one of 'a', 'b'"):
            multi["c"]
        with pytest.raises(ValueError, match="a timeout of -1 s is invalid"):
            multi.wait(-1)
        assert "'a' at shm://" in repr(multi) and "'b' at shm://" in repr(multi)
