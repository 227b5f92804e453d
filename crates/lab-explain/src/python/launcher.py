"""Runs a command again and again, each time as a new process, with a companion beside it; the scripts stay as they are.

It says "ready", is told in one line what to run, and says when the first run has ended: who reads what that wrote knows
whether there is anything to see, and says "go", or ends this. It tells in one line what came of all: when each process
was spawned and had ended, in nanoseconds of the monotonic clock. What the processes print goes to standard error. A
process that ends when it should not, or does not end, is told as a sentence, beside the runs until then.
"""

import ctypes
import functools
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
import types

# How long a companion may take to subscribe, and to end.
SUBSCRIBE_S = 15.0
END_S = 10.0

# After the last run, for what is still on its way.
DRAIN_S = 1.0

# Calls that tell what the hook costs.
CALLS = 20_000

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Problem(Exception):
    """What went wrong with the user's processes, and the remedy."""


def main() -> None:
    tell("ready")
    line = sys.stdin.readline()
    if line:
        tell({"result": Launcher(json.loads(line)).run()})


class Launcher:
    def __init__(self, order: dict):
        self.command: list[str] = order["command"]
        self.companion: str = order["companion"] or ""
        self.repeat: int = order["repeat"]
        # So many further runs without the hook, between those with it.
        self.plain: int = order["plain"]
        self.timeout_s: float = order["timeout_s"]
        self.hook: str = order["hook"]
        self.records: str = order["records"]
        # Ours alone: without it the user's scripts find the modules beside them.
        ours = {"PYTHONSAFEPATH", "TICKPATH_SETTINGS"}
        self.environment: dict[str, str] = {k: v for k, v in os.environ.items() if k not in ours} | order["environment"]
        self.output = sys.stderr if order["show"] else subprocess.DEVNULL
        self.beside: subprocess.Popen | None = None
        self.runs: list[dict] = []
        self.woken = notice_children()

    def run(self) -> dict:
        problem = None
        subscribed = False
        try:
            if self.companion:
                self.beside = self.spawn(self.companion_words(), hooked=True, what="--with")
                subscribed = self.subscription()
            for number in range(self.repeat):
                self.run_once(number, hooked=True)
                if number == 0:
                    self.ask()
                if number < self.plain:
                    self.run_once(number, hooked=False)
                self.look_beside()
            time.sleep(DRAIN_S)
        except Problem as found:
            problem = str(found)
        finally:
            self.stop_beside()
        costs = {"hook_ns": hook_cost_ns(self.hook), "call_ns": hook_cost_of_call_ns()}
        return {"runs": self.runs, "problem": problem, "subscribed": subscribed, **costs}

    def ask(self) -> None:
        """Whether to go on after the first run. If nobody wants it, all is over."""
        tell({"result": None})
        if sys.stdin.readline() != "go\n":
            self.stop_beside()
            sys.exit(1)

    def companion_words(self) -> list[str]:
        try:
            return shlex.split(self.companion)
        except ValueError as error:
            raise Problem(f"--with '{self.companion}' is no command ({error}); write it as in a shell") from None

    def run_once(self, number: int, hooked: bool) -> None:
        process = self.spawn(self.command, hooked, what="the command")
        ended = self.wait(process, self.timeout_s)
        if ended is None:
            end_group(process)
            raise Problem(
                f"the command did not end within {self.timeout_s:.0f} s in run {number + 1} of {self.repeat}; give it "
                "a longer --timeout, or give a command that ends by itself"
            )
        self.runs.append({"hooked": hooked, "spawned": process.spawned, "ended": ended})
        if process.returncode != 0:
            raise Problem(
                f"the command {ending(process.returncode)} in run {number + 1} of {self.repeat}; run it alone and mend "
                "that first"
            )

    def spawn(self, arguments: list[str], hooked: bool, what: str) -> subprocess.Popen:
        environment = dict(self.environment)
        spawned = time.monotonic_ns()
        if hooked:
            others = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = f"{self.hook}:{others}" if others else self.hook
            environment["TICKPATH_EXPLAIN_DIR"] = self.records
            environment["TICKPATH_EXPLAIN_SPAWNED"] = str(spawned)
        try:
            process = subprocess.Popen(
                arguments,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=self.output,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        except FileNotFoundError:
            raise Problem(f"{what}: there is no program '{arguments[0]}'; check its name, or give its path") from None
        except OSError as error:
            raise Problem(f"{what}: '{arguments[0]}' cannot be run ({error.strerror}); give a program's path") from None
        process.spawned = spawned
        return process

    def subscription(self) -> bool:
        """Waits until the companion is subscribed; false if nothing shows that it is."""
        end = time.monotonic() + SUBSCRIBE_S
        while time.monotonic() < end:
            self.look_beside()
            if any("\n{\"subscribed\"" in text for text in self.files()):
                return True
            time.sleep(0.01)
        return False

    def files(self) -> list[str]:
        found = []
        for name in os.listdir(self.records):
            with open(os.path.join(self.records, name), encoding="utf-8") as file:
                found.append(file.read())
        return found

    def look_beside(self) -> None:
        if self.beside is not None and self.beside.poll() is not None:
            raise Problem(
                f"--with '{self.companion}' {ending(self.beside.returncode)} before it was told to; give a "
                "command that runs until it is stopped"
            )

    def stop_beside(self) -> None:
        if self.beside is None:
            return
        if self.beside.poll() is None:
            os.killpg(self.beside.pid, signal.SIGTERM)
            self.wait(self.beside, END_S)
        # What it has started ends with it.
        end_group(self.beside)

    def wait(self, process: subprocess.Popen, seconds: float) -> int | None:
        """When it had ended; none if it does not within so many seconds. If nobody listens any more, all is over."""
        end = time.monotonic() + seconds
        while process.poll() is None:
            left = end - time.monotonic()
            if left <= 0:
                return None
            ready, _, _ = select.select([self.woken, sys.stdin], [], [], left)
            if sys.stdin in ready:
                end_group(process)
                self.stop_beside()
                sys.exit(1)
            if self.woken in ready:
                os.read(self.woken, 4096)
        return time.monotonic_ns()


def notice_children() -> int:
    """A descriptor that can be read when a child has ended."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def end_with_parent() -> None:
    """In the child: it ends when this process does, however that ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def ending(code: int) -> str:
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with exit code {code}"


def hook_cost_ns(hook: str) -> float:
    """What all stamps of one message cost: a loop over methods that do nothing, with stamps and without."""
    sys.path.insert(0, hook)
    import tickpath_rows
    import tickpath_stamps

    client, connection = types.ModuleType("idle.client"), types.ModuleType("idle.connection")
    sys.modules["idle.client"], sys.modules["idle.connection"] = client, connection
    client.Redis, client.PubSub = IdleRedis, IdlePubSub
    connection.Connection, connection.UnixDomainSocketConnection = IdleConnection, IdleConnection
    plain = call_ns()
    tickpath_stamps.stamp("idle")
    stamped = call_ns()
    tickpath_rows.forget()
    return stamped - plain


def hook_cost_of_call_ns() -> float:
    """The same of one call to an exchange."""
    import tickpath_calls
    import tickpath_rows

    def turn_ns() -> float:
        client = IdleExchange()
        began = time.monotonic_ns()
        for _ in range(CALLS):
            client.create_order()
        return (time.monotonic_ns() - began) / CALLS

    plain = turn_ns()
    calls, library = tickpath_calls, tickpath_calls.Library("idle")
    library.seam(IdleExchange, "throttle", calls.pause_begins, calls.pause_ends(calls.LIMITING))
    library.seam(IdleExchange, "sign", calls.encode_begins, calls.encode_ends)
    library.seam(IdleExchange, "write", calls.write_begins, calls.write_ends)
    library.seam(IdleExchange, "read", None, calls.read_ends)
    library.seam(IdleExchange, "parse_json", calls.parse_begins, calls.parse_ends)
    ends = functools.partial(calls.finish_request, unifies=True)
    calls.public(IdleExchange, "create_order", lambda _self, name: ("idle", "idle", name), ends)
    stamped = turn_ns()
    tickpath_rows.forget()
    return stamped - plain


def call_ns() -> float:
    redis, pubsub = IdleRedis(), IdlePubSub()
    began = time.monotonic_ns()
    for _ in range(CALLS):
        redis.execute_command("PUBLISH", "channel", "1700000000.1234567")
        pubsub.get_message()
    return (time.monotonic_ns() - began) / CALLS


class IdleConnection:
    _sock = None
    _tickpath_read = 0

    def send_command(self, *args):
        self.send_packed_command(args)

    def send_packed_command(self, command):
        pass

    def read_response(self):
        pass


class IdleExchange:
    def create_order(self):
        self.throttle()
        self.sign()
        self.write()
        self.read()
        self.parse_json()

    def throttle(self):
        pass

    def sign(self):
        pass

    def write(self):
        pass

    def read(self):
        pass

    def parse_json(self):
        pass


class IdleRedis:
    connection = IdleConnection()

    def execute_command(self, *args):
        self.connection.send_command(*args)
        self.connection.read_response()


class IdlePubSub:
    connection = IdleConnection()

    def get_message(self):
        self.connection.read_response()
        return self.handle_message([b"message", b"channel", b"1700000000.1234567"])

    def handle_message(self, response):
        return response


def tell(what) -> None:
    print(json.dumps(what), flush=True)


main()
