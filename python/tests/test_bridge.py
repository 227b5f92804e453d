"""Bridges: messages published at the source arrive at the target, and a failure is raised."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tickpath as tp
from conftest import Place
from test_topics import collect, payloads

KIND = 200
TOPICS = ("ticks", "trades", "prices")


@dataclass(frozen=True)
class Ends:
    """Two buses in shared memory without other topics."""

    source: str
    target: str


@pytest.fixture
def ends(log: Place) -> Iterator[Ends]:
    buses = Ends(f"shm://{log.name}-from", f"shm://{log.name}-to")
    yield buses
    for url in (buses.source, buses.target):
        with tp.connect(url) as bus:
            for topic in TOPICS:
                bus.remove(topic)


def test_bridge_carries_messages_to_the_target(ends: Ends) -> None:
    tick = tp.TopOfBook(1, 2, 3, 4)
    with tp.connect(ends.source) as there, tp.connect(ends.target) as here:
        with there.publisher("ticks") as publisher, tp.bridge(ends.source, ends.target, "ticks") as bridge:
            with here.subscribe("ticks") as subscriber:
                publisher.publish(tick, stamp=11)
                publisher.publish_batch([b"a", b"b"], KIND)
                first, *others = collect(subscriber, 3)
            assert isinstance(first, tp.TopOfBook) and (bytes(first), first.stamp) == (bytes(tick), 11)
            assert payloads(others) == [b"a", b"b"]
            # A message is counted after its publishing.
            while bridge.totals()["ticks"].messages < 3:
                assert not bridge.wait(0.001)
            assert bridge.told() == [f"carrying 'ticks' of {ends.source} to 'ticks' of {ends.target}"]
            assert bridge.told() == []
        carried = bridge.totals()["ticks"]
        assert (carried.messages, carried.bytes, carried.foreign, carried.left) == (3, 50, 0, 0)
        assert repr(carried).startswith("Carried(messages=3, ")
        assert bridge.wait()
        # The target's topic has no publisher any more.
        here.publisher("ticks").close()


def test_every_source_is_carried_into_shared_memory(any_place: Place, ends: Ends) -> None:
    topics = {any_place.name: "ticks"}
    with tp.connect(ends.target) as here, any_place.bus.publisher(any_place.name) as publisher:
        with tp.bridge(any_place.url, ends.target, topics) as bridge, here.subscribe("ticks") as subscriber:
            publisher.publish_batch([bytes([number]) for number in range(100)], KIND)
            assert payloads(collect(subscriber, 100)) == [bytes([number]) for number in range(100)]
        assert bridge.totals()[any_place.name].messages == 100


def test_several_topics_are_carried(ends: Ends) -> None:
    with tp.connect(ends.source) as there, tp.connect(ends.target) as here:
        with there.publisher("ticks") as ticks, there.publisher("trades") as trades:
            ticks.publish(b"tick", KIND)
            trades.publish(b"trade", KIND)
            with tp.bridge(ends.source, ends.target, ["ticks", "trades"], start="oldest") as bridge:
                for topic, expected in (("ticks", b"tick"), ("trades", b"trade")):
                    with here.subscribe(topic, "oldest") as subscriber:
                        assert payloads(collect(subscriber, 1)) == [expected]
    assert {topic: carried.messages for topic, carried in bridge.totals().items()} == {"ticks": 1, "trades": 1}


def test_bridge_resumes_at_its_position(ends: Ends, tmp_path: Path) -> None:
    with tp.connect(ends.source) as there, tp.connect(ends.target) as here, there.publisher("ticks") as publisher:
        with here.subscribe("ticks") as subscriber:
            for number in range(3):
                publisher.publish(bytes([number]), KIND)
                with tp.bridge(ends.source, ends.target, "ticks", start="oldest", resume=tmp_path):
                    assert payloads(collect(subscriber, 1)) == [bytes([number])]
            assert not subscriber.wait(0.01)


def test_invalid_calls_raise_the_remedy(ends: Ends) -> None:
    source, target = ends.source, ends.target
    no_text: Any = [b"ticks"]
    mistakes: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: tp.bridge(source, target, []), ValueError, "no topic is given; give at least one"),
        (lambda: tp.bridge(source, target, no_text), TypeError, "a topic name is text"),
        (lambda: tp.bridge(source, target, "ticks", foreign_kind=3), ValueError, "use 16 to 255"),
        (lambda: tp.bridge(source, target, "ticks", wait="spin"), ValueError, "use one of 'busy'"),  # type: ignore[arg-type]
        (lambda: tp.bridge(source, target, "ticks", policy="drop"), ValueError, "use one of 'overwrite'"),  # type: ignore[arg-type]
        (lambda: tp.bridge(source, target, "ticks", start="yesterday"), ValueError, "start with 'now', 'oldest'"),
        (lambda: tp.bridge(source, "zmq://localhost", "ticks"), tp.ConnectError, "names no transport"),
        (lambda: tp.bridge(source, source, "ticks"), tp.ConnectError, "would never end"),
        (lambda: tp.bridge(source, target, ["ticks", "ticks"]), tp.ConnectError, "two topics would be published"),
        (lambda: tp.bridge(source, target, "no name"), tp.ConnectError, "is no topic name"),
    ]
    for act, error, words in mistakes:
        with pytest.raises(error, match=words):
            act()
    with tp.connect(target) as bus, bus.publisher("ticks"), pytest.raises(tp.ConnectError, match="already"):
        tp.bridge(source, target, "ticks")
    with tp.bridge(source, target, "ticks") as bridge, pytest.raises(ValueError, match="0 or more"):
        bridge.wait(-1)


def fail(ends: Ends, folder: Path) -> tp.Bridge:
    """Starts a bridge whose position cannot be saved any more."""
    with tp.connect(ends.source) as there, there.publisher("ticks") as publisher:
        bridge = tp.bridge(ends.source, ends.target, "ticks", resume=folder)
        folder.rename(folder.with_suffix(".gone"))
        publisher.publish(b"x", KIND)
    return bridge


def test_wait_raises_the_failure_and_close_does_not_repeat_it(ends: Ends, tmp_path: Path) -> None:
    bridge = fail(ends, tmp_path / "places")
    for _ in range(2):
        with pytest.raises(tp.ConnectError, match="cannot be saved"):
            bridge.wait(60)
    bridge.close()


def test_end_of_the_with_block_raises_the_failure(ends: Ends, tmp_path: Path) -> None:
    with pytest.raises(tp.ConnectError, match="cannot be saved"), fail(ends, tmp_path / "one"):
        pass
    with pytest.raises(KeyError) as raised, fail(ends, tmp_path / "other"):
        raise KeyError("of the block")
    assert any("the bridge had ended: " in note and "cannot be saved" in note for note in raised.value.__notes__)


def test_interrupt_ends_the_wait(ends: Ends) -> None:
    script = """
import os, signal, sys, threading, tickpath as tp
with tp.bridge(sys.argv[1], sys.argv[2], "ticks") as bridge:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        bridge.wait()
    except KeyboardInterrupt:
        print("interrupted")
"""
    arguments = [sys.executable, "-c", script, ends.source, ends.target]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", ""), done


def test_the_interpreter_ends_with_an_open_bridge(ends: Ends) -> None:
    script = 'import sys, tickpath as tp; bridge = tp.bridge(sys.argv[1], sys.argv[2], "ticks"); kept = [bridge]'
    arguments = [sys.executable, "-c", script, ends.source, ends.target]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done


def test_a_fork_leaves_the_bridge_to_its_parent(ends: Ends) -> None:
    with tp.bridge(ends.source, ends.target, "ticks") as bridge:
        child = os.fork()
        if child == 0:
            refused = 0
            uses: list[Callable[[], object]] = [bridge.wait, bridge.told, bridge.totals]
            for use in uses:
                try:
                    use()
                except tp.Forked:
                    refused += 1
            bridge.close()
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert not bridge.wait(0.001)
