"""Speed of the package on this host: `python python/bench/measure.py [ROW…]`, with nothing else running.

Each row is measured several times, in turn with the row that it is compared with, and the median is printed. Libraries that are
not installed (redis, pyzmq, iceoryx2), a missing server (TICKPATH_REDIS) and a missing command are named and left out.
"""

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import tickpath as tp

KIND = 200
DATA = b"x" * 48
ROUNDS = 5
MESSAGES = 1_000
GAP = 0.001
"""Seconds between two messages, so that each is alone."""

LENGTHS = {64: 20_000, 1 << 10: 10_000, 16 << 10: 1_000, 1 << 20: 24}
"""Bytes of a message, and the number of messages kept at a time: up to some 32 MiB."""


def quickest(act: Callable[[int], None], count: int) -> float:
    """Returns the nanoseconds per call, in the quickest of several rounds."""
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        act(count)
        took.append((time.perf_counter_ns() - begun) / count)
    return min(took)


def calls() -> None:
    """Measures publish and an empty poll, without the loop around them."""
    name = f"measure-{os.getpid()}"
    with tp.connect("shm://") as bus, bus.publisher(name) as publisher, bus.subscribe(name) as subscriber:

        def nothing(count: int) -> None:
            for _ in range(count):
                len(DATA)

        def publish(count: int) -> None:
            publish = publisher.publish
            for _ in range(count):
                publish(DATA, KIND)

        def poll(count: int) -> None:
            poll = subscriber.poll
            for _ in range(count):
                poll()

        loop = quickest(nothing, 300_000)
        print(f"publish(bytes of 48): {quickest(publish, 300_000) - loop:.0f} ns")
        while subscriber.poll(1_000):
            pass
        print(f"empty poll: {quickest(poll, 300_000) - loop:.0f} ns")
        bus.remove(name)


def batches() -> None:
    """Measures the objects and records received per second."""
    name = f"measure-{os.getpid()}"
    with tp.connect("shm://") as bus, bus.publisher(name) as publisher, bus.subscribe(name) as subscriber:
        ticks, room = np.zeros(4_000, tp.TOP_OF_BOOK), np.zeros(4_000, tp.TOP_OF_BOOK)

        def rate(receive: Callable[[], int]) -> float:
            count, took = 0, 0
            while count < 1_000_000:
                publisher.publish_batch(ticks)
                left = len(ticks)
                while left:
                    begun = time.perf_counter_ns()
                    got = receive()
                    took += time.perf_counter_ns() - begun
                    left -= got
                count += len(ticks)
            return count / took * 1e3

        print(f"objects: {rate(lambda: len(subscriber.poll(1_000))):.1f} M/s")
        print(f"numpy records: {rate(lambda: subscriber.poll_into(room)):.0f} M/s")
        bus.remove(name)


def lend() -> None:
    """Measures a lent message in turn with a polled one: up to which length copying is cheaper. A polled message is in the
    cache, so the messages are also measured with all their bytes read.
    """
    Look = Callable[[bytes | memoryview], object]

    def polled(subscriber: tp.Subscriber, look: Look) -> None:
        (event,) = subscriber.poll(1)
        assert isinstance(event, tp.Message)
        look(event.payload)

    def lent(subscriber: tp.Subscriber, look: Look) -> None:
        frame = subscriber.lend()
        assert isinstance(frame, tp.Frame)
        with frame, frame.data as data:
            look(data)

    def took(length: int, receive: Callable[[tp.Subscriber, Look], None], look: Look) -> float:
        name, count = f"measure-{os.getpid()}", LENGTHS[length]
        with tp.connect("shm://") as bus:
            with bus.publisher(name, "keep", capacity=max(1 << 20, 4 * length)) as publisher:
                data = bytes(length)
                for _ in range(count):
                    publisher.publish(data, KIND)
            with bus.subscribe(name, "oldest") as subscriber:
                begun = time.perf_counter_ns()
                for _ in range(count):
                    receive(subscriber, look)
                ended = time.perf_counter_ns()
            bus.remove(name)
        return (ended - begun) / count

    looks: dict[str, Look] = {"its first byte read": lambda data: data[0], "all of it read": zlib.crc32}
    for length in LENGTHS:
        for words, look in looks.items():
            turns = [(took(length, polled, look), took(length, lent, look)) for _ in range(ROUNDS)]
            copies, frames = (median(times) for times in zip(*turns, strict=True))
            print(f"{length} B, {words}: polled {copies:.0f} ns, lent {frames:.0f} ns, {frames / copies:.2f} of it")


