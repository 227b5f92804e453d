"""The lab from Python: the benches of the command `tickpath`, and their results as rows, frames, curves and a page.

    from tickpath import lab

    result = lab.run("pubsub", target="shm://", size=[64, 1024], phase="steady", duration=2)
    result.to_pandas()[["params.size_bytes", "hop", "p50_ns", "p99_ns", "valid"]]
    result.plot()

Measurements of your own code give a result of the same form:

    with lab.hop("decode"):
        ...
    lab.hops().save("own.json")

Times are nanoseconds. `result.warnings` must be read before a figure is quoted; every rendering shows them. The page and
the text of a result are made by `tickpath report`.
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
from html import escape
from pathlib import Path
from typing import IO, Any

from ._curves import default_rows, plot
from ._native import Hop, now, ns_between
from ._packages import optional
from ._rows import FLOATS, INTEGERS, Row, columns, rows_of
from ._warnings import warnings_of
from .errors import LabError

__all__ = ["Hop", "LabError", "Result", "Row", "hop", "hops", "load", "run"]

MAX_WARNINGS = 6
"""Max warnings in the text of a result."""


def run(workload: str, *arguments: str, json: str | os.PathLike[str] | None = None, **options: Any) -> "Result":
    """Runs `tickpath bench BENCHMARK` and reads its result; `tickpath bench BENCHMARK --help` lists the options.

    An option is a flag: `size=64` is `--size 64`, `fail_if=…` is `--fail-if`, True is the flag alone, a list is the
    flag once for each, None leaves it out. `arguments` are passed on unchanged. `json` keeps the result file there.
    Progress messages of the command go to `sys.stderr`; `quiet=True` turns them off.

    The program is the one named by the environment variable TICKPATH, else the package's own, else the one on PATH.
    Ctrl-C ends it; the measurements until then are in `json`, if that is given.

    A result with invalid runs (exit code 3) is returned, with a RuntimeWarning and `result.warnings`. LabError: the
    bench was refused, failed or lost messages; a partial result is in the error's `result`.
    """
    command = ["bench", workload, *arguments, *_flags(options)]
    with tempfile.TemporaryDirectory(prefix="tickpath-lab-") as folder:
        file = Path(folder, "result.json") if json is None else Path(json)
        before = _identity(file)
        code, messages = _call([*command, "--json", str(file)])
        # An unchanged file is of an earlier run.
        result = load(file) if _identity(file) != before else None
    name = f"tickpath {' '.join(command)}"
    if result is None or code not in (0, 3):
        error = LabError(_reason(name, code, messages, result))
        error.code, error.result = code, result
        raise error
    if code == 3:
        warnings.warn(f"{name}: {' '.join(result.warnings)}", RuntimeWarning, stacklevel=2)
    return result


def load(path: str | os.PathLike[str]) -> "Result":
    """Reads a result file, as written by `--json`, plain or compressed by gzip.

    LabError: the file cannot be read, is no result file, or is of another version.
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
"""The hops of this process. A fork keeps the hops, and each starts without samples there."""


def hop(name: str, samples: int | None = None) -> Hop:
    """Returns the hop of a stretch of your own code, reported by `hops` as own.NAME: one object for each name.

        with lab.hop("decode"):              # a block
            ...
        @lab.hop("decide")                   # each call of a function
        def decide(tick): ...
        lab.hop("tick_to_decode").since(tick.stamp)

    The hop keeps the stamps of its first `samples` passes, by default a million, in 16 bytes each, which are allocated
    before the first pass; passes beyond are counted. ValueError: an invalid name (lower case letters, digits and
    underscores are valid), or the hop exists with another number of samples.
    """
    found = _HOPS.get(name)
    if found is None:
        created = Hop(name) if samples is None else Hop(name, samples)
        # Another thread may have created the hop meanwhile.
        found = _HOPS.setdefault(name, created)
    if samples is not None and samples != found.samples:
        raise ValueError(f"the hop {name} has room for {found.samples} samples already; give samples=… at its first use")
    return found


def hops() -> "Result":
    """Returns the measurements of this process's hops so far, as a result of one run: once saved, `tickpath report`
    renders it, and `tickpath compare` compares it with another one. A run in which samples did not fit is not valid.

    LabError: no hop has a sample.
    """
    cost = sorted(_record_cost_ns() for _ in range(5))[2]
    # Without the arguments, which may contain a password.
    script = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    text = Hop._result(list(_HOPS.values()), f"python {script}".strip(), runtime, cost)
    if text is None:
        raise LabError(
            "no hop has a sample in this process; put `with tickpath.lab.hop('decode'):` around your code, and run it before "
            "hops()"
        )
    return Result(json.loads(text), "the result of hops()")


