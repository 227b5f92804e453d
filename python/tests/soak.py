"""Processes that are forked, spawned, killed and ended, and handles that go in any order: `soak.py KIND ROUNDS SEED`.

It ends with 0 and says nothing, or says what went wrong. Who hangs is aborted, and its stacks stand on standard error.
"""

import atexit
import faulthandler
import gc
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from random import Random
from typing import Literal

import tickpath as tp

KIND = 200
NAME = f"tickpath-soak-{os.getpid()}"

# A topic's bytes: little, for it is made and filled again and again.
CAPACITY = 1 << 16

# Seconds after which something hangs: each of its turns takes some milliseconds.
PATIENCE = 30

# What lives until the interpreter ends.
KEPT: list[object] = []


def forks(rounds: int, _dice: Random) -> None:
    """A fork is refused what its parent has opened, and opens its own."""
    with tp.connect("shm://") as bus, _publisher(bus, NAME) as publisher, bus.subscribe(NAME) as subscriber:

        def work() -> None:
            _refused(lambda: publisher.publish(b"x", KIND))
            _refused(subscriber.poll)
            publisher.close()
            _open_own()

        for _ in range(rounds):
            _ends_well(_fork(work))
            publisher.publish(b"the parent's goes on", KIND)
            assert len(subscriber.poll()) == 1


def spawns(rounds: int, _dice: Random) -> None:
    """Interpreters that begin anew publish, some at once."""
    names = [NAME, *(f"{NAME}-{number}" for number in range(3))]
    context = get_context("spawn")
    with tp.connect("shm://") as bus:
        for _ in range(0, rounds, len(names)):
            subscribers = [bus.subscribe(name) for name in names]
            children = [context.Process(target=_publish_one, args=(name,)) for name in names]
            for child in children:
                child.start()
            for child in children:
                assert child.pid is not None
                _await_end(child.pid, child.sentinel)
                child.join()
                assert child.exitcode == 0, child.exitcode
            for subscriber in subscribers:
                assert subscriber.wait(PATIENCE) and len(subscriber.poll()) == 1
                subscriber.close()


def publisher_kills(rounds: int, dice: Random) -> None:
    """Who is killed while it publishes is dead at once, though a fork of its own lives on with all that it had open."""
    with tp.connect("shm://") as bus, bus.subscribe(NAME) as subscriber:
        for _ in range(rounds):
            with _telling(_publish_until_killed, dice.random() < 0.5) as (child, tells):
                fork = int.from_bytes(os.read(tells, 4), "little")
                for _ in range(dice.randrange(200)):
                    assert subscriber.wait(PATIENCE)
                    _check(subscriber.poll(dice.randrange(1, 9)))
                _kill(child)
                with _publisher(bus, NAME) as publisher:
                    publisher.publish(b"the next one", KIND)
                if fork:
                    os.kill(fork, signal.SIGKILL)
            while not _check(subscriber.poll(1_000)):
                pass


