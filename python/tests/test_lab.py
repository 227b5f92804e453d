"""The lab: recorded results in every form, errors about invalid files, and the command: a fake one and the real one."""

import gzip
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tickpath as tp
from conftest import BROKERS
from tickpath import lab

REPOSITORY = Path(__file__).parents[2]
RECORDED = sorted(REPOSITORY.glob("docs/results/*.json.gz"))

HOP: dict[str, Any] = {
    **{"count": 30, "mean_ns": 200.5, "p50_ns": 200, "p75_ns": None, "p90_ns": None, "p99_ns": None, "p999_ns": None},
    **{"p9999_ns": None, "max_ns": 900, "worst_ns": [300, 400, 900], "negative": 2, "negative_max_ns": 7},
}
COUNTS = {"sent": 32, "received": 32, "lost": 0, "duplicated": 0, "reordered": 0, "left": 0, "errors": 0}


def result(**run: Any) -> dict[str, Any]:
    """Returns the data of a result of one run."""
    defaults: dict[str, Any] = {"target": "shm://", "client": "rust", "repeat": 1, "phase": "steady", "valid": True}
    host = {"cpu": "A <b>CPU</b>", "cores": 2, "kernel": "6.1", "clock_source": "tsc", "spin_gap_p9999_ns": 30.0}
    return {
        **{"schema": "tickpath.result/1", "workload": "pubsub", "command": "tickpath bench pubsub", "tickpath": "0.1.0"},
        **{"started_at": "2026-11-26T08:00:00Z", "host": host},
        "runs": [{**defaults, "counts": COUNTS, "hops": {"one_way": HOP}, **run}],
    }


@pytest.fixture(autouse=True)
def headless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name.partition(".")[0])
def test_recorded_result_is_complete_in_every_form(file: Path) -> None:
    found = lab.load(file)
    raw = json.loads(gzip.decompress(file.read_bytes()))
    assert len(found.rows) == sum(max(1, len(run.get("hops", {}))) for run in raw["runs"])
    pandas, polars = found.to_pandas(), found.to_polars()
    assert list(pandas.columns) == polars.columns
    assert len(pandas) == len(polars) == len(found.rows)
    for name in ("p50_ns", "p9999_ns", "lost"):
        known = [getattr(row, name) for row in found.rows]
        assert polars[name].to_list() == known
        assert [None if value != value else value for value in pandas[name]] == known
    invalid = sum(not run["valid"] for run in raw["runs"])
    for text in (" ".join(found.warnings), repr(found)):
        assert (f"{invalid} of {len(raw['runs'])} runs" in text) == bool(invalid)
    assert raw["workload"] in repr(found)
    assert list(pandas["valid"]) == [row.valid for row in found.rows]
    if any(row.p50_ns is not None for row in found.rows):
        axes = found.plot()
        assert (f"{invalid} of {len(raw['runs'])} runs" in axes.get_title("left")) == bool(invalid)
        assert "ns" in axes.get_ylabel() and "%" in axes.get_xlabel()
    else:
        with pytest.raises(lab.LabError, match="no percentile to draw"):
            found.plot()


def test_recorded_results_exist() -> None:
    assert len(RECORDED) > 20
    assert lab is tp.lab


def flawed() -> dict[str, Any]:
    """Returns the data of a result with every kind of warning."""
    counts = {**COUNTS, "lost": 3, "errors": 1}
    raw = result(valid=False, notes=["<i>late</i>"], counts=counts, params={"size_bytes": 64, "cpus": [0, 1]})
    return {**raw, "profile": "debug"}


@pytest.mark.parametrize("is_missing", [False, True], ids=["command", "no command"])
def test_every_rendering_has_the_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_missing: bool) -> None:
    if is_missing:
        monkeypatch.setenv("TICKPATH", str(tmp_path / "nowhere"))
    raw = flawed()
    found = lab.Result(raw)
    for text in (" ".join(found.warnings), str(found), found._repr_html_()):
        for part in ("1 of 1 runs is not valid", "3 messages were lost", "1 calls failed", "2 samples are negative"):
            assert part in text
        assert "by up to 7 ns" in text and "(debug)" in text
    assert "<i>late</i>" in found.warnings[2]
    page = found._repr_html_()
    assert "<i>" not in page and "&lt;i&gt;late" in page
    line = found.to_pandas().iloc[0]
    assert (line["valid"], line["notes"], line["lost"], line["profile"]) == (False, "<i>late</i>", 3, "debug")
    assert (line["params.cpus"], line["params.size_bytes"], line["host.spin_gap_p9999_ns"]) == ("[0, 1]", 64, 30.0)
    title = found.plot().get_title("left")
    assert "3 messages were lost" in title and "not valid" in title
    found.save(tmp_path / "kept.json")
    assert lab.load(tmp_path / "kept.json").raw == raw