def _record_cost_ns() -> float:
    """Measures the cost of an empty block, in nanoseconds."""
    rounds = 1_000
    empty = Hop("empty", rounds)
    begun = now()
    for _ in range(rounds):
        with empty:
            pass
    return ns_between(begun, now()) / rounds


class Result:
    """The result of a bench: the result file's data and its rows, with their renderings."""

    rows: list[Row]
    """The rows, one per run and hop, in the file's order."""
    raw: dict[str, Any]
    """The data of the file, explained in `docs/results.md`; it has more than the rows: stages, series, actors, ratios.
    """

    def __init__(self, raw: dict[str, Any], name: str = "this result") -> None:
        """Checks the data. LabError, beginning with `name`: the data is no result file of this version."""
        self.rows = rows_of(raw, name)
        self.raw = raw

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings for the reader, as sentences: invalid runs with the reasons, lost messages, a slow build."""
        return warnings_of(self.raw, self.rows)

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with a line per row: the fields of `Row`, nested ones as `params.size_bytes`.
        ImportError.
        """
        pandas = optional("pandas")
        values = columns(self.raw, self.rows)
        # A column without a known number is a column of numbers, too.
        unknown = [name for name in (*INTEGERS, *FLOATS) if all(value is None for value in values[name])]
        return pandas.DataFrame(values).astype(dict.fromkeys(unknown, "float64"))

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame with the columns of `to_pandas`. ImportError."""
        polars = optional("polars")
        kinds = {**dict.fromkeys(INTEGERS, polars.Int64), **dict.fromkeys(FLOATS, polars.Float64)}
        return polars.DataFrame(columns(self.raw, self.rows), schema_overrides=kinds)

    def plot(self, ax: Any = None, *, hop: str | None = None, rows: Sequence[Row] | None = None) -> Any:
        """Draws percentile curves, one per row, on logarithmic axes; returns matplotlib's axes, `ax` or new ones.

        By default the rows are those of `hop`, or of the leading hop, in the steady runs if there are any. A dotted
        curve is not valid. A curve with points has only those percentiles, since the file has no histogram. LabError:
        nothing to draw. ImportError.
        """
        drawn = default_rows(self.rows, hop) if rows is None else rows
        return plot(self.raw, self.rows, drawn, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result file, for `tickpath report` and `tickpath compare`. OSError."""
        Path(path).write_text(json.dumps(self.raw, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def compare(self, other: "Result") -> str:
        """Returns the output of `tickpath compare`, with this result as the old one. LabError: the two cannot be
        compared.
        """
        with tempfile.TemporaryDirectory(prefix="tickpath-lab-") as folder:
            files = [os.path.join(folder, name) for name in ("old.json", "new.json")]
            self.save(files[0])
            other.save(files[1])
            return _output("compare", *files, "--quiet")

    def _report(self, *options: str) -> str:
        """Returns the output of `tickpath report`. LabError: the command is missing or failed."""
        with tempfile.TemporaryDirectory(prefix="tickpath-lab-") as folder:
            file = os.path.join(folder, "result.json")
            self.save(file)
            return _output("report", file, *options)

    def _not_rendered(self, error: LabError) -> str:
        return f"{self!r} is not rendered: {error}"

    def _repr_html_(self) -> str:
        """Returns the warnings, and the page of `tickpath report` in a frame, which keeps its style to itself."""
        items = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        try:
            page = escape(self._report("--html", "-"))
            body = f'<iframe srcdoc="{page}" width="100%" height="600"></iframe>'
        except LabError as error:
            body = f"<p>{escape(self._not_rendered(error))}</p>"
        return f"<ul>{items}</ul>{body}" if items else body

    def __str__(self) -> str:
        """Returns the first warnings, and the text of `tickpath report`."""
        shown = self.warnings[:MAX_WARNINGS]
        hidden = len(self.warnings) - len(shown)
        more = [f"… and {hidden} more: .warnings has all"] if hidden else []
        try:
            text = self._report().rstrip()
        except LabError as error:
            text = self._not_rendered(error)
        return "\n".join([*shown, *more, text])

    def __repr__(self) -> str:
        first = f"; {len(self.warnings)} warnings, first: {self.warnings[0]}" if self.warnings else ""
        return f"<tickpath.lab.Result {self.raw['workload']}, {self.raw['started_at']}, {len(self.rows)} rows{first}>"


def _flags(options: dict[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is False:
            raise LabError(f"{name}=False: leave out an unwanted flag; a flag that takes on or off has {name}='off'")
        if value is True:
            flags.append(flag)
        elif value is not None:
            values = [value] if isinstance(value, str | os.PathLike) or not hasattr(value, "__iter__") else list(value)
            # One argument, since a value may begin with a dash.
            flags += [f"{flag}={one}" for one in values]
    return flags


def _command() -> str:
    """Finds the program to run."""
    named = os.environ.get("TICKPATH")
    if named:
        found = shutil.which(named)
        if found is None:
            raise LabError(f"TICKPATH names {named}, which is no executable program; correct TICKPATH, or unset it")
        return found
    beside = shutil.which("tickpath", path=os.path.dirname(sys.executable)) if sys.executable else None
    found = beside or shutil.which("tickpath")
    if found is None:
        raise LabError(
            "the command tickpath is neither beside this Python nor on PATH; build it with "
            "cargo build --release -p tickpath-cli, and name it: TICKPATH=target/release/tickpath"
        )
    return found


def _output(*arguments: str) -> str:
    """Runs the command to its end; returns its standard output. LabError: the output is empty."""
    program = _command()
    try:
        ended = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
        )
    except (OSError, ValueError) as error:
        raise _cannot_run(program, error) from None
    if not ended.stdout:
        failure = LabError(_reason(f"tickpath {arguments[0]}", ended.returncode, ended.stderr, None))
        failure.code = ended.returncode
        raise failure
    return ended.stdout


def _cannot_run(program: str, error: Exception) -> LabError:
    return LabError(f"cannot run {program}: {error}; name another program by TICKPATH")


def _call(arguments: list[str]) -> tuple[int, str]:
    """Runs the command to its end; returns its exit code and its standard error output, which is passed on meanwhile.
    """
    program = _command()
    # In a process group of its own, since a second Ctrl-C makes the command end at once.
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        process = subprocess.Popen([program, *arguments], **pipes, text=True, errors="replace", process_group=0)
    except (OSError, ValueError) as error:
        raise _cannot_run(program, error) from None
    assert process.stderr is not None
    with process.stderr as stderr:
        try:
            messages = _pass_on(stderr)
            return process.wait(), messages
        except BaseException:
            _end(process)
            raise


def _pass_on(stderr: IO[str]) -> str:
    """Prints the command's messages, and returns them."""
    lines, is_refused = [], False
    for line in stderr:
        lines.append(line)
        # An error of the argument parser is raised, and so not printed.
        is_refused = is_refused or line.startswith("error: ")
        if sys.stderr is not None and not is_refused:
            sys.stderr.write(line)
    return "".join(lines)


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupts the command and its child processes, so that it cleans up on servers; after 20 seconds they are
    killed.
    """
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
    """Returns the identity of the file at this path, which changes with each bench: a new file is renamed to the path.
    """
    with suppress(OSError):
        found = file.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _reason(command: str, code: int, messages: str, result: Result | None) -> str:
    """Returns the reason for a command's failure: its own sentence, if any, and the warnings of its result, if any."""
    ended = f"{command} was ended by signal {-code}" if code < 0 else f"{command} ended with exit code {code}"
    sentence = _sentence(messages)
    if result is not None:
        return " ".join([f"{sentence or ended}.", *result.warnings])
    return sentence or f"{ended} without a result; run it in a terminal to see why"


def _sentence(messages: str) -> str:
    """Extracts the error sentence that a command ended with, without the command's name; empty if there is none."""
    # The estimate of the duration has the same prefix.
    lines = [line for line in messages.strip().splitlines() if not line.startswith("tickpath: about ")]
    starts = [index for index, line in enumerate(lines) if line.startswith(("tickpath: ", "error: "))]
    if not starts:
        return ""
    parts: list[str] = []
    for line in lines[starts[-1] :]:
        if line.startswith(("Usage:", "For more information")):
            break
        parts.append(line.strip())
    return " ".join(filter(None, parts)).partition(": ")[2]
