"""Waits for the import of redis, and puts stamps around the methods of redis-py that a message passes.

The script that is watched stays as it is. `tickpath_stamps` has the methods, `tickpath_rows` what is written of them.
"""

from __future__ import annotations

import os
import sys
import threading
from time import monotonic_ns

import tickpath_rows


def start() -> None:
    """At the start of an interpreter that writes its rows to a file of its own."""
    if tickpath_rows.folder() is None:
        return
    import atexit

    tickpath_rows.facts["started"] = monotonic_ns()
    # Of this process alone; those that it starts have other times.
    tickpath_rows.facts["spawned"] = int(os.environ.pop("TICKPATH_EXPLAIN_SPAWNED", "0"))
    atexit.register(finish)
    os.register_at_fork(after_in_child=tickpath_rows.forget)
    watch()


def watch() -> None:
    """Before the import of redis."""
    sys.meta_path.insert(0, Watch())


def finish() -> None:
    """Writes what is left."""
    tickpath_rows.facts["ended"] = monotonic_ns()
    tickpath_rows.write()


class Watch:
    """Finds redis as the other finders do, and stamps its methods once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("redis", "redis.asyncio"):
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                follow(spec.loader, name)
                return spec
        return None


def follow(loader, name: str) -> None:
    """Has a loader tell when it is done."""
    load = loader.exec_module

    def exec_module(module):
        began = monotonic_ns()
        load(module)
        if name == "redis":
            tickpath_rows.facts["import_began"] = began
            tickpath_rows.facts["import_ended"] = monotonic_ns()
            if tickpath_rows.folder() is not None:
                end_on_sigterm()
        # Only now, for these modules come with redis.
        import tickpath_stamps

        tickpath_stamps.stamp(name)

    loader.exec_module = exec_module


def end_on_sigterm() -> None:
    """A process that is told to end still writes its rows, unless the script has plans of its own for that."""
    import signal

    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def end(number, _frame):
        finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
