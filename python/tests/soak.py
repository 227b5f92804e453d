"""Soak test of forked, spawned, killed and ended processes, and of handles dropped in any order: `soak.py KIND ROUNDS SEED`.

Exits with 0 and without output, or prints the failure. A child that hangs is aborted, and prints its stacks to standard error.
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

# Bytes of a topic: few, since topics are created and filled in every round.
CAPACITY = 1 << 16

# Seconds after which a child counts as hung: each of its turns takes some milliseconds.
PATIENCE = 30

# Objects that live until the interpreter ends.
KEPT: list[object] = []


def forks(rounds: int, _dice: Random) -> None:
    """A fork cannot use the handles of its parent, and opens its own."""
    with tp.connect("shm://") as bus, _publisher(bus, NAME) as publisher, bus.subscribe(NAME) as subscriber:

        def work() -> None:
            _refused(lambda: publisher.publish(b"x", KIND))
            _refused(subscriber.poll)
            publisher.close()
            _open_own()

        for _ in range(rounds):
            _ends_well(_fork(work))
            publisher.publish(b"from the parent", KIND)
            assert len(subscriber.poll()) == 1


def spawns(rounds: int, _dice: Random) -> None:
    """Spawned interpreters publish, several at once."""
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
    """A publisher that is killed leaves its topic free at once, even if a fork of its process lives on with all handles."""
    with tp.connect("shm://") as bus, bus.subscribe(NAME) as subscriber:
        for _ in range(rounds):
            with _child(_publish_until_killed, dice.random() < 0.5) as (child, ready):
                fork = int.from_bytes(os.read(ready, 4), "little")
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
    """A subscriber that is killed blocks no publisher, even if a fork of its process lives on."""
    with tp.connect("shm://") as bus, _publisher(bus, NAME, "fail") as publisher, bus.subscribe(NAME) as subscriber:
        # The first poll registers the subscriber.
        subscriber.poll()
        for _ in range(rounds):
            with _child(_subscribe_until_killed, dice.random() < 0.5) as (child, ready):
                fork = int.from_bytes(os.read(ready, 4), "little")
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
    """An interpreter ends with open handles, wherever they are stored."""
    for _ in range(rounds):
        seed = dice.random()
        child = os.fork()
        if child == 0:
            signal.alarm(3 * PATIENCE)
            _keep_open(Random(seed))
            # The child ends like any other interpreter.
            raise SystemExit
        _ends_well(child)


def collections(rounds: int, dice: Random) -> None:
    """Handles are collected in any order, and release their topics and queues."""
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
    """A fork opens its own handles, whatever the threads of its parent are doing."""
    is_over = threading.Event()
    failures: list[str] = []

    def churn(name: str) -> None:
        try:
            while not is_over.is_set():
                with tp.connect("shm://") as bus, _publisher(bus, name) as publisher, bus.subscribe(name) as subscriber:
                    publisher.publish(b"x", KIND)
                    assert len(subscriber.poll()) == 1
        except BaseException:
            failures.append(traceback.format_exc())

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
    assert not failures, failures


KINDS: dict[str, Callable[[int, Random], None]] = {
    kind.__name__: kind for kind in (forks, spawns, publisher_kills, subscriber_kills, exits, collections, threads)
}


class _Holder:
    """Owner of an object, in a reference cycle, which closes the object when collected."""

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
    """Opens and uses handles of the child's own."""
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


def _publish_until_killed(notify: Callable[[], None]) -> None:
    with tp.connect("shm://") as bus, _publisher(bus, NAME) as publisher:
        notify()
        number = 0
        while True:
            publisher.publish(number.to_bytes(8, "little") * (number % 20 + 1), KIND)
            number += 1


def _subscribe_until_killed(notify: Callable[[], None]) -> None:
    with tp.connect("shm://") as bus, bus.subscribe(NAME) as subscriber:
        subscriber.poll()
        notify()
        while True:
            subscriber.wait()
            subscriber.poll(3)


def _check(events: list[tp.Event]) -> bool:
    """Checks that no message mixes two; returns True if a message is from the next publisher."""
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
    raise AssertionError("a fork uses a handle of its parent")


def _fork(work: Callable[[], None]) -> int:
    """Forks a child that does this work, and then exits."""
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            # The child ends even without its parent.
            signal.alarm(3 * PATIENCE)
            work()
            ended = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(ended)
    return child


@contextmanager
def _child(work: Callable[[Callable[[], None]], None], has_fork: bool) -> Iterator[tuple[int, int]]:
    """Runs a child, which writes to a pipe when its work has begun: the process id of its own fork, or 0."""
    ready, written = os.pipe()

    def notify() -> None:
        fork = _fork(_idle) if has_fork else 0
        os.write(written, fork.to_bytes(4, "little"))

    child = _fork(lambda: work(notify))
    os.close(written)
    try:
        yield child, ready
    finally:
        os.close(ready)


def _idle() -> None:
    while True:
        signal.pause()


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0) == (child, signal.SIGKILL)


def _ends_well(child: int) -> None:
    pidfd = os.pidfd_open(child)
    try:
        _await_end(child, pidfd)
    finally:
        os.close(pidfd)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == 0, f"a child has ended with {ended}"


def _await_end(child: int, pidfd: int) -> None:
    """Waits for the end of a child, by its descriptor; a child that hangs prints its stacks, and is ended."""
    ends = select.poll()
    ends.register(pidfd, select.POLLIN)
    if ends.poll(PATIENCE * 1_000):
        return
    os.kill(child, signal.SIGABRT)
    if not ends.poll(5_000):
        os.kill(child, signal.SIGKILL)
    raise AssertionError("a child has hung; its stacks are above")


def main(kind: str, rounds: str, seed: str) -> None:
    faulthandler.enable()
    # Python warns of forks in programs with threads, which are tested here.
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
