"""Hops of a user's own code: blocks, functions and stamps, in threads, tasks and forks; counts and errors."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest

import tickpath as tp
from conftest import Place
from tickpath import lab

NONE: tuple[None, None, None] = (None, None, None)


@pytest.fixture(autouse=True)
def no_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "_HOPS", {})


def only_row() -> lab.Row:
    (row,) = lab.hops().rows
    return row


def test_each_name_has_one_hop() -> None:
    decode = lab.hop("decode")
    assert lab.hop("decode") is decode is lab.hop("decode", samples=1_000_000)
    assert lab.hop("decide") is not decode
    assert (decode.name, decode.samples, decode.count, decode.left_out) == ("decode", 1_000_000, 0, 0)
    assert repr(decode) == "<tickpath.lab.Hop decode, 0 samples>"
    with pytest.raises(ValueError, match="decode has room for 1000000 samples already; give samples=… at its first"):
        lab.hop("decode", samples=5)


def test_a_block_a_function_and_two_stamps_are_samples() -> None:
    decode = lab.hop("decode", samples=100)

    @decode
    def decided(price: int, *, twice: bool = False) -> int:
        """Decides."""
        return price * (2 if twice else 1)

    class Model:
        @lab.hop("decode")
        def price(self) -> int:
            return 7

    with decode as entered:
        assert entered is decode
    assert decided(4, twice=True) == 8
    assert (decided.__name__, decided.__doc__) == ("decided", "Decides.")
    assert Model().price() == 7
    decode.since(tp.now())
    decode.between(tp.now(), tp.now())
    assert decode.count == 5
    row = only_row()
    assert (row.hop, row.count, row.negative) == ("own.decode", 5, 0)
    assert row.max_ns is not None and row.max_ns < 1_000_000_000


def test_since_measures_from_the_stamp_of_a_tick(log: Place) -> None:
    with log.bus.publisher(log.name) as publisher, log.bus.subscribe(log.name, "oldest") as ticks:
        publisher.publish(tp.TopOfBook(1, 2, 3, 4))
        tick = next(ticks)
        assert isinstance(tick, tp.TopOfBook)
        lab.hop("tick_to_decode").since(tick.stamp)
    row = only_row()
    assert (row.hop, row.count, row.negative) == ("own.tick_to_decode", 1, 0)
    # A tick that the program made has no stamp.
    sentence = r"0 is no stamp: .*; give the stamp of such an event, or an earlier tickpath.now\(\)"
    with pytest.raises(ValueError, match=sentence):
        lab.hop("decode").since(tp.TopOfBook(1, 2, 3, 4).stamp)
    with pytest.raises(ValueError, match=sentence):
        lab.hop("decode").between(5, 0)
    assert lab.hop("decode").count == 0


@pytest.mark.parametrize("count", [19, 20, 99, 100, 999, 1_000, 10_000])
def test_percentiles_are_those_of_the_command(count: int) -> None:
    hop, base = lab.hop("decode", samples=count), tp.now()
    lengths = [1_000 * (1 + step * 7_919 % count) for step in range(count)]
    for length in lengths:
        hop.between(base, base + length)
    row = only_row()
    times = sorted(tp.ns_between(base, base + length) for length in lengths)
    assert (row.count, row.max_ns, row.worst_ns) == (count, times[-1], tuple(times[-3:]))
    assert row.mean_ns == pytest.approx(sum(times) / count, rel=0.001)
    for odds, found in {2: row.p50_ns, 10: row.p90_ns, 100: row.p99_ns, 1_000: row.p999_ns, 10_000: row.p9999_ns}.items():
        # A percentile is known with ten samples beyond it.
        assert (found is not None) == (count >= 10 * odds), odds
        if found is not None:
            exact = times[ceil(count * (1 - 1 / odds) - 1e-9) - 1]
            assert exact * 0.998 <= found <= exact * 1.002, odds
    # The histogram is complete.
    assert row.hdr is not None and (count < 20) == (row.curve() == [])


def test_negative_samples_are_counted_and_in_no_percentile() -> None:
    hop, base = lab.hop("decode", samples=10), tp.now()
    hop.between(base, base + 5_000)
    hop.between(base + 5_000, base)
    result = lab.hops()
    (row,) = result.rows
    assert (row.count, row.negative, row.negative_max_ns) == (1, 1, -tp.ns_between(base + 5_000, base))
    assert any("1 samples are negative" in warning for warning in result.warnings)


def test_samples_that_do_not_fit_are_counted_and_reported() -> None:
    hop = lab.hop("decode", samples=10)
    for _ in range(15):
        with hop:
            pass
    assert (hop.count, hop.left_out) == (10, 5)
    result = lab.hops()
    (row,) = result.rows
    assert (row.count, row.valid) == (10, False)
    note = 'own.decode has its first 10 samples, and 5 more did not fit: .* lab.hop("decode", samples=…), or clear'
    for text in (" ".join(result.warnings), " ".join(row.notes)):
        for part in note.split(".*"):
            assert part in text
    hop.clear()
    assert (hop.count, hop.left_out) == (0, 0)
    with hop:
        pass
    assert lab.hops().rows[0].valid


def test_blocks_may_be_nested() -> None:
    outer, inner, deep = lab.hop("outer", samples=9), lab.hop("inner", samples=9), lab.hop("deep", samples=200)
    with outer:
        for _ in range(2):
            with inner, inner:
                pass

    @deep
    def down(levels: int) -> None:
        if levels > 1:
            down(levels - 1)

    down(150)
    rows = {row.hop: row for row in lab.hops().rows}
    counts = {name: row.count for name, row in rows.items()}
    assert counts == {"own.outer": 1, "own.inner": 4, "own.deep": 150}
    longest = rows["own.outer"].max_ns, rows["own.inner"].max_ns
    assert longest[0] is not None and longest[1] is not None and longest[0] >= longest[1]


def test_block_that_raises_is_a_sample() -> None:
    hop = lab.hop("decode")
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), hop:
            1 // 0
    assert hop.count == 3


def test_threads_share_a_hop() -> None:
    hop, rounds = lab.hop("decode", samples=30_000), 5_000

    def work() -> None:
        for _ in range(rounds):
            with hop:
                pass
            hop.since(tp.now())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        # The measurements so far are available meanwhile.
        while any(thread.is_alive() for thread in threads):
            if hop.count:
                assert lab.hops().rows[0].negative == 0
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert (hop.count, hop.left_out) == (30_000, 4 * 2 * rounds - 30_000)
    row = only_row()
    assert (row.count, row.negative) == (30_000, 0)


def test_concurrent_threads_get_one_hop() -> None:
    start = threading.Barrier(4)
    for attempt in range(20):
        found: list[lab.Hop] = []

        def create(name: str, found: list[lab.Hop]) -> None:
            start.wait()
            found.append(lab.hop(name, samples=1_000))

        threads = [threading.Thread(target=create, args=(f"hop{attempt}", found)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and len({id(hop) for hop in found}) == 1


def test_coroutine_function_is_timed_to_its_end() -> None:
    @lab.hop("wait", samples=10)
    async def wait(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def main() -> list[float]:
        return list(await asyncio.gather(wait(0.06), wait(0.01), wait(0.03)))

    assert asyncio.run(main()) == [0.06, 0.01, 0.03]
    row = only_row()
    assert row.count == 3
    for found, asked in zip(row.worst_ns, (10_000_000, 30_000_000, 60_000_000), strict=True):
        assert found >= asked * 0.9


def test_samples_create_no_python_objects() -> None:
    hop = lab.hop("decode", samples=100_000)
    stamp = tp.now()

    def used() -> int:
        before = sys.getallocatedblocks()
        for _ in range(20_000):
            with hop:
                pass
            hop.since(stamp)
        return sys.getallocatedblocks() - before

    used()
    assert abs(used()) < 100


@pytest.mark.parametrize("name", ["", "Decode", "tick-to-order", "a.b", "a b", "ä", "a" * 41, "own.decode"])
def test_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="^a hop cannot be called .*; use 1 to 40 lower case letters, digits and under"):
        lab.hop(name)
    assert lab._HOPS == {}


def test_invalid_arguments_are_refused() -> None:
    for samples in (0, -1, 100_000_001):
        with pytest.raises(ValueError, match=f"room for {samples} samples is not possible; give 1 to 100000000"):
            lab.hop("decode", samples=samples)
    hop = lab.hop("decode", samples=10)
    entered = "^the hop decode was left on a thread that had not entered it; use `with`"
    with pytest.raises(RuntimeError, match=entered):
        hop.__exit__(*NONE)
    hop.__enter__()
    errors: list[str] = []

    def leave() -> None:
        try:
            hop.__exit__(*NONE)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert "had not entered it" in errors[0]
    hop.__exit__(*NONE)
    with pytest.raises(RuntimeError, match=entered):
        hop.__exit__(*NONE)
    assert hop.count == 1


def test_only_functions_are_decorated() -> None:
    hop = lab.hop("decode", samples=10)

    def numbers() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    cases: list[tuple[Any, str]] = [
        (numbers, "numbers is a generator, whose body runs after the call; put `with hop:` into it"),
        (later, "later is a generator"),
        (int, "<class 'int'> is not one; put `with hop:` around"),
        (7, "7 is not one"),
    ]
    for wrong, sentence in cases:
        with pytest.raises(TypeError) as caught:
            hop(wrong)
        assert sentence in str(caught.value)


def test_hops_without_samples_are_an_error() -> None:
    for _ in range(2):
        with pytest.raises(lab.LabError, match=r"^no hop has a sample in this process; put `with tickpath.lab.hop\('"):
            lab.hops()
        lab.hop("decode", samples=10)


def in_a_fork(work: Callable[[], object]) -> Any:
    """Runs this in a forked child; returns its result."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = json.dumps(work())
        except BaseException as error:
            found = json.dumps(f"{type(error).__name__}: {error}")
        os.write(write, found.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    return json.loads(found)


def test_fork_starts_without_samples() -> None:
    kept, other = lab.hop("decode", samples=1_000), lab.hop("other", samples=1_000)
    for _ in range(40):
        with kept, other:
            pass

    def refused() -> str:
        try:
            return repr(lab.hops())
        except lab.LabError as error:
            return str(error)

    def grandchild() -> list[Any]:
        before = kept.count
        kept.since(tp.now())
        return [before, kept.count, lab.hop("decode") is kept]

    def child() -> list[Any]:
        before = [kept.count, other.count, refused()]
        for _ in range(30):
            with kept:
                pass
        hop = {row.hop: row.count for row in lab.hops().rows}
        return [before, hop, in_a_fork(grandchild), kept.count]

    before, hop, again, count = in_a_fork(child)
    assert before[:2] == [0, 0] and before[2].startswith("no hop has a sample in this process")
    assert (hop, count) == ({"own.decode": 30}, 30)
    assert again == [0, 1, True]
    assert (kept.count, other.count) == (40, 40)


def test_block_open_at_a_fork_belongs_to_the_parent() -> None:
    hop = lab.hop("decode", samples=10)

    def child() -> list[int]:
        hop.__exit__(*NONE)
        with hop:
            pass
        return [hop.count]

    with hop:
        assert in_a_fork(child) == [1]
    assert hop.count == 1


def measured(monkeypatch: pytest.MonkeyPatch) -> lab.Result:
    """Measures two hops, in a script with a secret argument."""
    monkeypatch.setattr(sys, "argv", ["/desk/strategy.py", "--password", "secret"])
    decode, way, base = lab.hop("decode", samples=2_000), lab.hop("tick_to_decode", samples=2_000), tp.now()
    for step in range(2_000):
        decode.between(base, base + 2_000 + step % 50)
        way.between(base, base + 20_000 + step % 500)
    return lab.hops()


def test_result_of_hops_has_every_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    result = measured(monkeypatch)
    raw = result.raw
    assert (raw["schema"], raw["workload"], raw["command"]) == ("tickpath.result/1", "own", "python strategy.py")
    assert raw["started_at"].endswith("Z") and raw["host"]["cores"] > 0 and raw["host"]["clock_cost_ns"] > 0
    (run,) = raw["runs"]
    assert (run["client"], run["phase"], run["repeat"], run["valid"]) == ("python", "steady", 1, True)
    assert run["software"]["client"] == "tickpath" and "Python" in run["software"]["runtime"]
    # A block around nothing: two stamps and two calls, however slow the host is.
    assert 10 < run["figures"]["record_cost_ns"] < 1_000_000
    for hop in run["hops"].values():
        assert "unstalled" not in hop and "host_stall_share_p999" not in hop, "the host was not watched"
    assert "secret" not in json.dumps(raw)
    result.save(tmp_path / "own.json")
    assert lab.load(tmp_path / "own.json").raw == raw
    frame = result.to_pandas()
    assert list(frame["hop"]) == ["own.decode", "own.tick_to_decode"] == result.to_polars()["hop"].to_list()
    assert list(frame["count"]) == [2_000, 2_000] and frame["p99_ns"].notna().all() and frame["p999_ns"].isna().all()
    assert "Result own, " in repr(result)
    # All own hops are drawn by default.
    drawn = [line.get_label() for line in result.plot().get_lines()]
    assert len(drawn) == 2 and "own.decode" in drawn[0] and "own.tick_to_decode" in drawn[1]
    assert len(result.plot(hop="own.decode").get_lines()) == 1


def test_command_renders_and_compares_a_result_of_hops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = shutil.which(os.environ.get("TICKPATH", ""))
    if command is None:
        pytest.skip("TICKPATH names no command: TICKPATH=target/debug/tickpath")
    result = measured(monkeypatch)
    result.save(tmp_path / "own.json")
    whole = tmp_path / "whole.json"
    files = [str(tmp_path / "own.json")] * 5

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *words], capture_output=True, text=True)

    done = call("report", files[0])
    assert done.returncode == 0 and "own.tick_to_decode" in done.stdout, done.stderr
    assert call("report", *files, "--json", str(whole)).returncode == 0
    done = call("compare", str(whole), str(whole), "--fail-if", "own.decode.p99 > +10%")
    assert (done.returncode, "limit kept: own.decode.p99" in done.stdout) == (0, True), done.stdout + done.stderr
    assert "own: NEW beside OLD" in result.compare(result)
    assert "own.tick_to_decode" in result._repr_html_() and "own, " in str(result)
