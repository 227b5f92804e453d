"""Both ends of pubsub by the package tickpath: whatever its bus has, and each way to wait."""

from collections.abc import Callable
from time import monotonic_ns as now

import tickpath as tp

KIND = 200

# Messages that one look takes which are only counted.
TURN = 256

Error = tp.TickpathError


def sentence(error: tp.TickpathError) -> str:
    return str(error)


class Publisher:
    def __init__(self, settings: dict) -> None:
        self.bus = tp.connect(settings["target"])
        self.bus.remove(settings["topic"])
        self.topic = self.bus.publisher(settings["topic"], settings["policy"], capacity=settings["capacity"])

    def sends(self) -> Callable[[int, bytes], int]:
        """What publishes a message, again and again while the topic is full; it gives how often it was."""
        publish, full = self.topic.publish, tp.TopicFull

        def send(stamp: int, payload: bytes) -> int:
            refused = 0
            while True:
                try:
                    publish(payload, KIND, stamp=stamp)
                    return refused
                except full:
                    refused += 1

        return send

    def send_batch(self, stamp: int, payloads: list[bytes]) -> int:
        refused = 0
        while True:
            try:
                self.topic.publish_batch(payloads, KIND, stamp=stamp)
                return refused
            except tp.BatchError as error:
                if not isinstance(error.__cause__, tp.TopicFull):
                    raise
                payloads = payloads[error.done :]
                refused += 1

    def reconnects(self) -> int | None:
        return self.topic.reconnects


class Subscriber:
    def __init__(self, settings: dict) -> None:
        self.bus = tp.connect(settings["target"])
        self.topic = self.bus.subscribe(settings["topic"], wait=settings["thread"]["wait"])
        # A topic that fails counts a subscriber from its first look on.
        self.topic.poll(1)

    def stamped(self, seen) -> None:
        message, came = tp.Message, seen.came
        for event in self.topic:
            at = now()
            if type(event) is message:
                came(event.stamp, event.payload, at)
            elif type(event) is tp.Gap:
                seen.missed(event.missed or 0)
            if seen.left <= 0:
                break

    def counted(self, seen) -> None:
        poll, wait, message, counted = self.topic.poll, self.topic.wait, tp.Message, seen.counted
        while seen.left > 0:
            events = poll(TURN)
            if not events:
                wait()
                continue
            for event in events:
                if type(event) is message:
                    counted(event.payload)
                elif type(event) is tp.Gap:
                    seen.missed(event.missed or 0)
            seen.last = now()

    def reconnects(self) -> int | None:
        return self.topic.reconnects

    def withheld(self) -> tuple[int, int]:
        """What came twice, and what came late and had been told as missed."""
        return self.topic.duplicates or 0, self.topic.late or 0
