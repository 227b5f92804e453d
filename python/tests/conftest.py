"""Places for tests: a log for each test, and every broker that the environment names."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

import tickpath as tp
from desk import COMMAND, Desk, await_price

BROKERS = {
    "redis": ("TICKPATH_REDIS", ""),
    "redis streams": ("TICKPATH_REDIS", "?streams"),
    "nats": ("TICKPATH_NATS", ""),
    "jetstream": ("TICKPATH_NATS", "?jetstream"),
    "amqp": ("TICKPATH_AMQP", ""),
    "kafka": ("TICKPATH_KAFKA", ""),
}
NAMES = count()


@dataclass(frozen=True)
class Place:
    """A bus, and a name that is unique on this host."""

    bus: tp.Bus
    url: str
    name: str


def place(url: str) -> Iterator[Place]:
    """Yields a place, and removes its topic and its queue afterwards."""
    name = f"tickpath-test-python-{os.getpid()}-{next(NAMES)}"
    with tp.connect(url) as bus:
        yield Place(bus, url, name)
        bus.remove(name)
        bus.remove_queue(name)


@pytest.fixture
def log() -> Iterator[Place]:
    """Provides a place in shared memory."""
    yield from place("shm://")


@pytest.fixture(params=["shm", "file", *BROKERS])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Provides a place on every available transport."""
    if request.param == "shm":
        url = "shm://"
    elif request.param == "file":
        url = f"file://{tmp_path}"
    else:
        variable, query = BROKERS[request.param]
        if variable not in os.environ:
            pytest.skip(f"{variable} names no broker; scripts/brokers run -- starts them")
        url = os.environ[variable] + query
    yield from place(url)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Provides an OMS, a simulated exchange, and a market that has quoted."""
    if COMMAND is None:
        pytest.skip("TICKPATH names no command: TICKPATH=target/debug/tickpath")
    desk = Desk(tmp_path_factory.mktemp("desk"))
    try:
        desk.start("exchange")
        desk.start("oms")
        await_price(desk)
        yield desk
    finally:
        desk.close()