# Measured with 400 messages over Kafka.
MEASURED = {"count": 400, "p50_ns": 570367, "p75_ns": 621055, "p90_ns": 703999, "max_ns": 5408154}
HDR = (
    "HISTEwAAAeUAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAALGZAQIjAh8CAkECJQILAgsEAicCKwIDBAcCKQIFAgMCEQIDAgkCAwILAh"
    "ECCwIDAhMCAhsCAAIDAhECAAICCwICAgQAAgcCDwIFAgcCAwICAgkCDwIAAgQCBQQCAAIAAgUCAgICAg0GCQQGAwQCBAIAAgkGAgICAgINAgAE"
    "AAICAAIDAgIFAgMCAAICAgQGAAIABAAEBAQDBAACAAIAAgIDBAoEAgACAwIEAAICBgICAgQCAAQEAAQAAgUEBAQEBQQEBgICAAYEAgQEAgQAAg"
    "ACAAYDBAIABgQABAICAAIGAgACBAICBAACAAoCBAICAAIEAAQCAAICAAQEBQQABgAEAgICDAAEAwICAgACAwYACAIAAgIFBgQCAwICAgICAwIC"
    "BAMCAAIGBQICAgICAgAEAwQCAAQEBQQCBAACAAIHBAICAgIEAAICBAACAgACBwICAgMCAwIAAgICAAIEAAIFAgIFAgUGAAIFAgICBQIJAgACEw"
    "QAAgIZAgkCAgACDQIJAgMCJQIFAgsCBwIAAi0CEwICAwITAgJTAgIzAgUCFQINAjMCEwIRAt0BAgsCmQECmQECDQLTAgJdAmkCrwECvQkC3QIC"
    "uwECwQEC3wICBQIdAlcC6wMCzQICkQECyQMCwwMC"
)


