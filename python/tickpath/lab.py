"""The lab from Python: the benches of the command `tickpath`, and what they measured as rows, frames, curves and a page.

    from tickpath import lab

    result = lab.run("pubsub", target="shm://", size=[64, 1024], phase="steady", duration=2)
    result.to_pandas()[["params.size_bytes", "hop", "p50_ns", "p99_ns", "valid"]]
    result.plot()

And code of your own, in a result of the same form:

    with lab.hop("decode"):
        ...
    lab.hops().save("own.json")

Times are nanoseconds. What a reader must know before a figure is quoted is in `result.warnings`, and in every form.
"""

import gzip
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from . import _render
from ._native import Hop, now, ns_between
from ._rows import FLOATS, INTEGERS, Row, columns, rows_of
from .errors import LabError

__all__ = ["Hop", "LabError", "Result", "Row", "hop", "hops", "load", "run"]


def run(workload: str, *arguments: str, json: str | os.PathLike[str] | None = None, **options: Any) -> "Result":
    """Runs `tickpath bench BENCHMARK` and reads its result; `tickpath bench BENCHMARK --help` lists the options.

    An option is a flag: `size=64` is `--size 64`, `fail_if=…` is `--fail-if`, True is the flag alone, a list is the flag
    once for each, None leaves it out. `arguments` are passed on as they are. `json` keeps the result file there. What the
    command says meanwhile goes to `sys.stderr`; `quiet=True` asks it not to.

    The program is the one that the environment's TICKPATH names, else the package's own, else that on PATH. Ctrl-C ends it;
    what was measured till then is in `json`, if that is given.

    A result with runs that are not valid (exit code 3) is given back, and warned of: RuntimeWarning, and `result.warnings`.
    LabError: the bench was refused, failed or lost messages; what there is of a result is in the error's `result`.
    """
    words = ["bench", workload, *arguments, *_flags(options)]
    with tempfile.TemporaryDirectory(prefix="tickpath-lab-") as folder:
        file = Path(folder, "result.json") if json is None else Path(json)
        before = _identity(file)
        code, said = _call([*words, "--json", str(file)])
        # One that lay there before is not of this run.
        result = load(file) if _identity(file) != before else None
    what = f"tickpath {' '.join(words)}"
    if result is None or code not in (0, 3):
        error = LabError(_reason(what, code, said, result))
        error.code, error.result = code, result
        raise error
    if code == 3:
        warnings.warn(f"{what}: {' '.join(result.warnings)}", RuntimeWarning, stacklevel=2)
    return result


def load(path: str | os.PathLike[str]) -> "Result":
    """Reads a result file, as `--json` writes it, or one that is compressed by gzip.

    LabError: it cannot be read, is no result file, or is of another version.
    """
    try:
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        raise LabError(f"cannot read {path}: {error}; check the path and its permissions") from None
    try:
        return Result(json.loads(text), str(path))
    except (ValueError, RecursionError) as error:
        raise LabError(f"{path} is not JSON ({error}); give a file that a bench wrote with --json") from None


_HOPS: dict[str, Hop] = {}
"""Those of this process. A fork keeps them, and each begins with no sample there."""


def hop(name: str, samples: int | None = None) -> Hop:
    """A stretch of your own code, which `hops` reports as own.NAME: the same object wherever its name is given.

        with lab.hop("decode"):              # a block
            ...
        @lab.hop("decide")                   # each call of a function
        def decide(tick): ...
        lab.hop("tick_to_decode").since(tick.stamp)

    It keeps the stamps of its first `samples` passes, a million if none are given, in 16 bytes each, which are there before the
    first one; how many did not fit is told. ValueError: not a name (lower case letters, digits and underscores), or it has
    another room already.
    """
    found = _HOPS.get(name)
    if found is None:
        made = Hop(name) if samples is None else Hop(name, samples)
        # Another thread may have been faster.
        found = _HOPS.setdefault(name, made)
    if samples is not None and samples != found.samples:
        raise ValueError(f"the hop {name} has room for {found.samples} samples already; give samples=… where it comes first")
    return found


