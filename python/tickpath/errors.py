"""Exceptions, whose sentences name the remedy."""

from typing import Any

__all__ = [
    "TickpathError",
    "ConnectError",
    "PublishError",
    "TopicFull",
    "NoSubscriber",
    "TooLarge",
    "OutcomeUnknown",
    "BatchError",
    "ReceiveError",
    "NotLent",
    "NotAcknowledged",
    "Gone",
    "NotSent",
    "SessionEnded",
    "Closed",
    "InUse",
    "Forked",
    "LabError",
]


class TickpathError(Exception):
    """Base class of all exceptions of Tickpath."""


class ConnectError(TickpathError):
    """A connection failed, or a request was refused."""


class PublishError(TickpathError):
    """A message was not published."""

    may_pass: bool = False
    """True if the same call can succeed later, once the load, the network or the servers have changed."""


class TopicFull(PublishError):
    """A subscriber of a 'fail' topic is behind by the whole capacity of the topic."""


class NoSubscriber(PublishError):
    """A 'fail' topic has no subscriber."""


class TooLarge(PublishError):
    """A message is too long for the topic or queue."""


class OutcomeUnknown(PublishError):
    """A message is in doubt, and may still be published: resend() determines the outcome."""


class BatchError(PublishError):
    """A batch was published in part, or may have been."""

    done: int = 0
    """Number of messages published, before the first message that was not, or is in doubt."""
    unknown: list[int] = []
    """Positions in the batch of the messages in doubt: resend() determines their outcome."""


class ReceiveError(TickpathError):
    """Receiving failed."""


class NotLent(ReceiveError):
    """The topic lends no messages: poll them, which copies."""


class NotAcknowledged(ReceiveError):
    """Messages that were returned may not be acknowledged. Raised once; pulling can continue."""


class Gone(ReceiveError):
    """The messages of a queue are gone, or part of them. Raised once; pulling can continue."""


class NotSent(TickpathError):
    """A request was not sent."""

    may_pass: bool = False
    """True if the same call can succeed later: the OMS is disconnected, or does not keep up."""


class SessionEnded(TickpathError):
    """A session with an OMS has ended, and does not reconnect by itself."""


class Closed(TickpathError):
    """The object is closed."""


class InUse(TickpathError):
    """Another thread is using the object."""


class Forked(TickpathError):
    """The object was opened before a fork: open it anew in the child."""


class LabError(TickpathError):
    """A bench was refused or failed, or a result cannot be read."""

    code: int | None = None
    """Exit code of the command, if a command ran; the README lists the codes."""
    result: Any = None
    """The `tickpath.lab.Result`, if the bench measured something before it failed, else None."""