def test_a_curve_goes_through_the_percentiles() -> None:
    hop = {**HOP, **MEASURED, "hdr": HDR}
    row = lab.Result(result(hops={"one_way": hop})).rows[0]
    curve = row.curve()
    assert curve == sorted(curve)
    for odds, ns in {2: row.p50_ns, 4: row.p75_ns, 10: row.p90_ns}.items():
        assert next(value for place, value in curve if place >= odds) == ns
    # Ten samples are beyond the end of the curve.
    assert curve[-1][0] == 40
    assert "hdr" not in repr(row)
    for damaged in ("!", HDR[:40], HDR[:-8] + "AAAAAAAA"):
        with pytest.raises(lab.LabError, match="measure again"):
            lab.Result(result(hops={"one_way": {**hop, "hdr": damaged}})).rows[0].curve()


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"no json", "is not JSON"),
        (b'{"schema": "tickpath.result/1", "wor', "is not JSON"),
        (b"\x1f\x8b is no gzip", "cannot read"),
        (b"\xff\xfe\xfd", "is not JSON"),
        (b"[1]", "is JSON without a 'schema' text"),
        (b'{"schema": "tickpath.result/2"}', "has schema tickpath.result/2; this tickpath reads tickpath.result/1"),
        (b'{"schema": "tickpath.result/1"}', "breaks tickpath.result/1: the file: there is no 'workload'"),
        (json.dumps(result(counts=None)).encode(), "run 1: there is no 'counts'"),
        (json.dumps(result(valid="yes")).encode(), "run 1: 'valid' is \"yes\""),
        (json.dumps(result(hops={"one_way": 7})).encode(), "run 1: 7 is not an object"),
    ],
)
def test_invalid_result_file_is_an_error(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "invalid.json"
    file.write_bytes(content)
    with pytest.raises(lab.LabError) as caught:
        lab.load(file)
    assert sentence in str(caught.value)
    assert str(file) in str(caught.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(lab.LabError, match="cannot read .*nowhere.json.*check the path"):
        lab.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("package", ["pandas", "polars", "matplotlib"])
def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.path_importer_cache", {})
    found = lab.Result(result())
    with pytest.raises(ImportError, match=f"^{package} is not installed; install it with: pip install {package}$"):
        found.plot() if package == "matplotlib" else getattr(found, f"to_{package}")()


def fake_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Makes this script the command; it has its arguments in `words` and the path of its result in `file`."""
    program = tmp_path / "fake"
    head = f"#!{sys.executable}\nimport json, os, signal, sys, time\nwords = sys.argv[1:]\n"
    head += "file = words[words.index('--json') + 1]\n"
    program.write_text(head + f"raw = json.loads({json.dumps(json.dumps(result()))})\n" + script)
    program.chmod(0o755)
    monkeypatch.setenv("TICKPATH", str(program))


WRITE = "open(file + '.part', 'w').write(json.dumps(raw)); os.rename(file + '.part', file)\n"


def test_options_become_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(tmp_path, monkeypatch, "raw['command'] = json.dumps(words)\n" + WRITE)
    options: dict[str, Any] = {"size": [64, 1024], "round_trip": True, "slo": "-x < 1us", "rate": 1e4, "ticks": None}
    words = json.loads(lab.run("pubsub", "--all", **options, idle=tmp_path).raw["command"])
    expected = ["--size=64", "--size=1024", "--round-trip", "--slo=-x < 1us", "--rate=10000.0", f"--idle={tmp_path}"]
    assert words[:-1] == ["bench", "pubsub", "--all", *expected, "--json"]
    assert not Path(words[-1]).parent.exists()
    with pytest.raises(lab.LabError, match="warm=False: leave out .* has warm='off'"):
        lab.run("pubsub", warm=False)


def test_result_file_is_kept_at_the_given_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept.json"
    fake_command(tmp_path, monkeypatch, WRITE)
    assert lab.run("pubsub", json=kept).raw == lab.load(kept).raw
    # A file of an earlier run is not returned.
    fake_command(tmp_path, monkeypatch, "")
    with pytest.raises(lab.LabError, match="ended with exit code 0 without a result"):
        lab.run("pubsub", json=kept)


def test_end_of_the_command_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    invalid = "raw['runs'][0] |= {'valid': False, 'notes': ['late']}\n" + WRITE
    fake_command(tmp_path, monkeypatch, invalid + "print('tickpath: about 2 s: 1 run', file=sys.stderr); sys.exit(3)")
    with pytest.warns(RuntimeWarning, match="1 of 1 runs is not valid.*late"):
        assert not lab.run("pubsub").rows[0].valid
    assert capfd.readouterr().err == "tickpath: about 2 s: 1 run\n"

    lossy = "raw['runs'][0]['counts']['lost'] = 9\n" + WRITE
    fake_command(tmp_path, monkeypatch, lossy + "print('tickpath: about 2 s: 1 run', file=sys.stderr); sys.exit(1)")
    with pytest.raises(lab.LabError, match="ended with exit code 1. 9 messages were lost, in 1 of 1 runs") as caught:
        lab.run("pubsub")
    assert caught.value.code == 1
    assert caught.value.result is not None and caught.value.result.rows[0].lost == 9

    fake_command(tmp_path, monkeypatch, "print('tickpath: about 2 s\\ntickpath: no room', file=sys.stderr); sys.exit(1)")
    with pytest.raises(lab.LabError, match="^no room$"):
        lab.run("pubsub")
    fake_command(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(lab.LabError, match="was ended by signal 9 without a result"):
        lab.run("pubsub")


def test_ctrl_c_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signals = tmp_path / "signals"
    note = f"    open({str(signals)!r}, 'a').write(f'{{number}}\\n')\n"
    counted = f"def end(number, frame):\n{note}    time.sleep(0.3)\n    sys.exit(130)\nsignal.signal(signal.SIGINT, end)\n"
    fake_command(tmp_path, monkeypatch, counted + f"open({str(tmp_path / 'begun')!r}, 'w')\ntime.sleep(60)")
    waiting = subprocess.Popen(
        [sys.executable, "-c", "from tickpath import lab; lab.run('pubsub')"], stderr=subprocess.PIPE, process_group=0
    )
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    # Like a terminal, which signals the whole group.
    os.killpg(waiting.pid, signal.SIGINT)
    _, errors = waiting.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert signals.read_text() == f"{int(signal.SIGINT)}\n"


def test_missing_command_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKPATH", str(tmp_path / "nowhere"))
    with pytest.raises(lab.LabError, match="TICKPATH names .*nowhere, which is no executable program"):
        lab.run("pubsub")
    monkeypatch.delenv("TICKPATH")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    with pytest.raises(lab.LabError, match="neither beside this Python nor on PATH; build it with cargo"):
        lab.run("pubsub")
    (tmp_path / "tickpath").write_bytes(b"no program")
    (tmp_path / "tickpath").chmod(0o755)
    with pytest.raises(lab.LabError, match="cannot run .*tickpath: .*; name another program by TICKPATH"):
        lab.run("pubsub")
    assert "is not rendered: cannot run " in str(lab.Result(result()))


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if REAL is None:
        recorded = REPOSITORY / "docs/results/pubsub.json.gz"
        fake_command(tmp_path, monkeypatch, f"import gzip\nraw = json.load(gzip.open({str(recorded)!r}))\n" + WRITE)
    notebook = json.loads((REPOSITORY / "examples/python/lab.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for cell in cells:
            exec(compile(cell, "lab.ipynb", "exec"), names)
    assert len(cells) == 5
    assert isinstance(names["result"], lab.Result) and "p99_ns" in names["frame"]


REAL = shutil.which(os.environ.get("TICKPATH", ""))
"""The real command, as named in the environment."""


@pytest.fixture
def command() -> str:
    if REAL is None:
        pytest.skip("TICKPATH names no command: TICKPATH=target/debug/tickpath")
    return REAL


def test_real_command_renders(command: str) -> None:
    found = lab.Result(flawed())
    page = re.search('<iframe srcdoc="([^"]*)"', found._repr_html_())
    assert page is not None
    document = html.unescape(page[1])
    assert document.startswith("<!doctype html>") and "A &lt;b&gt;CPU" in document and "one_way" in document
    assert "<i>late" not in document and "&lt;i&gt;late" in document
    text = str(found)
    assert "pubsub, 2026-11-26T08:00:00Z" in text and "one_way" in text and "not rendered" not in text
    # The files of the repository are rendered, too, whatever their workload.
    for name in ("explain", "orders", "pubsub"):
        recorded = lab.load(REPOSITORY / f"docs/results/{name}.json.gz")
        assert "<iframe srcdoc=" in recorded._repr_html_() and "not rendered" not in str(recorded)


def test_real_command_compares(command: str) -> None:
    old, new = (lab.load(REPOSITORY / f"docs/results/{name}.json.gz") for name in ("lonely", "lonely-cold"))
    assert "orders: NEW beside OLD" in old.compare(new)
    with pytest.raises(lab.LabError, match="compare results of the same bench") as caught:
        old.compare(lab.load(REPOSITORY / "docs/results/pubsub.json.gz"))
    assert caught.value.code == 2


def test_real_command_refuses_with_one_sentence(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    refused: list[tuple[str, dict[str, str], str]] = [
        ("nothing", {}, "unrecognized subcommand 'nothing'"),
        ("pubsub", {"transport": "shm"}, "unexpected argument '--transport'"),
        ("pubsub", {"size": "1"}, "use 16 to 16777216 bytes"),
        ("pubsub", {"target": "nowhere://"}, "nowhere"),
        ("pubsub", {"json": "/nowhere/it.json"}, "name a file in a folder that exists"),
    ]
    for benchmark, options, sentence in refused:
        with pytest.raises(lab.LabError) as caught:
            lab.run(benchmark, **options)
        assert sentence in str(caught.value)
        assert caught.value.code == 2
        assert "\n" not in str(caught.value)
        assert "Usage:" not in capfd.readouterr().err


def test_real_command_measures(command: str) -> None:
    with warnings.catch_warnings():
        # Other load on the machine may make a run invalid.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = lab.run("pubsub", target="shm://", size=64, phase="steady", count=2000, rate=10_000)
    assert {row.hop for row in found.rows} >= {"one_way", "service", "publish"}
    for row in found.rows:
        assert (row.workload, row.target, row.params["size_bytes"], row.sent) == ("pubsub", "shm://", 64, 2000)
        curve = row.curve()
        for odds, ns in {2: row.p50_ns, 10: row.p90_ns, 100: row.p99_ns}.items():
            assert next(value for place, value in curve if place >= odds) == ns
    assert len(found.to_polars()) == len(found.rows)


def by_python(monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[lab.Row]:
    """Measures one way between two processes of this Python; returns the row of each run."""
    monkeypatch.setenv("TICKPATH_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = lab.run("pubsub", client="python", size=64, **options).rows
    for row in rows:
        assert (row.client, row.received, row.lost) == ("python", row.sent, 0), row.notes
        assert (row.software["client"], row.negative or 0) == ("tickpath", 0)
    return [row for row in rows if row.hop == "one_way"]


def test_both_ends_are_python_on_every_transport(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = [os.environ[variable] + way for variable, way in BROKERS.values() if variable in os.environ]
    targets = ["shm://", f"file://{tmp_path}", *brokers]
    rows = by_python(monkeypatch, target=targets, phase="steady", count=200, rate=500)
    assert [row.received for row in rows] == [200] * len(targets)
    if brokers:
        by_python(monkeypatch, target=brokers, rate="max", batch="1,32", count=500)


def test_both_ends_use_the_given_wait_mode(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["busy", "block", "yield", "adaptive"]
    options: dict[str, Any] = {"phase": "steady,idle", "idle": 5, "rate": 1_000, "duration": 0.2}
    rows = by_python(monkeypatch, target="shm://", wait=",".join(modes), **options)
    expected = [(mode, phase) for mode in modes for phase in ("steady", "idle")]
    assert [(row.params["wait"], row.phase) for row in rows] == expected
    # A 'fail' topic keeps every message, though the publisher is faster than its subscriber.
    by_python(monkeypatch, target="shm://", rate="max", batch="1,64", count=50_000, wait="block")
    with pytest.raises(lab.LabError, match="--client python: one subscription, at equal distances; leave --readers,"):
        lab.run("pubsub", client="python", target="shm://", phase="steady", count=1, readers=2)


def test_python_strategy_alternates_with_rust(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKPATH_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = lab.run("path", client=["rust", "python"], rate=500, count=300, wait="block")
    hops: dict[str, dict[str, int | None]] = {"rust": {}, "python": {}}
    for row in found.rows:
        assert (row.layout, row.params["entry"]) == ("split", "shm+unix://")
        assert (row.sent, row.received, row.lost, row.left, row.negative or 0) == (300, 300, 0, 0, 0), row.notes
        assert not any("session" in note or "the OMS reported" in note for note in row.notes), row.notes
        assert row.figures["receiver_cpu_per_message_ns"] > 0
        if row.hop is not None:
            hops[row.client][row.hop] = row.count
    # Both make the same decisions on the same ticks, and every order has each stamp.
    assert hops["python"] == hops["rust"]
    orders = hops["rust"]["tick_to_order"]
    assert orders is not None and orders > 150
    for hop in ("one_way", "service", "t0_t1", "t1_t2", "tick_to_venue", "order_ack", "order_round_trip"):
        assert hops["python"][hop] == orders, hop
    assert all(row.software["client"] == "tickpath" for row in found.rows if row.client == "python")
    stages = {run["client"]: {stage["name"] for stage in run["stages"]} for run in found.raw["runs"]}
    assert "seen_to_sent" in stages["python"] == stages["rust"]
    # Invalid runs, as on a loaded machine, are not compared.
    names = {comparison["name"] for comparison in found.raw.get("comparisons", [])}
    assert names <= {"python_log_to_rust_log_tick_to_order"}


def test_python_strategy_receives_ticks_of_every_transport(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKPATH_PYTHON", sys.executable)
    brokers = [os.environ[variable] + way for variable, way in BROKERS.values() if variable in os.environ]
    targets = [f"file://{tmp_path}", *brokers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = lab.run("path", client="python", target=targets, rate=200, count=100, wait="block").rows
    counts = [(row.client, row.received, row.lost) for row in rows if row.hop == "tick_to_order"]
    assert counts == [("python", 100, 0)] * len(targets)
    with pytest.raises(lab.LabError, match="use --layout split"):
        lab.run("path", client="python", layout="inline", count=1)


@pytest.mark.parametrize(
    "targets, options",
    [(["unix://", "shm+unix://", "tcp://"], {"count": 100, "rate": 500}), (["shm+unix://"], {"count": 2_000})],
    ids=["paced", "burst"],
)
def test_python_orders_alternate_with_rust(
    command: str, monkeypatch: pytest.MonkeyPatch, targets: list[str], options: dict[str, Any]
) -> None:
    monkeypatch.setenv("TICKPATH_PYTHON", sys.executable)
    clients, count, is_paced = ["rust", "python"], options["count"], "rate" in options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = lab.run("orders", client=clients, target=targets, layout="split", wait="block", **options)
    hops: dict[tuple[str, str], dict[str, int | None]] = {}
    for row in found.rows:
        assert (row.sent, row.received, row.lost, row.left) == (count, count, 0, 0), row.notes
        # The package sends no position effect, so the Rust client sends none, either.
        assert "position=default" in row.params["order"]
        assert row.figures["orders_denied"] == 0 and ("acked_per_s" in row.figures) != is_paced
        assert row.client == "rust" or row.software["client"] == "tickpath"
        if row.hop is not None:
            hops.setdefault((row.client, row.target), {})[row.hop] = row.count
    assert list(hops) == [(client, target) for client in clients for target in targets]
    whole = ["t0_t1", "t1_t2", "t0_t2", "order_ack", "order_round_trip", *(["tick_to_order"] if is_paced else [])]
    for counts in hops.values():
        assert {hop: counts[hop] for hop in whole} == dict.fromkeys(whole, count)