def hops() -> "Result":
    """What the hops of this process have measured so far, as a result of one run: `tickpath report` renders it where it is
    saved, `tickpath compare` sets it beside another one. A run in which samples did not fit is not valid.

    LabError: none has a sample.
    """
    cost = sorted(_record_cost_ns() for _ in range(5))[2]
    # Not the arguments, which may hold a password.
    script = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    text = Hop._result(list(_HOPS.values()), f"python {script}".strip(), runtime, cost)
    if text is None:
        raise LabError(
            "no hop has a sample in this process; put `with tickpath.lab.hop('decode'):` around code of yours, run it, and "
            "ask then"
        )
    return Result(json.loads(text), "the result of hops()")


def _record_cost_ns() -> float:
    """What a block around nothing takes of its thread."""
    rounds = 1_000
    nothing = Hop("nothing", rounds)
    begun = now()
    for _ in range(rounds):
        with nothing:
            pass
    return ns_between(begun, now()) / rounds


class Result:
    """What a bench measured: the result file's data, its rows, and renderings made from these alone."""

    rows: list[Row]
    """One a run and hop, in the file's order."""
    raw: dict[str, Any]
    """The file as `docs/results.md` explains it, which has more than the rows: stages, series, actors, ratios."""

    def __init__(self, raw: dict[str, Any], name: str = "this result") -> None:
        """LabError, which begins with `name`: the data is no result file of this version."""
        self.rows = rows_of(raw, name)
        self.raw = raw

    @cached_property
    def warnings(self) -> list[str]:
        """What a reader must know, in sentences: runs that are not valid and why, what was lost, a slow build."""
        return _render.warnings(self.raw, self.rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, a line a row: the fields of `Row`, and nested ones as `params.size_bytes`. ImportError."""
        pandas = _render.needed("pandas")
        taken = columns(self.raw, self.rows)
        # A number that nobody knows is one all the same.
        unknown = [name for name in (*INTEGERS, *FLOATS) if all(value is None for value in taken[name])]
        return pandas.DataFrame(taken).astype(dict.fromkeys(unknown, "float64"))

    def to_polars(self) -> Any:
        """A polars.DataFrame of the same columns as `to_pandas`. ImportError."""
        polars = _render.needed("polars")
        kinds = {**dict.fromkeys(INTEGERS, polars.Int64), **dict.fromkeys(FLOATS, polars.Float64)}
        return polars.DataFrame(columns(self.raw, self.rows), schema_overrides=kinds)

    def plot(self, ax: Any = None, *, hop: str | None = None, rows: Sequence[Row] | None = None) -> Any:
        """Percentile curves, a row each, on logarithmic axes: matplotlib's axes, `ax` or new ones.

        They are those of `rows`; or of the steady runs, where there are any, of `hop`, or of the hop that people ask for
        first. A dotted curve is not valid. One with points has only those percentiles, for the file keeps no histogram.
        LabError: nothing to draw. ImportError.
        """
        drawn = _render.usual(self.rows, hop) if rows is None else rows
        return _render.plot(self.raw, self.rows, drawn, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result file, for `tickpath report` and `tickpath compare`. OSError."""
        Path(path).write_text(json.dumps(self.raw, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def compare(self, other: "Result") -> str:
        """What `tickpath compare` says of this result, the old one, and the other one. LabError: it cannot compare them."""
        with tempfile.TemporaryDirectory(prefix="tickpath-lab-") as folder:
            files = [os.path.join(folder, name) for name in ("old.json", "new.json")]
            self.save(files[0])
            other.save(files[1])
            words = [_command(), "compare", *files, "--quiet"]
            ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if not ended.stdout:
            error = LabError(_reason("tickpath compare", ended.returncode, ended.stderr, None))
            error.code = ended.returncode
            raise error
        return ended.stdout

    def _repr_html_(self) -> str:
        return _render.html(self.raw, self.rows)

    def __str__(self) -> str:
        return _render.text(self.raw, self.rows, 6)

    def __repr__(self) -> str:
        told = f"; {len(self.warnings)} warnings, first: {self.warnings[0]}" if self.warnings else ""
        return f"<tickpath.lab.Result {self.raw['workload']}, {self.raw['started_at']}, {len(self.rows)} rows{told}>"


def _flags(options: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is False:
            raise LabError(f"{name}=False: leave out a flag that is not wanted; one that takes on or off has {name}='off'")
        if value is True:
            words.append(flag)
        elif value is not None:
            values = [value] if isinstance(value, str | os.PathLike) or not hasattr(value, "__iter__") else list(value)
            # In one word, for a value may begin with a dash.
            words += [f"{flag}={one}" for one in values]
    return words


def _command() -> str:
    """The program to call."""
    named = os.environ.get("TICKPATH")
    if named:
        found = shutil.which(named)
        if found is None:
            raise LabError(f"TICKPATH names {named}, which is no program that can be run; correct it, or unset it")
        return found
    beside = shutil.which("tickpath", path=os.path.dirname(sys.executable)) if sys.executable else None
    found = beside or shutil.which("tickpath")
    if found is None:
        raise LabError(
            "the command tickpath is neither beside this Python nor on PATH; build it with "
            "cargo build --release -p tickpath-cli, and name it: TICKPATH=target/release/tickpath"
        )
    return found


def _call(words: list[str]) -> tuple[int, str]:
    """Runs the command to its end: its exit code, and what it said on standard error, which is passed on meanwhile."""
    program = _command()
    # In a group of its own, for it takes a second Ctrl-C as the wish to end at once.
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        process = subprocess.Popen([program, *words], **pipes, text=True, errors="replace", process_group=0)
    except (OSError, ValueError) as error:
        raise LabError(f"cannot run {program}: {error}; TICKPATH names another program") from None
    assert process.stderr is not None
    with process.stderr as stderr:
        try:
            said = _passed_on(stderr)
            return process.wait(), said
        except BaseException:
            _end(process)
            raise


def _passed_on(stderr: IO[str]) -> str:
    said, is_refused = [], False
    for line in stderr:
        said.append(line)
        # How its parser refuses a call: that is raised, and not printed besides.
        is_refused = is_refused or line.startswith("error: ")
        if sys.stderr is not None and not is_refused:
            sys.stderr.write(line)
    return "".join(said)


def _end(process: subprocess.Popen[str]) -> None:
    """Ctrl-C to it and its own processes: it takes away what it made on servers. If it takes too long, it is killed."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=20)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file lies there: a bench writes a new one and renames it."""
    with suppress(OSError):
        found = file.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _reason(what: str, code: int, said: str, result: Result | None) -> str:
    """Why a command failed: its own sentence, where it has one, and what its result warns of, where there is one."""
    ended = f"{what} was ended by signal {-code}" if code < 0 else f"{what} ended with exit code {code}"
    told = _sentence(said) or (f"{ended} without a result; run it in a terminal to see why" if result is None else ended)
    return told if result is None else " ".join([f"{told}.", *result.warnings])


def _sentence(said: str) -> str:
    """The error that a command ended with, without its name; empty if there is none."""
    # How long it takes is told in the same way.
    lines = [line for line in said.strip().splitlines() if not line.startswith("tickpath: about ")]
    starts = [place for place, line in enumerate(lines) if line.startswith(("tickpath: ", "error: "))]
    if not starts:
        return ""
    told: list[str] = []
    for line in lines[starts[-1] :]:
        if line.startswith(("Usage:", "For more information")):
            break
        told.append(line.strip())
    return " ".join(filter(None, told)).partition(": ")[2]