def pace() -> None:
    """Spins during the gap, so that the publisher is warm, as in the benches of the command."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < GAP:
        pass


def publish_alone(url: str, name: str) -> None:
    """Publishes one message at a time, each stamped."""
    with tp.connect(url) as bus, bus.publisher(name) as publisher:
        time.sleep(1)
        for _ in range(MESSAGES):
            pace()
            publisher.publish(DATA, KIND)
        time.sleep(0.3)


def publish_by_redis(url: str, name: str) -> None:
    import redis  # type: ignore[import-not-found]

    client = redis.Redis.from_url(url)
    time.sleep(1)
    for _ in range(MESSAGES):
        pace()
        client.publish(name, tp.now().to_bytes(8, "little") + DATA[8:])
    time.sleep(0.3)


def publish_by_zmq(url: str, _name: str) -> None:
    import zmq  # type: ignore[import-not-found]

    socket = zmq.Context().socket(zmq.PUB)
    socket.bind(url)
    time.sleep(1)
    for _ in range(MESSAGES):
        pace()
        socket.send(tp.now().to_bytes(8, "little") + DATA[8:])
    time.sleep(0.3)


def iceoryx_service(name: str) -> Any:
    """Opens a service of iceoryx2; returns its node, the service and the type of its messages."""
    import ctypes

    import iceoryx2 as iox2  # type: ignore[import-not-found]

    class Stamped(ctypes.Structure):
        _fields_ = [("stamp", ctypes.c_uint64), ("rest", ctypes.c_uint8 * (len(DATA) - 8))]

        @staticmethod
        def type_name() -> str:
            return "Stamped"

    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    service = node.service_builder(iox2.ServiceName.new(name)).publish_subscribe(Stamped).open_or_create()
    return node, service, Stamped


def publish_by_iceoryx(_url: str, name: str) -> None:
    _node, service, stamped = iceoryx_service(name)
    publisher, message = service.publisher_builder().create(), stamped()
    time.sleep(1)
    for _ in range(MESSAGES):
        pace()
        message.stamp = tp.now()
        publisher.send_copy(message)
    time.sleep(0.3)


Publish = Callable[[str, str], None]


def beside(publish: Publish, url: str, name: str, receive: Callable[[], list[int]]) -> float:
    """Returns the median latency of the messages that another process publishes, in nanoseconds."""
    process = get_context("spawn").Process(target=publish, args=(url, name))
    process.start()
    latencies = receive()
    process.join()
    return median(latencies)


def of_tickpath(wait: str) -> float:
    name = f"measure-{os.getpid()}-{time.monotonic_ns()}"
    latencies: list[int] = []

    def receive() -> list[int]:
        with tp.connect("shm://") as bus, bus.subscribe(name, wait=wait) as subscriber:  # type: ignore[arg-type]
            for event in subscriber:
                assert isinstance(event, tp.Message)
                latencies.append(tp.ns_between(event.stamp, tp.now()))
                if len(latencies) == MESSAGES:
                    bus.remove(name)
                    return latencies
        return latencies

    return beside(publish_alone, "shm://", name, receive)


def of_polling() -> float:
    """Measures the quickest wait: a loop of polls in Python."""
    name = f"measure-{os.getpid()}-{time.monotonic_ns()}"
    latencies: list[int] = []

    def receive() -> list[int]:
        with tp.connect("shm://") as bus, bus.subscribe(name) as subscriber:
            poll, now = subscriber.poll, tp.now
            while len(latencies) < MESSAGES:
                while not (events := poll()):
                    pass
                seen = now()
                for event in events:
                    assert isinstance(event, tp.Message)
                    latencies.append(tp.ns_between(event.stamp, seen))
            bus.remove(name)
        return latencies

    return beside(publish_alone, "shm://", name, receive)


def of_rust(wait: str) -> float:
    """Measures the same by the command's own processes."""
    command = os.environ.get("TICKPATH", "tickpath")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "result.json")
        options = f"--target shm:// --size 48 --wait {wait} --phase steady --rate 1000 --duration 2 --json {file}"
        subprocess.run([command, "bench", "pubsub", *options.split()], check=False, capture_output=True)
        runs = json.loads(file.read_text())["runs"]
    return float(median(run["hops"]["one_way"]["p50_ns"] for run in runs))


