"""The module and the C library in one process: each has its own copy of the code that admits one publisher per topic."""

import ctypes
import os
import subprocess
import sys

import pytest

import tickpath as tp
from conftest import Place

KIND = 200
CAPACITY = 1 << 16

# Constants of `tickpath.h`.
HAS_PUBLISHER, TOPIC_FULL = 4, 7
FAIL = 2
NOW = 2**64 - 1

LIBRARY = os.environ.get("TICKPATH_LIBRARY")

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="TICKPATH_LIBRARY names no libtickpath.so")


class PublisherConfig(ctypes.Structure):
    """`tp_publisher_config`."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("policy", ctypes.c_uint32),
        ("mode", ctypes.c_uint32),
        ("capacity_bytes", ctypes.c_size_t),
        ("max_age_ns", ctypes.c_uint64),
    ]


class CPublisher:
    """A publisher of the C library in this process. Its functions return a `tp_status`."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(LIBRARY)
        self.bus, self.publisher = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.tp_connect(b"shm://", ctypes.byref(self.bus)) == 0

    def open(self, topic: str, policy: int = 0) -> int:
        config = PublisherConfig(ctypes.sizeof(PublisherConfig), policy, 0, CAPACITY, 0)
        opened = ctypes.byref(config), ctypes.byref(self.publisher)
        return int(self.library.tp_publisher_open(self.bus, topic.encode(), *opened))

    def publish(self, number: int) -> int:
        data = number.to_bytes(8, "little")
        stamp, kind, length = ctypes.c_uint64(NOW), ctypes.c_uint8(KIND), ctypes.c_size_t(len(data))
        return int(self.library.tp_publisher_publish(self.publisher, stamp, kind, data, length))

    def close(self) -> None:
        assert self.library.tp_publisher_close(self.publisher) == 0


def is_refused_elsewhere(topic: str) -> bool:
    """Reports whether another process cannot publish the topic."""
    script = """
import sys, tickpath as tp
try:
    tp.connect("shm://").publisher(sys.argv[1], capacity=int(sys.argv[2])).close()
except tp.ConnectError:
    print("refused")
"""
    command = [sys.executable, "-c", script, topic, str(CAPACITY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout == "refused\n"


def test_a_topic_has_one_publisher(log: Place) -> None:
    c = CPublisher()
    with log.bus.publisher(log.name, capacity=CAPACITY) as publisher:
        # Each attempt closes a file of the library on which the module holds a lock.
        for _ in range(3):
            assert c.open(log.name) == HAS_PUBLISHER
            assert is_refused_elsewhere(log.name)
        publisher.publish(b"x", KIND)
    for _ in range(2):
        assert c.open(log.name) == 0
        with pytest.raises(tp.ConnectError, match=str(os.getpid())):
            log.bus.publisher(log.name, capacity=CAPACITY)
        assert is_refused_elsewhere(log.name)
        c.close()
        assert not is_refused_elsewhere(log.name)
        log.bus.publisher(log.name, capacity=CAPACITY).close()


def test_a_subscriber_holds_a_publisher(log: Place) -> None:
    log.bus.publisher(log.name, "fail", capacity=CAPACITY).close()
    c = CPublisher()
    with log.bus.subscribe(log.name) as subscriber:
        # The first poll registers the subscriber.
        subscriber.poll()
        assert c.open(log.name, FAIL) == 0
        sent = 0
        while (status := c.publish(sent)) == 0:
            sent += 1
        assert (status, c.publish(sent)) == (TOPIC_FULL, TOPIC_FULL)
        payloads = [event.payload for event in subscriber.poll(CAPACITY) if isinstance(event, tp.Message)]
        assert payloads == [number.to_bytes(8, "little") for number in range(sent)]
        assert c.publish(sent) == 0
    c.close()
