"""Subscribers and pullers on event loops."""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

import tickpath as tp
from conftest import Place

KIND = 200
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Provides a function that runs a coroutine, which must end within a minute."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(main, 60))

    return run


def number(event: tp.Event) -> int:
    assert isinstance(event, tp.Message), event
    return int.from_bytes(event.payload, "little")


def test_task_receives_messages(run: Run, any_place: Place) -> None:
    async def main() -> None:
        with any_place.bus.subscribe(any_place.name) as subscriber, any_place.bus.publisher(any_place.name) as publisher:
            received: list[int] = []
            events = aiter(subscriber)
            for sent in range(100):
                publisher.publish(sent.to_bytes(8, "little"), KIND)
                received.append(number(await anext(events)))
            publisher.publish_batch([sent.to_bytes(8, "little") for sent in range(100, 300)], KIND)
            async for event in subscriber:
                received.append(number(event))
                if len(received) == 300:
                    break
            assert received == list(range(300))

    run(main())


def test_a_task_sleeps_until_another_thread_publishes(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
            other_tasks = 0
            events = aiter(subscriber)
            for sent in range(20):
                waiting = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0.01)
                other_tasks += not waiting.done()
                thread = threading.Thread(target=publisher.publish, args=(sent.to_bytes(8, "little"), KIND))
                thread.start()
                assert number(await waiting) == sent
                thread.join()
            assert other_tasks == 20

    run(main())


def test_cancelled_task_loses_no_message(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
            events = aiter(subscriber)
            received: list[int] = []
            for sent in range(50):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.001)
                publisher.publish(sent.to_bytes(8, "little"), KIND)
                received.append(number(await anext(events)))
            assert received == list(range(50))
            assert subscriber.poll() == []

    run(main())


def test_endless_stream_leaves_turns_to_other_tasks(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
            turns = 0

            async def other() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            task = asyncio.ensure_future(other())
            publisher.publish_batch([b"x"] * 1000, KIND)
            left = 1000
            async for _ in subscriber:
                left -= 1
                if left == 0:
                    break
            assert turns >= 10
            task.cancel()

    run(main())


def test_close_ends_a_waiting_task(run: Run, log: Place) -> None:
    async def main() -> None:
        for pause in (0.01, *[0.0] * 200):
            subscriber = log.bus.subscribe(log.name)
            waiting = asyncio.ensure_future(anext(aiter(subscriber)))
            await asyncio.sleep(pause)
            subscriber.close()
            with pytest.raises(tp.Closed, match="this subscriber is closed"):
                await waiting

    run(main())


def test_loop_continues_after_timed_out_waits(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:
            events = aiter(subscriber)
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.001)
            assert subscriber.poll() == []
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.01)
            with pytest.raises(tp.InUse, match="another task uses this subscriber"):
                subscriber.poll()
            publisher.publish(bytes(8), KIND)
            assert number(await waiting) == 0

    run(main())


def test_task_receives_messages_of_a_killed_puller(log: Place) -> None:
    script = """
import sys, tickpath as tp
with tp.connect("shm://") as bus:
    puller = bus.puller(sys.argv[1], "at-least-once")
    next(puller)
    print("pulled", flush=True)
    sys.stdin.read()
"""

    async def main() -> None:
        with (
            log.bus.pusher(log.name, "at-least-once") as pusher,
            log.bus.puller(log.name, "at-least-once") as puller,
        ):
            pusher.push(b"held", KIND)
            pipe = asyncio.subprocess.PIPE
            arguments = sys.executable, "-c", script, log.name
            other = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe)
            assert other.stdout is not None and await other.stdout.readline() == b"pulled\n"
            waiting = asyncio.ensure_future(anext(aiter(puller)))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            other.kill()
            await other.wait()
            pulled = await waiting
            assert bytes(pulled.message) == b"held" and pulled.redelivered

    asyncio.run(asyncio.wait_for(main(), 60))


def test_second_waiting_task_is_refused(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.subscribe(log.name) as subscriber:
            first = asyncio.ensure_future(anext(aiter(subscriber)))
            await asyncio.sleep(0)
            with pytest.raises(tp.InUse, match="another task uses this subscriber"):
                await anext(aiter(subscriber))
            first.cancel()

    run(main())


def test_subscriber_moves_between_loops(run: Run, log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber, log.bus.publisher(log.name) as publisher:

        async def one(sent: int) -> None:
            waiting = asyncio.ensure_future(anext(aiter(subscriber)))
            await asyncio.sleep(0)
            publisher.publish(sent.to_bytes(8, "little"), KIND)
            assert number(await waiting) == sent

        for sent in range(5):
            run(one(sent))
        publisher.publish(b"", KIND)
        assert subscriber.wait(60) and len(subscriber.poll()) == 1


def test_subscribers_are_closed_and_reopened(run: Run, log: Place) -> None:
    async def main() -> None:
        with log.bus.publisher(log.name) as publisher:
            for sent in range(200):
                # A descriptor that the loop still watches may not become the next subscriber's.
                with log.bus.subscribe(log.name) as subscriber:
                    waiting = asyncio.ensure_future(anext(aiter(subscriber)))
                    await asyncio.sleep(0)
                    publisher.publish(sent.to_bytes(8, "little"), KIND)
                    assert number(await waiting) == sent

    run(main())


def test_task_pulls_and_acknowledges_messages(run: Run, any_place: Place) -> None:
    delivery = any_place.bus.capabilities()["deliveries"][-1]

    async def main() -> None:
        with (
            any_place.bus.pusher(any_place.name, delivery) as pusher,
            any_place.bus.puller(any_place.name, delivery) as puller,
        ):
            waiting = asyncio.ensure_future(anext(aiter(puller)))
            await asyncio.sleep(0.01)
            for sent in range(10):
                pusher.push(sent.to_bytes(8, "little"), KIND)
            received = [(await waiting).message]
            async for pulled in puller:
                received.append(pulled.message)
                puller.acknowledge()
                if len(received) == 10:
                    break
            # Kafka keeps the order within each of several partitions.
            assert sorted(map(number, received)) == list(range(10))

    run(main())


def test_a_thousand_watched_subscribers_leave_no_threads_or_descriptors(log: Place) -> None:
    def open_here() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    before = open_here()

    async def main() -> None:
        for _ in range(20):
            subscribers = [log.bus.subscribe(log.name) for _ in range(50)]
            waiting = [asyncio.ensure_future(anext(aiter(subscriber))) for subscriber in subscribers]
            await asyncio.sleep(0)
            for subscriber in subscribers[::2]:
                subscriber.close()
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            del subscribers, waiting
        gc.collect()

    asyncio.run(main())
    # Lookout threads of closed subscribers end at their next turn.
    for _ in range(600):
        now = open_here()
        if all(left <= at_first for left, at_first in zip(now, before, strict=True)):
            return
        time.sleep(0.1)
    pytest.fail(f"{before} threads and descriptors became {now}")