def of_redis() -> float:
    import redis

    url = os.environ["TICKPATH_REDIS"]
    latencies: list[int] = []

    def receive() -> list[int]:
        pubsub = redis.Redis.from_url(url).pubsub()
        pubsub.subscribe("measure")
        for message in pubsub.listen():
            if message["type"] == "message":
                latencies.append(tp.ns_between(int.from_bytes(message["data"][:8], "little"), tp.now()))
                if len(latencies) == MESSAGES:
                    break
        return latencies

    return beside(publish_by_redis, url, "measure", receive)


def of_zmq() -> float:
    import zmq

    latencies: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        url = f"ipc://{folder}/socket"

        def receive() -> list[int]:
            socket = zmq.Context().socket(zmq.SUB)
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(url)
            while len(latencies) < MESSAGES * 9 // 10:
                try:
                    data = socket.recv(zmq.NOBLOCK)
                except zmq.Again:
                    continue
                latencies.append(tp.ns_between(int.from_bytes(data[:8], "little"), tp.now()))
            return latencies

        return beside(publish_by_zmq, url, "", receive)


def of_iceoryx() -> float:
    name = f"measure-{os.getpid()}-{time.monotonic_ns()}"
    latencies: list[int] = []

    def receive() -> list[int]:
        _node, service, _type = iceoryx_service(name)
        subscriber = service.subscriber_builder().create()
        receive, now = subscriber.receive, tp.now
        while len(latencies) < MESSAGES * 9 // 10:
            while (sample := receive()) is None:
                pass
            seen = now()
            latencies.append(tp.ns_between(sample.payload().contents.stamp, seen))
            sample.delete()
        return latencies

    return beside(publish_by_iceoryx, "", name, receive)


def one_way() -> None:
    """Measures from the publish call to the object in another process, at a message per millisecond."""
    clients: dict[str, Callable[[], float]] = {
        "Python to Python, poll in a loop": of_polling,
        "Python to Python, busy": lambda: of_tickpath("busy"),
        "Rust to Rust, busy": lambda: of_rust("busy"),
        "Python to Python, blocking": lambda: of_tickpath("block"),
    }
    if "TICKPATH_REDIS" in os.environ and importlib.util.find_spec("redis"):
        clients["redis-py listen"] = of_redis
    else:
        print("without redis-py: install redis, and name a server by TICKPATH_REDIS", file=sys.stderr)
    if importlib.util.find_spec("zmq"):
        clients["pyzmq over ipc, spinning"] = of_zmq
    else:
        print("without pyzmq: it is not installed", file=sys.stderr)
    if importlib.util.find_spec("iceoryx2"):
        clients["iceoryx2, receive in a loop"] = of_iceoryx
    else:
        print("without iceoryx2: it is not installed", file=sys.stderr)
    found: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(ROUNDS):
        for name, measure in clients.items():
            found[name].append(measure())
    for name, medians in found.items():
        print(f"one way, {name}: p50 {median(medians) / 1e3:.2f} µs ({min(medians) / 1e3:.2f} to {max(medians) / 1e3:.2f})")


