"""Programs that use Redis without Tickpath, on a server that Tickpath uses, too, as in docs/redis-py.md."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

import tickpath as tp
from conftest import Place, place
from test_topics import collect, payloads

KIND = 200
HEADER = 40


@pytest.fixture(params=["", "?streams"])
def redis(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Provides a place on a Redis server."""
    if "TICKPATH_REDIS" not in os.environ:
        pytest.skip("TICKPATH_REDIS names no broker; scripts/brokers run -- starts them")
    yield from place(os.environ["TICKPATH_REDIS"] + request.param)


class Other:
    """A connection of another program, which sends a command per line."""

    def __init__(self, url: str) -> None:
        server = urlsplit(url)
        self.socket = socket.create_connection((server.hostname, server.port or 6379), 60)

    def request(self, command: str, last: bytes) -> bytes:
        """Sends a command; returns the server's answer up to these bytes."""
        self.socket.sendall(command.encode() + b"\r\n")
        return self.await_bytes(last)

    def await_bytes(self, last: bytes) -> bytes:
        received = b""
        while last not in received:
            more = self.socket.recv(4096)
            assert more, f"the server has closed the connection after {received!r}"
            received += more
        return received


@pytest.fixture
def other(redis: Place) -> Iterator[Other]:
    connection = Other(redis.url)
    yield connection
    connection.socket.close()


def has_header(value: bytes) -> bool:
    """Reports whether a value begins with Tickpath's header of 40 bytes, as on the page."""
    return value[8] == KIND and value[9:16] == b"tickpt2"


def test_messages_of_other_programs_are_foreign_and_complete(redis: Place, other: Other) -> None:
    is_stream = redis.url.endswith("?streams")
    with redis.bus.subscribe(redis.name) as subscriber:
        if is_stream:
            other.request(f"XADD {redis.name} * bid 64000.25 ask 64000.5", b"\r\n")
        else:
            other.request(f"PUBLISH {redis.name} 64000.25", b"\r\n")
        (event,) = collect(subscriber, 1)
    assert isinstance(event, tp.Foreign)
    if is_stream:
        assert json.loads(event.payload) == {"bid": "64000.25", "ask": "64000.5"}
    else:
        assert event.payload == b"64000.25"


def test_other_programs_find_the_payload_behind_the_header(redis: Place, other: Other) -> None:
    with redis.bus.publisher(redis.name) as publisher:
        if redis.url.endswith("?streams"):
            publisher.publish(b"payload", KIND)
            received = other.request(f"XRANGE {redis.name} - +", b"payload")
            assert b"$1\r\nm\r\n" in received
        else:
            other.request(f"SUBSCRIBE {redis.name}", b":1\r\n")
            publisher.publish(b"payload", KIND)
            received = other.await_bytes(b"payload")
    value = received[received.index(b"payload") - HEADER :]
    assert has_header(value) and value[HEADER:].startswith(b"payload")


def test_list_queue_refuses_entries_of_other_programs(redis: Place, other: Other) -> None:
    if redis.url.endswith("?streams"):
        pytest.skip("a list is a queue of the other URL")
    with redis.bus.pusher(redis.name, "at-most-once") as pusher:
        pusher.push(b"payload", KIND)
    received = other.request(f"BRPOP {redis.name} 0", b"payload\r\n")
    value = received[received.index(b"payload") - HEADER :]
    assert has_header(value)
    other.request(f"LPUSH {redis.name} theirs", b"\r\n")
    with pytest.raises(tp.ConnectError, match="what another program has pushed"):
        redis.bus.puller(redis.name, "at-most-once")
    # The entry stays for the program that pushed it.
    assert other.request(f"LLEN {redis.name}", b"\r\n") == b":1\r\n"


def test_bridge_carries_messages_of_other_programs(redis: Place, other: Other) -> None:
    if redis.url.endswith("?streams"):
        pytest.skip("the other URL is the one that redis-py publishes on")
    target = f"shm://{redis.name}"
    with tp.connect(target) as here, ExitStack() as left:
        left.callback(here.remove, "ticks")
        with tp.bridge(redis.url, target, {redis.name: "ticks"}, foreign_kind=KIND) as bridge:
            with here.subscribe("ticks") as subscriber:
                other.request(f"PUBLISH {redis.name} 64000.25", b"\r\n")
                (event,) = received = collect(subscriber, 1)
        assert payloads(received) == [b"64000.25"]
        assert isinstance(event, tp.Message) and event.kind == KIND and event.stamp > 0
        assert bridge.totals()[redis.name].foreign == 1
        assert any("messages of other programs" in sentence for sentence in bridge.told())


class Wire:
    """A proxy of the Redis server that can become silent: connections stay, and forward nothing."""

    def __init__(self) -> None:
        host, port = os.environ["TICKPATH_REDIS"].removeprefix("redis://").split(":")
        self.server = host, int(port)
        self.is_silent = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(self.server)
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, from_: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := from_.recv(1 << 16):
                if not self.is_silent:
                    to.sendall(data)
        with suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire() -> Wire:
    if "TICKPATH_REDIS" not in os.environ:
        pytest.skip("TICKPATH_REDIS names no broker; scripts/brokers run -- starts them")
    return Wire()


def test_close_does_not_wait_for_the_answer_to_another_thread(wire: Wire) -> None:
    has_ended = threading.Event()
    raised: list[tp.PublishError] = []

    async def main() -> None:
        bus = tp.connect(wire.url)
        publisher = bus.publisher(f"tickpath:test-{os.getpid()}-close")
        publisher.publish(b"first", 200)
        wire.is_silent = True

        def publish() -> None:
            try:
                publisher.publish(b"second", 200)
            except tp.PublishError as e:
                raised.append(e)
            has_ended.set()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(publish), 0.1)
        publisher.close()
        bus.close()
        assert not has_ended.is_set(), "the event loop was blocked until the answer"

    asyncio.run(main())
    assert has_ended.wait(60)
    assert raised and "it is unknown whether the message has arrived" in str(raised[0])


def state(subscriber: tp.Subscriber) -> tuple[object, ...]:
    return subscriber.outage, subscriber.reconnects, subscriber.duplicates, subscriber.late


def test_outage_and_its_end_are_reported(wire: Wire) -> None:
    topic = f"tickpath:test-{os.getpid()}-outage"
    with tp.connect(f"{wire.url}?silence=3") as bus, bus.subscribe(topic) as subscriber:
        assert state(subscriber) == (None, 0, 0, 0)
        wire.is_silent = True
        while not (outage := subscriber.outage):
            subscriber.wait(0.05)
            assert subscriber.poll() == []
        assert wire.url in outage and "sent nothing for 3 s" in outage, outage
        wire.is_silent = False
        while not (received := subscriber.poll()):
            subscriber.wait(0.05)
        assert received == [tp.Gap(None)]
        assert state(subscriber) == (None, 1, 0, 0)
