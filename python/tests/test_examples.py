"""The examples, each run like by a user."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tickpath as tp
from conftest import Place

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
LONGEST_S = 60


@pytest.fixture
def url(log: Place) -> Iterator[str]:
    """Provides the URL of a bus in shared memory without other topics."""
    scratch = f"shm://{log.name}"
    yield scratch
    with tp.connect(scratch) as bus:
        bus.remove("ticks")
        bus.remove_queue("orders")


class Example:
    """A running example."""

    def __init__(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-u", str(EXAMPLES / name), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def await_text(self, text: str) -> None:
        """Reads the output up to a line with this text."""
        assert self.process.stdout is not None
        lines: list[str] = []
        while text not in "".join(lines[-1:]):
            line = self.process.stdout.readline()
            assert line, f"{text!r} is missing: {lines}"
            lines.append(line)

    def end(self) -> str:
        """Waits for the end; returns the rest of the output."""
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        assert self.process.wait() == 0, rest
        return rest

    def interrupt(self) -> str:
        """Presses Ctrl-C, which ends the example without a traceback."""
        self.process.send_signal(signal.SIGINT)
        rest = self.end()
        assert "Traceback" not in rest
        return rest


@contextmanager
def running(name: str, *arguments: str) -> Iterator[Example]:
    """Runs an example, which is killed at the end, or when it takes too long."""
    example = Example(name, *arguments)
    watch = threading.Timer(LONGEST_S, example.process.kill)
    watch.start()
    try:
        yield example
    finally:
        watch.cancel()
        example.process.kill()
        with example.process:
            pass


def test_a_publisher_and_a_subscriber(url: str) -> None:
    with running("02_subscribe.py", url) as subscriber:
        subscriber.await_text("waiting for 'ticks'")
        with running("01_publish.py", url) as publisher:
            publisher.await_text("publishing 'ticks'")
            subscriber.await_text("bid 64000.25, ask 64000.75")
            subscriber.await_text("bid 64000.50, ask 64001.00")
            publisher.interrupt()
        with tp.connect(url) as bus, bus.publisher("ticks") as ticks:
            ticks.publish(b"other", 200)
            subscriber.await_text("Message(kind=200, payload=b'other')")
        subscriber.interrupt()


def test_numpy(url: str) -> None:
    with running("03_numpy.py", url) as example, tp.connect(url) as bus, bus.publisher("ticks") as ticks:
        example.await_text("waiting for 'ticks'")
        bid = tp.units(64_000)
        ticks.publish_batch([tp.TopOfBook(bid, 1, bid + tp.units("0.5"), 1)] * 100)
        example.await_text("100 ticks, mean spread 0.50")
        ticks.publish(b"other", 200)
        example.await_text("Message(kind=200, payload=b'other')")
        example.interrupt()


def test_a_queue(url: str) -> None:
    expected = ["first: order 1", "first: order 2", "first: order 3"]
    expected += ["second: order 3, again", "second: order 4", "second: order 5"]
    with running("04_queue.py", url) as example:
        assert example.end().splitlines() == expected


@pytest.mark.parametrize("transport", ["shm", "redis"])
def test_a_bridge(url: str, transport: str, log: Place) -> None:
    if transport == "redis" and "TICKPATH_REDIS" not in os.environ:
        pytest.skip("TICKPATH_REDIS names no broker; scripts/brokers run -- starts them")
    source = os.environ["TICKPATH_REDIS"] if transport == "redis" else f"shm://{log.name}-from"
    with tp.connect(source) as there, tp.connect(url) as here:
        with there.publisher("ticks") as publisher, running("05_redis_to_shm.py", source, url) as example:
            example.await_text("carrying 'ticks' of ")
            with here.subscribe("ticks") as subscriber:
                publisher.publish_batch([b"1", b"2", b"3"], 200)
                example.await_text("3 messages, 0 missed")
                assert len(subscriber.poll()) == 3
            example.interrupt()
        there.remove("ticks")
