"""What a pair does by the package tickpath, on a topic or a queue: docs/redis-py.md has the lines of both beside each other."""

import time
from collections.abc import AsyncIterable, Callable, Iterable, Iterator

from pair import settings

import tickpath as tp

NAME: str = settings["channel"]
IS_QUEUE: bool = settings["way"] == "queue"
KIND = 200

# A topic that nothing was said of, and one in which a long message has room: almost an eighth of it is the longest.
CAPACITY = max(1 << 20, 16 * (settings["size"] + 64))

FAILURES = (tp.TickpathError, OSError)


def sentence(error: Exception) -> str:
    return str(error)


class Publisher:
    """Keeps what it publishes on."""

    def __init__(self, url: str) -> None:
        self.bus = tp.connect(url)
        if IS_QUEUE:
            self.put = self.bus.pusher(NAME, "at-most-once", capacity=CAPACITY).push
        else:
            self.put = self.bus.publisher(NAME, "overwrite", capacity=CAPACITY).publish

    def send(self, text: str) -> None:
        self.put(text.encode(), KIND)

    async def send_on_asyncio(self, text: str) -> None:
        """It takes less than a turn of the loop, and is called as it is."""
        self.put(text.encode(), KIND)


class Subscriber:
    """Keeps what it receives from."""

    def __init__(self, url: str) -> None:
        self.bus = tp.connect(url)
        if IS_QUEUE:
            self.source = self.bus.puller(NAME, "at-most-once", capacity=CAPACITY)
        else:
            self.source = self.bus.subscribe(NAME)

    def events(self) -> Iterable:
        """What `listen`, `blpop` or `get_message` is here. A loop that ends closes nothing."""
        return self.source if settings["receive"] == "listen" else self.polled()

    def polled(self) -> Iterator:
        """One at a time, as `get_message` gives them."""
        while True:
            yield from self.source.poll(1)
            if settings["receive"] == "sleep":
                time.sleep(0.001)

    def events_on_asyncio(self) -> AsyncIterable:
        return self.source


def publisher(url: str) -> Callable[[str], object]:
    """What sends one message, the topic being open."""
    return Publisher(url).send


async def publisher_on_asyncio(url: str) -> Callable[[str], object]:
    return Publisher(url).send_on_asyncio


def subscriber(url: str) -> Callable[[], Iterable]:
    """What gives the messages from now on, the topic being open."""
    return Subscriber(url).events


async def subscriber_on_asyncio(url: str) -> Callable[[], AsyncIterable]:
    return Subscriber(url).events_on_asyncio


def text_of(event) -> str | None:
    """What was sent; none of what is no message."""
    message = event.message if IS_QUEUE else event
    return message.payload.decode() if type(message) is tp.Message else None
