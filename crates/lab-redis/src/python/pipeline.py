"""Sends a command many times in one pipeline, waits for all replies, and sends again: what redis-py makes of that.

One process is one client with one connection. It connects, says "ready", waits for "go", works, writes when each
pipeline was sent and answered to a file, and tells what came of it. A pipeline of one is the plain call.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
from array import array

import redis

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
KEY: str = settings["key"]
VALUE = "xxx"
COMMAND: str = settings["command"]
DEPTH: int = settings["depth"]
UNTIL: dict = settings["until"]

# How long a server may be silent before it is given up.
SILENCE_S = 10

# What each command is in redis-py, and what it answers; INCR counts.
SEND = {
    "PING": lambda to: to.ping(),
    "SET": lambda to: to.set(KEY, VALUE),
    "GET": lambda to: to.get(KEY),
    "INCR": lambda to: to.incr(KEY),
}
ANSWER = {"PING": True, "SET": True, "GET": VALUE.encode()}


class Tally:
    """How far the run is. Times are nanoseconds of the monotonic clock."""

    def __init__(self) -> None:
        # When each batch was meant to be sent, was sent, and was answered.
        self.rows = array("Q")
        self.sent = 0
        self.received = 0
        self.errors = 0
        self.first_error: str | None = None
        self.disordered = 0
        self.is_over = False
        self.began = time.monotonic_ns()
        self.used = used()

    def next(self) -> int:
        """How many commands the next batch has; 0 if there is none any more."""
        elapsed = time.monotonic_ns() - self.began
        if elapsed >= UNTIL["most_ns"]:
            return 0
        if UNTIL["count"] is not None:
            return min(DEPTH, UNTIL["count"] - self.sent)
        return DEPTH if elapsed < UNTIL["duration_ns"] or self.sent < UNTIL["least"] else 0

    def answered(self, sent: int, replies: list) -> None:
        self.rows.extend((sent, sent, time.monotonic_ns()))
        if COMMAND == "INCR":
            numbers = range(self.received + 1, self.received + len(replies) + 1)
            if replies != list(numbers):
                self.disordered += sum(reply != number for reply, number in zip(replies, numbers))
        elif replies.count(ANSWER[COMMAND]) != len(replies):
            wrong = [reply for reply in replies if reply != ANSWER[COMMAND]]
            self.errors += len(wrong)
            self.first_error = self.first_error or str(wrong[0])
        self.received += len(replies)

    def tell(self, failed: str | None) -> None:
        """Saves the stamps and says what came of it all."""
        now = used()
        with open(settings["out"], "wb") as file:
            self.rows.tofile(file)
        tell({"result": {
            "sent": self.sent,
            "received": self.received,
            "errors": self.errors,
            "first_error": self.first_error,
            "disordered": self.disordered,
            "elapsed_ns": self.rows[-1] - self.rows[1] if self.rows else 0,
            "late_share": 0.0,
            # The kernel does not count the calls that send and receive.
            "used": {"cpu_ns": now[0] - self.used[0], "switches": now[1] - self.used[1], "calls": None},
            "failed": failed,
        }})


def main() -> None:
    # The whole group is ended from the terminal; there is nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.sched_setaffinity(0, {settings["cpu"]})
    try:
        client = connect(settings["address"])
    except redis.RedisError as error:
        tell({"error": f"{sentence(error)}; check the URL, and look whether the server runs"})
        sys.exit(1)
    tell("ready")
    if not sys.stdin.readline():
        return
    tally = Tally()
    threading.Thread(target=watch, args=(tally,), daemon=True).start()
    failed = None
    try:
        work(client, tally)
    except Exception as error:
        failed = f"{sentence(error)}; look whether the server is still there, and try again"
    tally.is_over = True
    tally.tell(failed)
    # The connection stays as it is until the server has been looked at.
    sys.stdin.readline()


def connect(address: dict) -> redis.Redis:
    client = redis.Redis(
        host=address["host"],
        port=address["port"],
        unix_socket_path=address["socket"],
        username=address["username"],
        password=address["password"],
        db=address["database"],
    )
    # The first command connects.
    client.ping()
    return client


def work(client: redis.Redis, tally: Tally) -> None:
    send = SEND[COMMAND]
    while commands := tally.next():
        tally.sent += commands
        sent = time.monotonic_ns()
        if commands == 1:
            replies = [send(client)]
        else:
            # Without MULTI and EXEC: a pipeline saves round trips, a transaction is something else.
            pipeline = client.pipeline(transaction=False)
            for _ in range(commands):
                send(pipeline)
            replies = pipeline.execute(raise_on_error=False)
        tally.answered(sent, replies)


def used() -> tuple[int, int]:
    """Time on a processor in nanoseconds, and how often this process left one."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time_ns(), usage.ru_nvcsw + usage.ru_nivcsw


def watch(tally: Tally) -> None:
    """Ends the process when no reply has come for so long: a server that hangs must not hang the bench."""
    seen = tally.received
    while True:
        time.sleep(SILENCE_S)
        if tally.is_over:
            return
        if tally.received == seen:
            tally.tell(f"no reply came within {SILENCE_S} s; look whether the server hangs, and try again")
            os._exit(1)
        seen = tally.received


def sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")


def tell(what) -> None:
    print(json.dumps(what), flush=True)


main()
