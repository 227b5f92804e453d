"""What a watched process writes: JSON lines in TICKPATH_EXPLAIN_DIR/PID.jsonl, first what it is, then rows of stamps.

Stamps are nanoseconds of the monotonic clock, which all processes of a host share; 0 is a stamp that was not taken.

sent        key, value, called, connect, tcp, connected, lookup, commands, encode, send, sent, returned,
            delayed_tcp, delayed_handshake, delayed_else
connected   began, tcp, ended, lookup, commands
subscribed  called, confirmed
received    key, read, resumed, parsed, handed, empty, pause
called      client, exchange, method, whether it failed, requests, stamps, pauses
arrived     client, exchange, method or class, stamps
lacking     a sentence
cpu         now, processor time until now

`key` is the same number for the same message on both sides. `value` is a payload that is a number. `lookup` is how long
the resolution of the server's name took, `commands` what connecting sent beside. `resumed` is when asyncio gave the
reader its turn. `delayed` is how long a process's first call waited for a processor. `empty` are calls of get_message
since the last message that only looked and returned nothing, `pause` the time from each of them to the next call. A process
that waits for what is pushed to a list is as good as subscribed when it begins to: there is nothing to confirm.
`tickpath_calls` has the stamps of calls to exchanges and of messages from them; `lacking` is a seam that a library
lacks.

Rows are written when a process is subscribed, when so many have come together, and at the end; or when they are asked for,
where there is no such folder.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from time import monotonic_ns, process_time_ns, time_ns
from zlib import crc32

# Rows that wait in memory; a process that is killed loses no more.
MOST_ROWS = 256

# Bytes of a payload that count for its key.
KEY_BYTES = 256

# Bytes of the longest payload that is looked at as a number.
NUMBER_BYTES = 32

# Libraries whose versions are written, if the process has imported them.
LIBRARIES = ("redis", "hiredis", "uvloop", "ccxt", "okx", "requests", "httpx", "aiohttp", "websockets")

# What this process is.
facts: dict[str, object] = {}

_rows: dict[str, list] = {
    kind: [] for kind in ("sent", "connected", "subscribed", "received", "called", "arrived", "lacking")
}
_facts_are_written = False
_writing = threading.RLock()


def add(kind: str, row: list) -> None:
    found = _rows[kind]
    found.append(row)
    if len(found) >= MOST_ROWS:
        write()


def folder() -> str | None:
    """Where processes write files of their own; without it rows wait until they are asked for."""
    return os.environ.get("TICKPATH_EXPLAIN_DIR") or None


def write(path: str | None = None) -> None:
    """Writes the rows that wait, to a file or to this process's own."""
    if path is None and folder() is None:
        return
    import json

    with _writing:
        taken = {kind: found[:] for kind, found in _rows.items() if found}
        for kind, found in taken.items():
            # Another thread may have added some meanwhile.
            del _rows[kind][: len(found)]
        lines = [json.dumps({kind: found}) for kind, found in taken.items()]
        lines.append(json.dumps({"cpu": [monotonic_ns(), process_time_ns()]}))
        if path is None:
            lines = _facts() + lines
            path = os.path.join(folder() or "", f"{os.getpid()}.jsonl")
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            # The script must not fail because it is watched; who reads the files tells that there are none.
            pass


def forget() -> None:
    """What a fork has is its parent's, and the parent writes it."""
    global _facts_are_written, _writing
    _facts_are_written, _writing = False, threading.RLock()
    for found in _rows.values():
        found.clear()


def key_of(channel, payload) -> int:
    """The same number for the same message on both sides."""
    channel, payload = bytes_of(channel), bytes_of(payload)
    return crc32(payload[:KEY_BYTES], crc32(channel)) << 32 | len(payload)


def number_of(payload) -> float | None:
    """The payload as a number, if it is one: then it may be a time."""
    text = bytes_of(payload)
    if len(text) > NUMBER_BYTES:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def bytes_of(value) -> bytes:
    """As redis-py encodes it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return repr(value).encode()


def _facts() -> list[str]:
    """What this process is, as lines: once, but the end when that is known."""
    global _facts_are_written
    if _facts_are_written:
        return []
    import json
    import platform

    _facts_are_written = True
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in LIBRARIES}
    process = {
        "pid": os.getpid(),
        "program": os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "",
        "executable": sys.executable or "",
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "versions": {name: version for name, version in found.items() if version},
        "utc_offset": time_ns() - monotonic_ns(),
        **facts,
    }
    return [json.dumps({"process": process})]
