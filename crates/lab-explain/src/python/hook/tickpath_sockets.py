"""The seams of sockets, of HTTP and of WebSockets, below the libraries of the exchanges.

blocking   ssl.SSLSocket ( send, read ), and the connecting of urllib3 or httpcore
asyncio    SSLProtocol.buffer_updated ( data_received ( frames ) ), and the writers of aiohttp or websockets
"""

from __future__ import annotations

import ssl
import threading
from collections import deque
from time import monotonic_ns

from tickpath_calls import (
    CONNECTING,
    DECRYPTED,
    PYTHON,
    READ,
    Library,
    current,
    encode_ends,
    pause_begins,
    pause_ends,
    read_ends,
    write_begins,
    write_ends,
)

# Kinds of WebSocket frames that carry data: the next part of a message, text, bytes.
DATA = (0, 1, 2)


class Reading(threading.local):
    """When the read of the socket returned whose bytes TLS decrypts now."""

    since = 0


reading = Reading()


def stamp_blocking() -> None:
    PYTHON.seam(ssl.SSLSocket, "send", write_begins, write_ends)
    PYTHON.seam(ssl.SSLSocket, "read", None, read_ends)


def stamp_asyncio() -> None:
    from asyncio import sslproto

    PYTHON.seam(sslproto.SSLProtocol, "buffer_updated", decrypt_begins, decrypt_ends)


def decrypt_begins(*_args) -> None:
    reading.since = monotonic_ns()


def decrypt_ends(*_args) -> None:
    reading.since = 0


def read_and_decrypted() -> tuple[int, int]:
    """At the beginning of `data_received`."""
    now = monotonic_ns()
    return reading.since or now, now


def stamp_urllib3() -> None:
    from urllib3 import connection

    Library("urllib3", "urllib3").seam(connection.HTTPSConnection, "connect", pause_begins, pause_ends(CONNECTING))


def stamp_httpcore() -> None:
    from httpcore._sync import connection, http2

    library = Library("httpcore", "httpcore")
    library.seam(connection.HTTPConnection, "_connect", pause_begins, pause_ends(CONNECTING))
    library.seam(http2.HTTP2Connection, "_receive_response", None, response_ends)


def response_ends(*_args) -> None:
    """The first bytes of HTTP/2 may be settings, and no answer: its read is the one that brought the headers."""
    call = current()
    if call is not None:
        call.times[READ] = call.latest


def stamp_aiohttp() -> None:
    from aiohttp import client_proto, client_ws, connector, http_writer
    from aiohttp._websocket import writer

    library = Library("aiohttp", "aiohttp")
    library.seam(connector.TCPConnector, "_create_connection", pause_begins, pause_ends(CONNECTING))
    for name in ("_write", "_writelines"):
        library.seam(http_writer.StreamWriter, name, http_write_begins, write_ends)
    library.seam(client_ws.ClientWebSocketResponse, "send_str", encode_ends, None)
    library.seam(writer.WebSocketWriter, "_write_websocket_frame", write_begins, write_ends)
    library.seam(client_proto.ResponseHandler, "data_received", data_begins, data_ends)


def http_write_begins(writer, *_args):
    call = write_begins()
    if call is not None:
        # Reading is no part of the caller's task.
        writer.protocol._tickpath_call = call
    return call


def data_begins(protocol, _data):
    read, decrypted = read_and_decrypted()
    if getattr(protocol, "_payload_parser", None) is not None:
        return read, decrypted, waiting(protocol)
    call = getattr(protocol, "_tickpath_call", None)
    if call is not None and not call.times[READ]:
        call.times[READ], call.times[DECRYPTED] = read, decrypted
    return None


def data_ends(protocol, _args: tuple, begun, _result) -> None:
    """The messages of a WebSocket that these bytes completed wait in a queue now."""
    if begun is not None:
        read, decrypted, waited = begun
        frames_of(protocol).extend([[read, decrypted, monotonic_ns()]] * (waiting(protocol) - waited))


def waiting(protocol) -> int:
    """How many messages have no reader yet."""
    return len(getattr(getattr(protocol, "_payload", None), "_buffer", ()))


def frames_of(connection) -> deque:
    """When the bytes of each message that has no reader yet were read, decrypted and decoded."""
    frames = getattr(connection, "_tickpath_frames", None)
    if frames is None:
        frames = connection._tickpath_frames = deque()
    return frames


def stamp_websockets() -> None:
    from websockets.asyncio import connection

    library, kind = Library("websockets", "websockets"), connection.Connection
    library.seam(kind, "send", encode_ends, None)
    library.seam(kind, "send_data", write_begins, write_ends)
    library.seam(kind, "data_received", bytes_begin, None)
    library.seam(kind, "process_event", frame_ends, None)
    library.seam(kind, "recv", None, message_ends)


def bytes_begin(connection, _data) -> None:
    connection._tickpath_read = read_and_decrypted()


def frame_ends(connection, frame) -> None:
    if getattr(frame, "opcode", None) in DATA and frame.fin:
        frames_of(connection).append([*connection._tickpath_read, monotonic_ns()])


def message_ends(connection, _args: tuple, _begun, message) -> None:
    if message is not None:
        frames = frames_of(connection)
        connection._tickpath_message = [*(frames.popleft() if frames else (0, 0, 0)), monotonic_ns()]