def event_loop() -> None:
    """Measures from the publish call to a task, and the parts of this time."""

    def awaited() -> float:
        name = f"measure-{os.getpid()}-{time.monotonic_ns()}"
        latencies: list[int] = []

        async def main() -> None:
            with tp.connect("shm://") as bus, bus.subscribe(name) as subscriber:
                async for event in subscriber:
                    assert isinstance(event, tp.Message)
                    latencies.append(tp.ns_between(event.stamp, tp.now()))
                    if len(latencies) == MESSAGES:
                        bus.remove(name)
                        return

        def receive() -> list[int]:
            asyncio.run(main())
            return latencies

        return beside(publish_alone, "shm://", name, receive)

    def bare() -> float:
        """Measures an eventfd that a thread of the same process writes."""
        readable, latencies, sent, left = os.eventfd(0, os.EFD_NONBLOCK), list[int](), [0], [MESSAGES]

        async def main() -> None:
            loop = asyncio.get_running_loop()
            done = loop.create_future()

            def notified() -> None:
                latencies.append(tp.ns_between(sent[0], tp.now()))
                # Two writes may cause one call.
                left[0] -= os.eventfd_read(readable)
                if left[0] == 0:
                    done.set_result(None)

            loop.add_reader(readable, notified)
            await done

        def write() -> None:
            time.sleep(0.3)
            for _ in range(MESSAGES):
                time.sleep(GAP)
                sent[0] = tp.now()
                os.eventfd_write(readable, 1)

        thread = threading.Thread(target=write)
        thread.start()
        asyncio.run(main())
        thread.join()
        os.close(readable)
        return median(latencies)

    waits = {"async for": awaited, "a blocking wait": lambda: of_tickpath("block"), "a bare eventfd": bare}
    found: dict[str, list[float]] = {name: [] for name in waits}
    for _ in range(ROUNDS):
        for name, measure in waits.items():
            found[name].append(measure())
    for name, medians in found.items():
        print(f"wake-up, {name}: p50 {median(medians) / 1e3:.1f} µs")


def life() -> None:
    """Measures the import, an interrupt, another thread's speed, and wake-ups without messages."""
    script = "import time; a = time.perf_counter(); import tickpath; print(time.perf_counter() - a)"
    took = [float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(ROUNDS)]
    print(f"import: {median(took) * 1e3:.0f} ms")

    name = f"measure-{os.getpid()}"
    with tp.connect("shm://") as bus, bus.publisher(name), bus.subscribe(name) as subscriber:
        late = []
        for _ in range(ROUNDS):
            sent = [0.0]

            def interrupt(sent: list[float] = sent) -> None:
                time.sleep(0.2)
                sent[0] = time.perf_counter()
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=interrupt).start()
            try:
                next(subscriber)
            except KeyboardInterrupt:
                late.append(time.perf_counter() - sent[0])
        print(f"Ctrl-C in a blocking wait: {median(late) * 1e3:.2f} ms")

        def speed(seconds: float) -> float:
            begun, turns = time.perf_counter(), 0
            while time.perf_counter() - begun < seconds:
                turns += 1
            return turns / seconds

        ratios = []
        for _ in range(ROUNDS):
            alone = speed(0.5)
            waiting = threading.Thread(target=subscriber.wait, args=(0.7,))
            waiting.start()
            ratios.append(speed(0.5) / alone)
            waiting.join()
        print(f"another thread during a wait: {median(ratios):.1%} of its speed")

        before = switches()
        subscriber.wait(5)
        print(f"wake-ups of a blocked wait: {(switches() - before) / 5:.1f} a second")


def switches() -> int:
    """Returns the number of voluntary context switches of this thread."""
    status = Path("/proc/thread-self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("voluntary")).split()[1])


ROWS = {"calls": calls, "batches": batches, "lend": lend, "one_way": one_way, "event_loop": event_loop, "life": life}

if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ROWS]
    if unknown:
        sys.exit(f"measure: {unknown[0]!r} is no row; use {', '.join(ROWS)}")
    for row in sys.argv[1:] or ROWS:
        ROWS[row]()
