"""Ticks and orders over topics, by the package tickpath."""

from collections.abc import Callable, Iterator

import tickpath as tp

KIND = 200

Error = tp.TickpathError


class Bus:
    def __init__(self, url: str) -> None:
        self.bus = tp.connect(url)
        self.ends: list[tp.Publisher | tp.Subscriber] = []

    def publisher(self, topic: str) -> Callable[[str], object]:
        opened = self.bus.publisher(topic)
        self.ends.append(opened)
        publish = opened.publish
        return lambda text: publish(text.encode(), KIND)

    def messages(self, topic: str) -> Iterator[bytes]:
        """What comes from now on."""
        subscribed = self.bus.subscribe(topic)
        self.ends.append(subscribed)
        return (event.payload for event in subscribed if isinstance(event, tp.Message))

    def reconnects(self) -> int:
        return sum(end.reconnects or 0 for end in self.ends)
