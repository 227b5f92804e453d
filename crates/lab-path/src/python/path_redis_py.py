"""Ticks and orders over channels of Redis, by redis-py."""

from collections.abc import Callable, Iterator

from reconnects import connected, reconnects

import redis

Error = redis.RedisError


class Bus:
    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url, redis_connect_func=connected)

    def publisher(self, channel: str) -> Callable[[str], object]:
        self.client.ping()
        publish = self.client.publish
        return lambda text: publish(channel, text)

    def messages(self, channel: str) -> Iterator[bytes]:
        """What comes from now on."""
        subscribed = self.client.pubsub(ignore_subscribe_messages=True)
        subscribed.subscribe(channel)
        # The first reply is the confirmation: what is published later is not missed.
        subscribed.get_message(timeout=5)
        return (message["data"] for message in subscribed.listen())

    def reconnects(self) -> int:
        return reconnects()