def subscriber_kills(rounds: int, dice: Random) -> None:
    """Who is killed while it is subscribed holds nobody, though a fork of its own lives on."""
    with tp.connect("shm://") as bus, _publisher(bus, NAME, "fail") as publisher, bus.subscribe(NAME) as subscriber:
        # From here on somebody is subscribed.
        subscriber.poll()
        for _ in range(rounds):
            with _telling(_subscribe_until_killed, dice.random() < 0.5) as (child, tells):
                fork = int.from_bytes(os.read(tells, 4), "little")
                for _ in range(dice.randrange(200)):
                    try:
                        publisher.publish(b"x" * 1_000, KIND)
                    except tp.TopicFull:
                        pass
                    subscriber.poll()
                _kill(child)
                for _ in range(3 * CAPACITY // 1_000):
                    publisher.publish(b"x" * 1_000, KIND)
                    assert subscriber.poll()
                if fork:
                    os.kill(fork, signal.SIGKILL)


def exits(rounds: int, dice: Random) -> None:
    """The interpreter ends with open handles, wherever they are kept."""
    for _ in range(rounds):
        seed = dice.random()
        child = os.fork()
        if child == 0:
            signal.alarm(3 * PATIENCE)
            _keep_open(Random(seed))
            # Out of here, and of the program, as any other interpreter ends.
            raise SystemExit
        _ends_well(child)


def collections(rounds: int, dice: Random) -> None:
    """Handles are collected in any order, and what they had is free."""
    for _ in range(rounds):
        kept: list[object] = [*_open_all()]
        kept += [_Holder(kept), _Holder(kept[dice.randrange(len(kept))])]
        dice.shuffle(kept)
        for _ in range(dice.randrange(len(kept))):
            kept.pop()
        del kept
        gc.collect()
        for handle in _open_all():
            handle.close()


def threads(rounds: int, _dice: Random) -> None:
    """A fork opens its own, whatever its parent's threads were at."""
    is_over = threading.Event()
    went_wrong: list[str] = []

    def churn(name: str) -> None:
        try:
            while not is_over.is_set():
                with tp.connect("shm://") as bus, _publisher(bus, name) as publisher, bus.subscribe(name) as subscriber:
                    publisher.publish(b"x", KIND)
                    assert len(subscriber.poll()) == 1
        except BaseException:
            went_wrong.append(traceback.format_exc())

    churning = [threading.Thread(target=churn, args=(f"{NAME}-{number}",)) for number in range(3)]
    for thread in churning:
        thread.start()
    try:
        for _ in range(rounds):
            _ends_well(_fork(_open_own))
    finally:
        is_over.set()
        for thread in churning:
            thread.join()
    assert not went_wrong, went_wrong


KINDS: dict[str, Callable[[int, Random], None]] = {
    kind.__name__: kind for kind in (forks, spawns, publisher_kills, subscriber_kills, exits, collections, threads)
}


class _Holder:
    """Holds something, itself too, and closes what it can when it goes."""

    def __init__(self, held: object) -> None:
        self.held, self.me = held, self

    def __del__(self) -> None:
        close = getattr(self.held, "close", None)
        if close is not None:
            close()


def _publisher(bus: tp.Bus, name: str, policy: Literal["overwrite", "fail"] = "overwrite") -> tp.Publisher:
    return bus.publisher(name, policy, capacity=CAPACITY)


def _open_all() -> list[tp.Bus | tp.Publisher | tp.Subscriber | tp.Pusher | tp.Puller]:
    bus = tp.connect("shm://")
    pusher = bus.pusher(NAME, capacity=CAPACITY)
    return [bus, _publisher(bus, NAME), bus.subscribe(NAME), pusher, bus.puller(NAME)]


def _open_own() -> None:
    """Everything, of a child's own."""
    name = f"{NAME}-child"
    with tp.connect("shm://") as bus, _publisher(bus, name) as publisher, bus.subscribe(name) as subscriber:
        publisher.publish(b"x", KIND)
        assert len(subscriber.poll()) == 1
        with bus.pusher(name, capacity=CAPACITY) as pusher, bus.puller(name) as puller:
            pusher.push(b"x", KIND)
            assert len(puller.pull()) == 1
            puller.acknowledge()


def _keep_open(dice: Random) -> None:
    handles = _open_all()
    dice.shuffle(handles)
    for handle in handles:
        match dice.randrange(6):
            case 0:
                KEPT.append(handle)
            case 1:
                KEPT.append(_Holder(handle))
            case 2:
                setattr(sys, f"tickpath_{len(KEPT)}", handle)
            case 3:
                atexit.register(handle.close)
            case 4 if isinstance(handle, tp.Subscriber):
                threading.Thread(target=next, args=(handle,), daemon=True).start()
            case _:
                del handle


def _publish_one(name: str) -> None:
    with tp.connect("shm://") as bus, _publisher(bus, name) as publisher:
        publisher.publish(b"from a child", KIND)


def _publish_until_killed(tell: Callable[[], None]) -> None:
    with tp.connect("shm://") as bus, _publisher(bus, NAME) as publisher:
        tell()
        number = 0
        while True:
            publisher.publish(number.to_bytes(8, "little") * (number % 20 + 1), KIND)
            number += 1


def _subscribe_until_killed(tell: Callable[[], None]) -> None:
    with tp.connect("shm://") as bus, bus.subscribe(NAME) as subscriber:
        subscriber.poll()
        tell()
        while True:
            subscriber.wait()
            subscriber.poll(3)


def _check(events: list[tp.Event]) -> bool:
    """No message is a mixture of two. True if one of them is the next publisher's."""
    payloads = [event.payload for event in events if isinstance(event, tp.Message)]
    found = payloads.count(b"the next one")
    for payload in payloads:
        assert payload == payload[:8] * (len(payload) // 8) or payload == b"the next one", payload
    return found == 1


def _refused(use: Callable[[], object]) -> None:
    try:
        use()
    except tp.Forked:
        return
    raise AssertionError("a fork uses what is its parent's")


def _fork(work: Callable[[], None]) -> int:
    """A child that does this, and nothing else of ours."""
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            # Should we be gone, it does not stay.
            signal.alarm(3 * PATIENCE)
            work()
            ended = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(ended)
    return child


@contextmanager
def _telling(work: Callable[[Callable[[], None]], None], has_fork: bool) -> Iterator[tuple[int, int]]:
    """A child that tells when it is at work, by the id of a fork of its own, or 0. It is gone at the end."""
    tells, told = os.pipe()

    def tell() -> None:
        fork = _fork(_idle) if has_fork else 0
        os.write(told, fork.to_bytes(4, "little"))

    child = _fork(lambda: work(tell))
    os.close(told)
    try:
        yield child, tells
    finally:
        os.close(tells)


def _idle() -> None:
    while True:
        signal.pause()


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0) == (child, signal.SIGKILL)


def _ends_well(child: int) -> None:
    is_gone = os.pidfd_open(child)
    try:
        _await_end(child, is_gone)
    finally:
        os.close(is_gone)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == 0, f"a child has ended with {ended}"


def _await_end(child: int, is_gone: int) -> None:
    """Waits until this descriptor of a child's says that it is gone; one that hangs says where, and is ended."""
    ends = select.poll()
    ends.register(is_gone, select.POLLIN)
    if ends.poll(PATIENCE * 1_000):
        return
    os.kill(child, signal.SIGABRT)
    if not ends.poll(5_000):
        os.kill(child, signal.SIGKILL)
    raise AssertionError("a child has hung, in what stands above")


def main(kind: str, rounds: str, seed: str) -> None:
    faulthandler.enable()
    # A fork among threads is what is asked for here.
    warnings.simplefilter("ignore", DeprecationWarning)
    parent = os.getpid()
    try:
        KINDS[kind](int(rounds), Random(seed))
    finally:
        if os.getpid() == parent:
            with tp.connect("shm://") as bus:
                for name in (NAME, f"{NAME}-child", *(f"{NAME}-{number}" for number in range(3))):
                    bus.remove(name)
                    bus.remove_queue(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
