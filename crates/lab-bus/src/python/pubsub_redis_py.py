"""Both ends of pubsub by redis-py, over a channel of Redis: publish, pipelines of it, and listen."""

from collections.abc import Callable
from struct import Struct
from time import monotonic_ns as now

from reconnects import connected, reconnects

import redis

# Before the payload, as the bus has it: the stamp, the kind, and what tells a message from others.
HEADER = Struct("<QB7s")
KIND = 200
MARK = b"tickpt1"

# How long the server may take to answer, in seconds.
ANSWER_S = 30

Error = redis.RedisError


def sentence(error: redis.RedisError) -> str:
    what = f"{type(error).__name__}: {error}".rstrip(".")
    return f"{what}; look whether the server is still there, and try again"


def connect(settings: dict, timeout_s: float | None) -> redis.Redis:
    limits = {"socket_timeout": timeout_s, "socket_connect_timeout": ANSWER_S}
    return redis.Redis.from_url(settings["target"], redis_connect_func=connected, **limits)


class Publisher:
    def __init__(self, settings: dict) -> None:
        self.channel: str = settings["topic"]
        self.client = connect(settings, ANSWER_S)
        # The first message does not pay for the connection.
        self.client.ping()

    def sends(self) -> Callable[[int, bytes], int]:
        publish, channel, header = self.client.publish, self.channel, HEADER.pack

        def send(stamp: int, payload: bytes) -> int:
            publish(channel, header(stamp, KIND, MARK) + payload)
            return 0

        return send

    def send_batch(self, stamp: int, payloads: list[bytes]) -> int:
        header = HEADER.pack(stamp, KIND, MARK)
        pipeline = self.client.pipeline(transaction=False)
        for payload in payloads:
            pipeline.publish(self.channel, header + payload)
        pipeline.execute()
        return 0

    def reconnects(self) -> int:
        return reconnects()


class Subscriber:
    def __init__(self, settings: dict) -> None:
        # However long nothing comes between two messages.
        self.channel = connect(settings, None).pubsub(ignore_subscribe_messages=True)
        self.channel.subscribe(settings["topic"])
        # The first reply is the confirmation: what is published later is not missed.
        self.channel.get_message(timeout=ANSWER_S)

    def stamped(self, seen) -> None:
        came = seen.came
        for message in self.channel.listen():
            at = now()
            data = message["data"]
            # What others publish here is no message of this run.
            if data[9 : HEADER.size] == MARK:
                came(HEADER.unpack_from(data)[0], data[HEADER.size :], at)
            if seen.left <= 0:
                break

    def counted(self, seen) -> None:
        counted = seen.counted
        for message in self.channel.listen():
            data = message["data"]
            if data[9 : HEADER.size] == MARK:
                counted(data[HEADER.size :])
            seen.last = now()
            if seen.left <= 0:
                break

    def reconnects(self) -> int:
        return reconnects()

    def withheld(self) -> tuple[int, int]:
        """It hands over all that comes."""
        return 0, 0
