"""The methods of redis-py that a message passes, and the stamps around them.

publisher    Redis.execute_command ( connect ( _connect, send ×n ), send_command ( send_packed_command ) )
subscriber   PubSub.get_message or listen ( read_response ( the socket's recv ), handle_message )
             Redis.execute_command ( read_response ( the socket's recv ) ), where it waits for what is pushed to a list

The blocking methods and those of asyncio have the same names and get the same stamps.
"""

from __future__ import annotations

import os
import socket
import sys
from contextvars import ContextVar
from time import monotonic_ns

from tickpath_rows import add, facts, key_of, number_of, write

# Marks a function that gives way: CO_COROUTINE of the module inspect, which takes long to import.
COROUTINE = 0x80

# Commands that send a message, where they have one, and those that wait for one that was pushed.
SENDS = frozenset({"PUBLISH", "RPUSH", "LPUSH", b"PUBLISH", b"RPUSH", b"LPUSH"})
POPS = frozenset({"BLPOP", "BRPOP", b"BLPOP", b"BRPOP"})

# The publish call, the pop and the connecting that the current thread or task is in.
publishing: ContextVar = ContextVar("publishing", default=None)
popping: ContextVar = ContextVar("popping", default=None)
connecting: ContextVar = ContextVar("connecting", default=None)

# Whether this process has published before, and whether it has waited for what is pushed.
has_published = has_popped = False

# When each socket was last read from, by its descriptor.
read_at: dict[int, int] = {}


def stamp(name: str) -> None:
    """Stamps the methods of `redis`, or of `redis.asyncio`."""
    client, connection = sys.modules[f"{name}.client"], sys.modules[f"{name}.connection"]
    base = getattr(connection, "AbstractConnection", connection.Connection)
    connect = "connect_check_health" if hasattr(base, "connect_check_health") else "connect"
    around(client.Redis, "execute_command", command_begins, command_ends)
    around(base, connect, connect_begins, connect_ends)
    around(base, "send_command", encode_begins, None)
    around(base, "send_packed_command", send_begins, send_ends)
    around(base, "read_response", None, read_ends)
    around(client.PubSub, "execute_command", subscribe_begins, None)
    around(client.PubSub, "get_message", get_message_begins, get_message_ends)
    around(client.PubSub, "handle_message", None, hand_over_ends)
    for kind in (connection.Connection, connection.UnixDomainSocketConnection):
        around(kind, "_connect", None, open_ends if name == "redis" else open_ends_asyncio)
    if name == "redis":
        socket.getaddrinfo = timed_lookup(socket.getaddrinfo)


def around(kind: type, name: str, begins, ends) -> None:
    """Has a method of a class call `begins` before it, with all that the method gets, and `ends(self, args, begun, result)`
    after it: with None if it fails. Versions of redis-py differ; a class without the method stays as it is."""
    method = kind.__dict__.get(name)
    if method is not None:
        setattr(kind, name, stamped(method, name, begins, ends))


def stamped(method, name: str, begins, ends):
    if method.__code__.co_flags & COROUTINE:

        async def stamps(self, *args, **options):
            begun = begins(self, *args, **options) if begins is not None else None
            result = None
            try:
                result = await method(self, *args, **options)
            finally:
                if ends is not None:
                    ends(self, args, begun, result)
            return result

    else:

        def stamps(self, *args, **options):
            begun = begins(self, *args, **options) if begins is not None else None
            result = None
            try:
                result = method(self, *args, **options)
            finally:
                if ends is not None:
                    ends(self, args, begun, result)
            return result

    stamps.__name__, stamps.__qualname__, stamps.__doc__ = name, method.__qualname__, method.__doc__
    return stamps


class Publishing:
    """The stamps of one publish call."""

    __slots__ = ("called", "connect", "encode", "send", "sent", "delays", "token")

    def __init__(self, called: int):
        self.called = called
        self.connect = None
        self.encode = self.send = self.sent = 0
        # Until the call, connecting, the connection, the end of that, and the send: in a process's first call alone,
        # for a reading takes as long as a stage of a later one.
        self.delays = RunDelay() if not has_published else None
        self.token = publishing.set(self)

    def delayed(self) -> None:
        if self.delays is not None:
            self.delays.read()


