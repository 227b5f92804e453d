"""Waits for the import of a client library, and puts stamps around the methods that a message passes.

The script that is watched stays as it is. `tickpath_stamps` has the methods of redis-py, `tickpath_ccxt` and
`tickpath_okx` those of ccxt and python-okx, and `tickpath_rows` what is written of them.
"""

from __future__ import annotations

import os
import sys
import threading
from time import monotonic_ns

import tickpath_rows

# Modules of exchanges' clients: the module that stamps each of them, and its function for that.
EXCHANGES = {
    "ccxt.base.exchange": ("tickpath_ccxt", "stamp_exchange"),
    "ccxt.async_support.base.exchange": ("tickpath_ccxt", "stamp_asyncio_exchange"),
    "okx.okxclient": ("tickpath_okx", "stamp_rest"),
    "okx.websocket.WsPublicAsync": ("tickpath_okx", "stamp_stream"),
    "okx.websocket.WsPrivateAsync": ("tickpath_okx", "stamp_stream"),
}


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
    """Before the import of a library."""
    sys.meta_path.insert(0, Watch())


def finish() -> None:
    """Writes what is left."""
    tickpath_rows.facts["ended"] = monotonic_ns()
    tickpath_rows.write()


class Watch:
    """Finds a library as the other finders do, and stamps its methods once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("redis", "redis.asyncio") and name not in EXCHANGES:
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
        if name in EXCHANGES:
            stamp_exchange(module)
            return
        if name == "redis":
            tickpath_rows.facts["import_began"] = began
            tickpath_rows.facts["import_ended"] = monotonic_ns()
            if tickpath_rows.folder() is not None:
                end_on_sigterm()
        # Only now, for these modules come with redis.
        import tickpath_stamps

        tickpath_stamps.stamp(name)

    loader.exec_module = exec_module


def stamp_exchange(module) -> None:
    """Stamps a client of exchanges. A version in which that fails is reported, and the script goes its way."""
    from importlib import import_module

    tickpath_rows.facts["uses_exchange"] = True
    if tickpath_rows.folder() is not None:
        end_on_sigterm()
    stamps, function = EXCHANGES[module.__name__]
    try:
        getattr(import_module(stamps), function)(module)
    except Exception as error:
        package = sys.modules.get(module.__name__.partition(".")[0])
        version = getattr(package, "__version__", "of this version")
        why = f"{type(error).__name__}: {error}"
        sentence = f"{module.__name__} {version} cannot be stamped ({why}): its stages are unexplained"
        tickpath_rows.add("lacking", sentence)


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
