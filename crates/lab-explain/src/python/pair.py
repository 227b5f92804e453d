"""What the publishers and subscribers of pairs have in common: their settings, the hook, and how they speak.

A script that imports this says "ready", is told where to connect, and says when it is connected. Then each line on
standard input is an order: the publisher sends so many messages, the subscriber receives until the end of that. What
carries the messages is a module, `by_redis_py` or `by_tickpath`; nothing else of a script changes with it. Stamps are
nanoseconds of the monotonic clock, which all processes of a host share.
"""

import json
import os
import signal
import sys
import time

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))

# What the publisher says last of an order.
END = "end"

# How long before a message's time the publisher stops sleeping: longer than a timer wakes late.
SPIN_NS = 200_000

# The whole group is ended from the terminal; there is nothing to say about it.
signal.signal(signal.SIGINT, signal.SIG_DFL)

if settings["parser"] == "python":
    # As if hiredis were not installed, which `pip install redis` leaves out.
    sys.modules["hiredis"] = None

if settings["hook"] is not None:
    sys.path.insert(0, settings["hook"])
    import tickpath_hook
    import tickpath_rows

    tickpath_hook.watch()


def told_url() -> str | None:
    """Where to connect, once this is ready; none if nobody wants it any more."""
    if settings["cpu"] is not None:
        os.sched_setaffinity(0, {settings["cpu"]})
    tell("ready")
    return json.loads(sys.stdin.readline() or "null")


def message_of(number: int) -> str:
    return f"{number:012}".ljust(settings["size"], ".")


def number_of(text: str) -> int:
    return int(text[:12])


def wait_until(intended: int) -> None:
    left = intended - time.monotonic_ns()
    if left > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.monotonic_ns() < intended:
        pass


def write_rows(out: str | None) -> None:
    """The stamps that the hook took."""
    if out is not None:
        tickpath_rows.write(out)


def tell(what) -> None:
    print(json.dumps(what), flush=True)


def tell_silence() -> None:
    silence = f"{settings['silence_s']:.0f}"
    tell({"error": f"no message came within {silence} s; look whether the server hangs, and try again"})
