"""Messages over a topic, by the package tickpath on asyncio."""

from collections.abc import AsyncIterator, Awaitable, Callable

import tickpath as tp

KIND = 200


class Bus:
    def __init__(self, url: str) -> None:
        self.bus = tp.connect(url)

    async def publisher(self, topic: str) -> Callable[[str], Awaitable[object]]:
        publish = self.bus.publisher(topic).publish

        async def send(text: str) -> None:
            publish(text.encode(), KIND)

        return send

    async def messages(self, topic: str) -> AsyncIterator[bytes]:
        """What comes from now on."""
        return self.listen(self.bus.subscribe(topic))

    async def listen(self, subscribed: tp.Subscriber) -> AsyncIterator[bytes]:
        async for event in subscribed:
            if isinstance(event, tp.Message):
                yield event.payload

    async def close(self) -> None:
        pass
