"""What can go wrong, in sentences that name the remedy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lab import Result

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
    """The root of all of these."""


class ConnectError(TickpathError):
    """There is no connection, or what was asked for is refused."""


class PublishError(TickpathError):
    """A message is not published."""

    may_pass: bool = False
    """True if the same call can succeed later, with nobody changing anything but the load, the network or the servers."""


class TopicFull(PublishError):
    """A subscriber of a 'fail' topic is a whole topic behind."""


class NoSubscriber(PublishError):
    """Nobody is subscribed to a 'fail' topic."""


class TooLarge(PublishError):
    """The message does not fit."""


class OutcomeUnknown(PublishError):
    """The message may be published, or be so later: resend() finds out."""


class BatchError(PublishError):
    """A batch is published in part, or may be."""

    done: int = 0
    """Messages that are published, before the first one that is not, or of which nobody knows."""
    unknown: list[int] = []
    """The numbers in the batch of the messages of which nobody knows: resend() finds out."""


class ReceiveError(TickpathError):
    """Nothing can be received."""


class NotLent(ReceiveError):
    """The topic lends no messages: poll them, which copies."""


class NotAcknowledged(ReceiveError):
    """What was handed over is not surely acknowledged. Told once; pulling goes on."""


class Gone(ReceiveError):
    """What a queue held is gone, or part of it. Told once; pulling goes on."""


class NotSent(TickpathError):
    """A request did not leave."""

    may_pass: bool = False
    """True if the same call can succeed later: the OMS is away, or does not keep up."""


class SessionEnded(TickpathError):
    """A session with an OMS is over, and does not come back by itself."""


class Closed(TickpathError):
    """It is closed."""


class InUse(TickpathError):
    """Another thread uses it."""


class Forked(TickpathError):
    """It was opened before the process was forked: open it anew in the child."""


class LabError(TickpathError):
    """A bench was refused or failed, or there is no result that can be read."""

    code: int | None = None
    """The exit code of the command, where one ran: the README says what each means."""
    result: "Result | None" = None
    """What it measured all the same."""
