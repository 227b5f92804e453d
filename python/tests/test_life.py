"""Lifetime of handles: closing, threads, forks, signals, and the end of the interpreter."""

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, SpawnContext

import pytest

import soak
import tickpath as tp
from conftest import BROKERS, Place

KIND = 200

# Processes of each kind in a test run, and in a long test run.
ROUNDS, SOAK_ROUNDS = 20, 1_000


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in an interpreter of its own, which must end within a minute."""
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60)


def test_closed_handle_refuses_calls(log: Place) -> None:
    publisher, subscriber = log.bus.publisher(log.name), log.bus.subscribe(log.name)
    for handle in (publisher, subscriber):
        handle.close()
        handle.close()
    with pytest.raises(tp.Closed, match="this publisher is closed"):
        publisher.publish(b"x", KIND)
    with pytest.raises(tp.Closed, match="this subscriber is closed"):
        next(subscriber)
    # The topic has no publisher any more.
    log.bus.publisher(log.name).close()


def test_close_ends_a_wait(log: Place) -> None:
    subscriber = log.bus.subscribe(log.name)
    errors: list[str] = []

    def wait() -> None:
        try:
            next(subscriber)
        except tp.Closed as e:
            errors.append(str(e))

    thread = threading.Thread(target=wait)
    thread.start()
    while True:
        # The thread waits as soon as other threads are refused.
        try:
            subscriber.poll()
        except tp.InUse as e:
            assert "another thread uses this subscriber" in str(e)
            break
    subscriber.close()
    thread.join(60)
    assert errors == ["this subscriber is closed; open another one"]


def test_other_threads_run_during_a_wait(log: Place) -> None:
    with log.bus.subscribe(log.name) as subscriber:
        thread = threading.Thread(target=lambda: subscriber.wait(0.5))
        thread.start()
        turns = 0
        while thread.is_alive():
            turns += 1
        assert turns > 1_000


def test_an_interrupt_ends_every_wait(log: Place) -> None:
    script = """
import os, signal, sys, threading, tickpath as tp
bus = tp.connect("shm://")
with bus.publisher(sys.argv[1]), bus.subscribe(sys.argv[1], wait=sys.argv[2]) as subscriber:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        next(subscriber)
    except KeyboardInterrupt:
        print("interrupted")
"""
    for wait in ("busy", "yield", "block", "adaptive"):
        done = run(script, log.name, wait)
        assert done.stdout == "interrupted\n", done


def test_an_interrupt_ends_every_wait_of_a_puller(log: Place) -> None:
    script = """
import os, signal, sys, threading, tickpath as tp
bus = tp.connect("shm://")
kept = bus.pusher(sys.argv[1]) if sys.argv[3] == "there" else None
with bus.puller(sys.argv[1], wait=sys.argv[2]) as puller:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        next(puller)
    except KeyboardInterrupt:
        print("interrupted")
"""
    for wait in ("busy", "yield", "block", "adaptive"):
        for queue in ("there", "not yet"):
            done = run(script, log.name, wait, queue)
            assert done.stdout == "interrupted\n", (wait, queue, done)
    log.bus.remove_queue(log.name)


def test_threads_share_a_bus(log: Place) -> None:
    def subscribe() -> int:
        with log.bus.subscribe(log.name) as subscriber:
            return len(subscriber.poll())

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: subscribe(), range(200))) == 0


def test_interpreter_ends_when_a_finaliser_closes_an_awaited_handle(log: Place) -> None:
    script = """
import sys, threading, tickpath as tp
class Feed:
    def __init__(self):
        self.subscriber = tp.connect("shm://").subscribe(sys.argv[1])
        threading.Thread(target=lambda: next(self.subscriber), daemon=True).start()
    def __del__(self):
        self.subscriber.close()
feed = Feed()
"""
    done = run(script, log.name)
    assert done.returncode == 0, done


def test_finaliser_may_close_a_handle_in_use(log: Place) -> None:
    script = """
import gc, sys, tickpath as tp
bus = tp.connect("shm://")
publisher, subscriber = bus.publisher(sys.argv[1]), bus.subscribe(sys.argv[1])
class Dead:
    def __init__(self): self.me = self
    def __del__(self): subscriber.close(); publisher.close()
