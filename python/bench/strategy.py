"""From tick to T2 with a strategy in Python and in Rust, against an OMS that spins: `python python/bench/strategy.py`.

The strategy spins on CPU 0. The feed and the OMS take turns on CPU 1, since a host of two CPUs has no third: a strategy's time
below the length of a turn shows in T0, and not in T2. There is no venue: T2 is the OMS's decision that the order waits.
TICKPATH names the command, and STRATEGY the Rust example (`cargo build --release -p tickpath-oms-client --example strategy`).
"""

import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "python" / "tests"))

import tickpath as tp
from desk import ASK, BTC, Desk

ROUNDS = 5
TICKS = 3_000
STARTING = 1_000
"""Ticks during which the strategy may still be starting."""
GAP = 0.001
RUST = os.environ.get("STRATEGY", str(ROOT / "target/release/examples/strategy"))
HOPS = ("tick_to_order", "tick to T0", "t0_t2")


def measure(command: list[str]) -> dict[str, float]:
    """Returns the hops of a strategy's orders, from the OMS's journal: medians in nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.change("oms.toml", '#layout = "split"', 'layout = "inline"')
        desk.change("oms.toml", '#wait = "block"', 'wait = "yield"')
        desk.change("oms.toml", "#cpu = 0", "cpu = 1")
        # As many orders as ticks, all of which wait for a missing venue.
        desk.change("accounts.csv", "\n1,1000,1000000000,100,10000000,,1000,10000,", "\n1,,1000000000,100,10000000,,1000,,")
        desk.change("oms.toml", "#max_queued = 1024", f"max_queued = {STARTING + 2 * TICKS}")
        recording = Path(folder) / "recording"
        with tp.connect(f"file://{recording}") as bus, bus.publisher("ticks", "keep") as recorder:
            for _ in range(STARTING + TICKS):
                recorder.publish(tp.TopOfBook(ASK - 10, 1, ASK, 1, symbol=BTC))
        try:
            desk.start("oms")
            arguments = ["taskset", "-c", "0", *command, folder, "shm://", desk.ticks, "0"]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE) as strategy:
                try:
                    assert strategy.stdout is not None and b"trading" in strategy.stdout.readline()
                    feed = ["taskset", "-c", "1", desk.command, "log", "replay", str(recording / "ticks"), "shm://", desk.ticks]
                    subprocess.run([*feed, "--wait", "yield", "--rate", f"{1 / GAP:.0f}"], check=True, capture_output=True)
                finally:
                    strategy.kill()
            return hops(desk.journal())
        finally:
            desk.close()


def hops(journal: str) -> dict[str, float]:
    """Returns the medians of a journal's orders, in nanoseconds. The T2 of an order is in the next record."""
    number = r"=(\d+)"
    line = re.compile(f"journal_new_order .*sent{number} .*released_before{number} .*cause{number}")
    rows = [tuple(map(int, found.groups())) for found in line.finditer(journal)]
    assert len(rows) >= TICKS, f"{len(rows)} orders"
    took = [(tick, sent, after[1]) for (sent, _, tick), after in pairwise(rows)][STARTING // 2 :]
    return {
        "tick_to_order": median(tp.ns_between(tick, released) for tick, _, released in took),
        "tick to T0": median(tp.ns_between(tick, sent) for tick, sent, _ in took),
        "t0_t2": median(tp.ns_between(sent, released) for _, sent, released in took),
    }


def main() -> None:
    commands = {"rust": [RUST], "python": [sys.executable, str(ROOT / "examples/python/06_strategy.py")]}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            found[name].append(measure(command))
    for name, rounds in found.items():
        print(f"{name}:", ", ".join(f"{hop} {median(one[hop] for one in rounds):.0f}" for hop in HOPS), "ns (p50)")
    added = [python["tick_to_order"] - rust["tick_to_order"] for python, rust in zip(found["python"], found["rust"])]
    print(f"python over rust, tick_to_order: {median(added):+.0f} ns of {sorted(round(ns) for ns in added)}")


main()