class RunDelay:
    """How long the current thread has waited for a processor, in nanoseconds, as the kernel counts it."""

    def __init__(self):
        self.found: list[int] = []
        try:
            self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self.file = None
        self.read()

    def read(self) -> None:
        if self.file is not None:
            self.found.append(int(os.pread(self.file, 64, 0).split()[1]))

    def close(self) -> list[int]:
        """What of the call it was: in opening the connection, in setting it up, and elsewhere."""
        if self.file is not None:
            os.close(self.file)
        if len(self.found) == 5:
            called, began, tcp, connected, sent = self.found
            return [tcp - began, connected - tcp, sent - connected + began - called]
        if len(self.found) == 2:
            called, sent = self.found
            return [0, 0, sent - called]
        return [0, 0, 0]


class Connecting:
    """The stamps of one connection."""

    __slots__ = ("began", "tcp", "ended", "lookup", "commands", "token")

    def __init__(self):
        self.began = monotonic_ns()
        self.tcp = self.ended = self.lookup = self.commands = 0
        self.token = connecting.set(self)


class Popping:
    """The stamps of one pop."""

    __slots__ = ("found", "token")

    def __init__(self):
        # Read, resumed, parsed: of the last reply, and connecting has others before that.
        self.found = None
        self.token = popping.set(self)


def is_send(args: tuple) -> bool:
    return len(args) == 3 and args[0] in SENDS


def command_begins(_client, *args, **_options) -> Publishing | Popping | None:
    if is_send(args):
        return Publishing(monotonic_ns())
    if len(args) > 2 and args[0] in POPS:
        return pop_begins()
    return None


def command_ends(_client, args: tuple, call: Publishing | Popping | None, result) -> None:
    ended = monotonic_ns()
    if type(call) is Popping:
        pop_ends(ended, call, result)
    elif call is not None:
        publish_ends(ended, args, call)


def pop_begins() -> Popping:
    global has_popped
    if not has_popped:
        has_popped = True
        now = monotonic_ns()
        add("subscribed", [now, now])
        # Whoever waits for this process sees that it is ready.
        write()
    return Popping()


def pop_ends(handed: int, call: Popping, result) -> None:
    popping.reset(call.token)
    if not isinstance(result, (list, tuple)) or len(result) < 2:
        return
    read, turn, parsed = call.found or (handed, 0, handed)
    add("received", [key_of(result[0], result[1]), read, turn, parsed, handed, 0, 0])


def publish_ends(returned: int, args: tuple, call: Publishing) -> None:
    global has_published
    publishing.reset(call.token)
    delays = call.delays.close() if call.delays is not None else [0, 0, 0]
    if not call.sent:
        return
    if not has_published:
        has_published = True
        facts["sends"] = args[0] if isinstance(args[0], str) else args[0].decode()
    made = call.connect
    connect = [made.began, made.tcp, made.ended, made.lookup, made.commands] if made is not None else [0] * 5
    stamps = [call.encode, call.send, call.sent, returned]
    add("sent", [key_of(args[1], args[2]), number_of(args[2]), call.called, *connect, *stamps, *delays])


def connect_begins(connection, *_args, **_options) -> Connecting | None:
    # What is connected already returns at once.
    if getattr(connection, "_sock", None) is not None or getattr(connection, "_writer", None) is not None:
        return None
    delayed()
    return Connecting()


def connect_ends(connection, _args: tuple, made: Connecting | None, _result) -> None:
    if made is None:
        return
    made.ended = monotonic_ns()
    delayed()
    connecting.reset(made.token)
    facts["server"] = url_of(connection)
    add("connected", [made.began, made.tcp, made.ended, made.lookup, made.commands])
    call = publishing.get()
    if call is not None:
        call.connect = made


def url_of(connection) -> str | None:
    """Where a connection goes, without a password; none of one that is encrypted."""
    path, host = getattr(connection, "path", None), getattr(connection, "host", None)
    if path:
        return f"redis+unix://{path}"
    if host is None or type(connection).__name__ != "Connection":
        return None
    return f"redis://[{host}]:{connection.port}" if ":" in host else f"redis://{host}:{connection.port}"


def open_ends(_connection, _args: tuple, _begun, sock) -> None:
    made = connecting.get()
    if made is not None:
        made.tcp = monotonic_ns()
        delayed()
    # Any other kind of socket stays as it is; then reading counts until the end of parsing.
    if type(sock) is socket.socket:
        sock.__class__ = StampedSocket