for _ in range(50):
    publisher.publish(b"x" * 40, 200)
gc.set_threshold(1)
Dead()
try:
    while True:
        subscriber.poll(50); publisher.publish(bytearray(b"x"), 200)
except tp.Closed:
    print("closed")
"""
    assert run(script, log.name).stdout == "closed\n"


def test_fork_must_open_its_own_handles(log: Place) -> None:
    with log.bus.publisher(log.name) as publisher, log.bus.subscribe(log.name) as subscriber:
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: publisher.publish(b"x", KIND), subscriber.poll, lambda: log.bus.subscribe(log.name)):
                try:
                    use()
                except tp.Forked:
                    refused += 1
            publisher.close()
            with tp.connect(log.url) as bus, bus.subscribe(log.name) as own:
                event = next(own)
            os._exit(refused if isinstance(event, tp.Message) else 99)
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            publisher.publish(b"from the parent", KIND)
        assert subscriber.poll()


def test_a_fork_ends_like_any_process(log: Place) -> None:
    script = """
import os, sys, tickpath as tp
bus = tp.connect(sys.argv[2])
publisher, subscriber = bus.publisher(sys.argv[1]), bus.subscribe(sys.argv[1])
child = os.fork()
if child:
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    publisher.publish(b"x", 200)
    print(ended, subscriber.wait(60))
"""
    brokers = {os.environ[variable] for variable, _ in BROKERS.values() if variable in os.environ}
    for url in [log.url, *brokers]:
        done = run(script, log.name, url)
        assert done.stdout == "0 True\n", (url, done)
        with tp.connect(url) as bus:
            bus.remove(log.name)


def _publish(url: str, name: str) -> None:
    with tp.connect(url) as bus, bus.publisher(name) as publisher:
        publisher.publish(b"from a child", KIND)


@pytest.mark.parametrize("context", [get_context("spawn"), get_context("forkserver")], ids=["spawn", "forkserver"])
def test_processes_share_topics(log: Place, context: SpawnContext | ForkServerContext) -> None:
    with log.bus.subscribe(log.name) as subscriber:
        child = context.Process(target=_publish, args=(log.url, log.name))
        child.start()
        event = next(subscriber)
        child.join(30)
    assert isinstance(event, tp.Message) and event.payload == b"from a child"


def test_killed_publishers_leave_their_topics_free(log: Place) -> None:
    script = """
import sys, tickpath as tp
publisher = tp.connect("shm://").publisher(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", script, log.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None and child.stdout.readline() == b"open\n"
            with pytest.raises(tp.ConnectError):
                log.bus.publisher(log.name)
            child.send_signal(signal.SIGKILL)
        log.bus.publisher(log.name).close()


def test_the_interpreter_ends_with_open_handles(log: Place) -> None:
    script = """
import sys, threading, tickpath as tp
bus = tp.connect("shm://")
kept = [bus.publisher(sys.argv[1]), bus.subscribe(sys.argv[1])]
threading.Thread(target=lambda: next(kept[1]), daemon=True).start()
kept.append(kept)
"""
    done = run(script, log.name)
    assert (done.returncode, done.stderr) == (0, ""), done


def test_handles_may_be_collected_in_any_order(log: Place) -> None:
    for order in range(6):
        bus = tp.connect(log.url)
        handles: list[object] = [bus, bus.publisher(log.name), bus.subscribe(log.name)]
        del bus
        handles.pop(order % 3)
        handles.pop(order // 3)
        handles.append(handles)
        del handles
        gc.collect()


@pytest.mark.parametrize("kind", soak.KINDS)
def test_processes_start_and_end_repeatedly(kind: str) -> None:
    is_long = "TICKPATH_SOAK" in os.environ
    rounds = SOAK_ROUNDS if is_long else ROUNDS
    seed = os.environ.get("TICKPATH_SEED", "1")
    command = [sys.executable, soak.__file__, kind, str(rounds), seed]
    # Spawned children print their stacks, too, if they hang.
    environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=3_600 if is_long else 120)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            output = "the process hangs: " + process.communicate()[0]
    assert (process.returncode, output) == (0, ""), f"{' '.join(command)}:\n{output}"
