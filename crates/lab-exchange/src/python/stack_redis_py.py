"""Messages over a channel of Redis, by redis-py on asyncio."""

from collections.abc import AsyncIterator, Awaitable, Callable

import redis.asyncio


class Bus:
    def __init__(self, url: str) -> None:
        self.client = redis.asyncio.from_url(url)

    async def publisher(self, channel: str) -> Callable[[str], Awaitable[object]]:
        await self.client.ping()
        return lambda text: self.client.publish(channel, text)

    async def messages(self, channel: str) -> AsyncIterator[bytes]:
        """What comes from now on."""
        subscribed = self.client.pubsub(ignore_subscribe_messages=True)
        await subscribed.subscribe(channel)
        # The first reply is the confirmation: what is published later is not missed.
        await subscribed.get_message(timeout=30)
        return self.listen(subscribed)

    async def listen(self, subscribed) -> AsyncIterator[bytes]:
        async for message in subscribed.listen():
            yield message["data"]

    async def close(self) -> None:
        await self.client.aclose()