def open_ends_asyncio(connection, _args: tuple, _begun, _result) -> None:
    made = connecting.get()
    if made is not None:
        made.tcp = monotonic_ns()
        delayed()
    connection._tickpath_read = connection._tickpath_resumed = 0
    stream = getattr(connection, "_reader", None)
    if stream is None:
        return
    feed = stream.feed_data

    def feed_data(data):
        connection._tickpath_read = monotonic_ns()
        feed(data)

    stream.feed_data = feed_data
    for name in ("read", "readline", "readexactly"):
        setattr(stream, name, resumed(connection, getattr(stream, name)))


def resumed(connection, read):
    async def stamped(*args):
        data = await read(*args)
        if connection._tickpath_resumed < connection._tickpath_read:
            connection._tickpath_resumed = monotonic_ns()
        return data

    return stamped


class StampedSocket(socket.socket):
    """A socket that tells when it was read from."""

    __slots__ = ()

    def recv_into(self, *args):
        count = super().recv_into(*args)
        read_at[self.fileno()] = monotonic_ns()
        return count

    def recv(self, *args):
        data = super().recv(*args)
        read_at[self.fileno()] = monotonic_ns()
        return data


def timed_lookup(resolve):
    def getaddrinfo(*args, **options):
        began = monotonic_ns()
        try:
            return resolve(*args, **options)
        finally:
            made = connecting.get()
            if made is not None:
                made.lookup += monotonic_ns() - began

    return getaddrinfo


def encode_begins(_connection, *args, **_options) -> None:
    call = publishing.get()
    if call is not None and is_send(args):
        call.encode = monotonic_ns()


def send_begins(_connection, *_args, **_options) -> Publishing | None:
    made, call = connecting.get(), publishing.get()
    if made is not None:
        made.commands += 1
        return None
    if call is None or not call.encode:
        return None
    call.send = monotonic_ns()
    return call


def send_ends(_connection, _args: tuple, call: Publishing | None, _result) -> None:
    if call is not None:
        call.sent = monotonic_ns()
        call.delayed()


def delayed() -> None:
    """Within a publish call."""
    call = publishing.get()
    if call is not None:
        call.delayed()


def read_ends(connection, _args: tuple, _begun, _response) -> None:
    parsed = monotonic_ns()
    sock = getattr(connection, "_sock", None)
    if sock is not None:
        connection._tickpath = (read_at.get(sock.fileno(), parsed), 0, parsed)
    else:
        read = getattr(connection, "_tickpath_read", parsed)
        connection._tickpath = (read, getattr(connection, "_tickpath_resumed", 0), parsed)
    pop = popping.get()
    if pop is not None:
        pop.found = connection._tickpath


def subscribe_begins(pubsub, *_args, **_options) -> None:
    pubsub._tickpath_called = monotonic_ns()


def get_message_begins(pubsub, _ignore=False, timeout=0.0, **_options) -> bool:
    """Whether the call only looks; one that waits for a message is woken by it."""
    left = getattr(pubsub, "_tickpath_left", 0)
    if left:
        pubsub._tickpath_pause += monotonic_ns() - left
        pubsub._tickpath_left = 0
    return timeout == 0


def get_message_ends(pubsub, _args: tuple, only_looked: bool, message) -> None:
    if message is None and only_looked:
        pubsub._tickpath_empty = getattr(pubsub, "_tickpath_empty", 0) + 1
        pubsub._tickpath_pause = getattr(pubsub, "_tickpath_pause", 0)
        pubsub._tickpath_left = monotonic_ns()


def hand_over_ends(pubsub, args: tuple, _begun, message) -> None:
    handed, response = monotonic_ns(), args[0] if args else None
    if not isinstance(response, list) or len(response) < 3:
        return
    kind = response[0] if isinstance(response[0], str) else response[0].decode()
    if kind in ("message", "pmessage", "smessage"):
        read, turn, parsed = getattr(pubsub.connection, "_tickpath", (handed, 0, handed))
        # A handler of the script has run by now; the message was its own when it was parsed.
        handed = parsed if message is None else handed
        empty, pause = getattr(pubsub, "_tickpath_empty", 0), getattr(pubsub, "_tickpath_pause", 0)
        pubsub._tickpath_empty = pubsub._tickpath_pause = 0
        add("received", [key_of(response[-2], response[-1]), read, turn, parsed, handed, empty, pause])
    elif kind in ("subscribe", "psubscribe", "ssubscribe"):
        pubsub._tickpath_empty = pubsub._tickpath_pause = 0
        add("subscribed", [getattr(pubsub, "_tickpath_called", 0), handed])
        # Whoever waits for this process sees that it is ready.
        write()
