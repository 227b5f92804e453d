"""Queues: each message is delivered to one puller, and redelivered if it is not acknowledged."""

import pytest

import tickpath as tp
from conftest import Place

KIND = 200


def pull(puller: tp.Puller, number: int) -> list[tp.Pulled]:
    pulled: list[tp.Pulled] = []
    for _ in range(10_000):
        pulled += puller.pull(number - len(pulled))
        if len(pulled) == number:
            return pulled
        puller.wait(0.01)
    pytest.fail(f"only {pulled} arrived")


def stamps(pulled: list[tp.Pulled]) -> list[int]:
    return [one.message.stamp for one in pulled]


def test_each_message_is_pulled_once(any_place: Place) -> None:
    with any_place.bus.puller(any_place.name) as puller, any_place.bus.pusher(any_place.name) as pusher:
        for stamp in range(10):
            pusher.push(b"payload", KIND, stamp=stamp)
        pusher.push_batch([b"payload"] * 5, KIND, stamp=10)
        assert sorted(stamps(pull(puller, 15))) == [*range(10), *[10] * 5]
        puller.acknowledge()
        assert puller.pull() == []


def test_unacknowledged_message_is_redelivered(log: Place) -> None:
    bus, name = log.bus, log.name
    with bus.pusher(name, "at-least-once") as pusher:
        for stamp in range(4):
            pusher.push(tp.TopOfBook(stamp, 1, 2, 3), stamp=stamp)
        with bus.puller(name, "at-least-once") as first:
            assert stamps(pull(first, 2)) == [0, 1]
            first.acknowledge()
            assert stamps(pull(first, 1)) == [2]
        with bus.puller(name, "at-least-once") as second:
            again = pull(second, 2)
            assert [(one.message.stamp, one.redelivered) for one in again] == [(2, True), (3, False)]
            assert isinstance(again[0].message, tp.TopOfBook)
            second.acknowledge()
        assert bus.waiting(name) == 0
