"""What clients of `bench path` and `bench orders` in Python have in common: how a process of a bench speaks (docs/clients.md),
how it logs on, and how it knows that nothing comes any more."""

import json
import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import tickpath as tp

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
WAIT: str = settings["thread"]["wait"]
SLEEPS = WAIT in ("block", "adaptive")

# What the OMS says by itself of what is on its way, and of what it denies: all else is the venue's.
PENDING = frozenset(("pending_new", "pending_cancel", "pending_replace"))
OF_OMS = PENDING | {"denied"}

# With nothing new for so long, what was on its way is there.
QUIET_NS = 500_000_000

# Set when nobody sends any more.
has_ended = threading.Event()


class Broken(Exception):
    """What a run cannot go on without is gone."""


def play(life: Callable[[], None]) -> None:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        life()
    except (tp.TickpathError, Broken) as error:
        tell({"error": str(error)})
        sys.exit(1)


def log_on() -> tp.Orders:
    login = settings["login"]
    password = Path(login["password_file"]).read_text().splitlines()[0]
    names = {name: settings[name] for name in ("account", "first_id")}
    return tp.orders(login["url"], login["user"], password, session=login["session"], **names)


def settle() -> None:
    cpu = settings["thread"]["cpu"]
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def listen() -> None:
    """From now on a thread hears the bench."""
    threading.Thread(target=_listen, daemon=True).start()


def _listen() -> None:
    """Any word says that nobody sends any more; the end of all words, that the bench is gone, or has all."""
    while os.read(sys.stdin.fileno(), 4096):
        has_ended.set()
    os._exit(0)


def missed(event: tp.Gap | tp.NotTaken | tp.InDoubt | tp.Notice) -> int:
    """How many reports are gone, as an event tells that is none. A run whose session was lost ends: who made it again would
    hide the loss."""
    if isinstance(event, tp.Gap):
        return event.missed or 0
    if isinstance(event, tp.Notice) and event.what == "connected":
        return 0
    raise Broken(f"the session was lost: {event}")


class Quiet:
    """When nothing comes any more: so long after nobody sends and the last thing came, and one more look later, for a process
    that was held up has not looked meanwhile."""

    def __init__(self) -> None:
        self.since = 0
        self.was_over = False

    def ends(self) -> None:
        """Something came."""
        self.since, self.was_over = 0, False

    def is_over(self) -> bool:
        """Asked after a look that found nothing."""
        if not has_ended.is_set():
            return False
        now = time.monotonic_ns()
        self.since = self.since or now
        before, self.was_over = self.was_over, now - self.since > QUIET_NS
        return before and self.was_over


def touched(words: int) -> array:
    """Room for numbers whose pages are there already: a page fault between two stamps would be ours."""
    return array("Q", bytes(8 * words))


def save(out: str, words: array, count: int) -> None:
    with open(out, "wb") as file:
        words[:count].tofile(file)


def tell(what: object) -> None:
    print(json.dumps(what), flush=True)
