"""A result file as rows, one per run and hop; `docs/results.md` explains the names.

Times are nanoseconds. A percentile is None where the samples are too few for it. Nothing here reads or writes files.
"""

import base64
import binascii
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from .errors import LabError

SCHEMA = "tickpath.result/1"

PERCENTILES = {"p50_ns": 2, "p75_ns": 4, "p90_ns": 10, "p99_ns": 100, "p999_ns": 1_000, "p9999_ns": 10_000}
"""Each percentile q of a hop, and 1/(1−q)."""

COUNTS = ("sent", "received", "lost", "duplicated", "reordered", "left", "errors")

FARTHEST = 100_000
"""1/(1−q) at the end of curves: 99.999 %."""

Scalar: TypeAlias = str | int | float | bool | None
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Row:
    """One hop of one run, or a run without a hop (then `hop` and the hop's fields are None).

    The hop's fields are those from `count` to `hdr`; all others belong to the run, and are the same in its other rows.
    """

    workload: str
    """Workload measured: pubsub, queue, path, and so on."""
    target: str
    """System under test, as a URL."""
    client: str
    """Client library used: 'rust', 'redis-py', …"""
    phase: str
    """'cold', 'idle' or 'steady': separate results, never combined."""
    repeat: int
    """Number of the repetition, from 1."""
    layout: str | None
    """Layout of the parts on threads: 'inline', 'split' or 'mutex'; None where there is no such choice."""
    batch: str | int | None
    """Messages or commands sent together, or an order group's name."""
    valid: bool
    """True if the run kept the rules of honest measuring; otherwise `notes` has the reason, and the run must not be
    quoted.
    """
    notes: tuple[str, ...]
    """Sentences for the reader: reasons why the run is not valid, and its peculiarities."""
    finding: str | None
    """Conclusion from the run, where that is more than its leading hop."""
    hop: str | None
    """Name of the hop, as listed in `docs/results.md`."""
    count: int | None
    """Number of samples, without the negative ones."""
    mean_ns: float | None
    """The mean."""
    p50_ns: int | None
    """The median."""
    p75_ns: int | None
    """The 75th percentile."""
    p90_ns: int | None
    """The 90th percentile."""
    p99_ns: int | None
    """The 99th percentile."""
    p999_ns: int | None
    """The 99.9th percentile."""
    p9999_ns: int | None
    """The 99.99th percentile."""
    max_ns: int | None
    """The largest sample."""
    worst_ns: tuple[int, ...]
    """The three largest samples, the largest last."""
    negative: int | None
    """Number of negative samples, which are in no percentile."""
    negative_max_ns: int | None
    """Magnitude of the most negative sample."""
    host_stall_share_p999: float | None
    """Share of the samples at or beyond p99.9 that the host's gaps explain, 0 to 1."""
    unstalled: Mapping[str, int | None] | None
    """`count`, the percentiles and `max_ns` without the samples that the host's gaps explain; None where that is
    unknown.
    """
    hdr: str | None = field(repr=False)
    """The whole distribution: an HdrHistogram in V2 encoding, in base64."""
    sent: int
    """Messages passed to the transport."""
    received: int
    """Messages received."""
    lost: int
    """Messages that were sent and never received."""
    duplicated: int
    """Messages that were received more than once."""
    reordered: int
    """Messages that were received after a later one."""
    left: int
    """Messages still waiting when the run ended."""
    errors: int
    """Calls that failed."""
    throughput_per_s: float | None
    """Messages received per second."""
    elapsed_ns: int | None
    """Time from the first send to the last receipt."""
    memory: Mapping[str, int]
    """Resident memory of the system under test: `before_bytes`, `after_bytes`, `peak_bytes`."""
    floor: Mapping[str, float]
    """Floor of the machine, measured just before and just after the run."""
    figures: Mapping[str, float]
    """Figures that are neither hops nor counts, by name."""
    params: Mapping[str, Any]
    """The settings of the run, by name."""
    software: Mapping[str, Any]
    """Server and client software, by name."""

    def curve(self) -> list[tuple[float, int]]:
        """Returns the distribution as (1/(1−q), nanoseconds), from the median up to the last ten samples.

        All steps of the histogram if the file has one, else the percentiles. LabError: a damaged histogram.
        """
        if self.hdr is None or not self.count:
            known = ((odds, getattr(self, key)) for key, odds in PERCENTILES.items())
            return [(odds, ns) for odds, ns in known if ns is not None]
        largest = self.max_ns if self.max_ns is not None else 1 << 63
        values = _histogram(self.hdr)
        if sum(samples for _, samples in values) != self.count:
            raise LabError(f"the histogram of {self.hop} does not have its {self.count} samples; the file was changed, so measure again")
        return [(odds, min(ns, largest)) for odds, ns in _steps(values, self.count)]


def rows_of(raw: Any, name: str) -> list[Row]:
    """Returns all rows of a result file's data, in file order. LabError, beginning with `name`: no result, or another
    version.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("schema"), str):
        raise LabError(f"{name} is JSON without a 'schema' text; give a file that a bench wrote with --json")
    if raw["schema"] != SCHEMA:
        found = raw["schema"]
        raise LabError(f"{name} has schema {found}; this tickpath reads {SCHEMA}; use the tickpath that wrote it")
    rows: list[Row] = []
    place = "the file"
    try:
        for key in ("workload", "command", "started_at"):
            _get(raw, key, str)
        for key in ("comparisons", "findings"):
            _maybe(raw, key, list)
        for key in ("clock_cost_ns", "cache_line_transfer_ns", "spin_gap_p9999_ns", "steal_percent"):
            _number(_get(raw, "host", dict), key)
        for number, run in enumerate(_get(raw, "runs", list), 1):
            place = f"run {number}"
            rows += _rows_of_run(raw["workload"], run)
    except _Wrong as wrong:
        allowed = "docs/result.schema.json has the allowed shape"
        raise LabError(f"{name} breaks {SCHEMA}: {place}: {wrong}; {allowed}") from None
    return rows


def columns(raw: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[Scalar]]:
    """Returns the rows as columns of equal length, each of one type or None; nested fields have names like
    `params.size_bytes`.

    Every row has its machine (`host.cpu`, the floor, `profile`) and its validity, so that frames of several results can
    be concatenated. `worst_ns` and the histograms are left out.
    """
    head = {key: raw.get(key) for key in ("started_at", "tickpath", "commit", "profile")}
    host = {f"host.{key}": value for key, value in raw["host"].items()}
    lines = [{**_flat(row), **head, **host} for row in rows]
    # Plain columns are always present; nested ones if a row has them.
    names = dict.fromkeys([*_plain(), *(name for line in lines for name in line)])
    return {name: _column([line.get(name) for line in lines]) for name in names}


_NESTED = ("unstalled", "memory", "floor", "figures", "params", "software")
_LEFT_OUT = ("worst_ns", "hdr")

INTEGERS = ("repeat", "count", *PERCENTILES, "max_ns", "negative", "negative_max_ns", *COUNTS, "elapsed_ns")
"""Columns of whole numbers that are always present."""

FLOATS = ("mean_ns", "host_stall_share_p999", "throughput_per_s")
"""Columns of other numbers that are always present."""


def _plain() -> list[str]:
    return [name for name in Row.__dataclass_fields__ if name not in (*_NESTED, *_LEFT_OUT)]


def _flat(row: Row) -> dict[str, Any]:
    flat = {name: getattr(row, name) for name in _plain()}
    flat["notes"] = "; ".join(row.notes)
    for name in _NESTED:
        flat |= {f"{name}.{key}": value for key, value in (getattr(row, name) or {}).items()}
    return flat


def _column(values: list[Any]) -> list[Scalar]:
    """Converts the values to one type: to text if a value is text or a list, else to floats if a value is a float."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and kinds <= {str, int, float, bool}:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]


class _Wrong(Exception):
    """A fault in the data of a run."""


def _get(of: Any, key: str, kind: type[Kind]) -> Kind:
    value = _maybe(of, key, kind)
    if value is None:
        raise _Wrong(f"there is no '{key}'")
    return value


def _maybe(of: Any, key: str, *kinds: type[Kind]) -> Kind | None:
    """Returns the value of a key; None if the key is missing or null."""
    if not isinstance(of, dict):
        raise _Wrong(f"{json.dumps(of)[:40]} is not an object")
    value = of.get(key)
    if value is None or isinstance(value, kinds):
        return value
    raise _Wrong(f"'{key}' is {json.dumps(value)[:40]}")


def _number(of: Any, key: str) -> float | None:
    value = _maybe(of, key, int, float)
    return None if value is None else float(value)


def _rows_of_run(workload: str, run: Any) -> Iterator[Row]:
    counts = _get(run, "counts", dict)
    same: dict[str, Any] = {
        "workload": workload,
        **{key: _get(run, key, str) for key in ("target", "client", "phase")},
        "repeat": _get(run, "repeat", int),
        "layout": _maybe(run, "layout", str),
        "batch": _maybe(run, "batch", str, int),
        "valid": _get(run, "valid", bool),
        "notes": tuple(str(note) for note in _maybe(run, "notes", list) or []),
        "finding": _maybe(run, "finding", str),
        **{key: _get(counts, key, int) for key in COUNTS},
        "throughput_per_s": _number(run, "throughput_per_s"),
        "elapsed_ns": _maybe(run, "elapsed_ns", int),
        **{key: _maybe(run, key, dict) or {} for key in ("memory", "floor", "figures", "params", "software")},
    }
    hops: dict[str, Any] = _maybe(run, "hops", dict) or {}
    for name, hop in hops.items():
        yield Row(**same, hop=name, **_hop(hop))
    if not hops:
        yield Row(**same, hop=None, **_hop({}))


def _hop(hop: Any) -> dict[str, Any]:
    return {
        "mean_ns": _number(hop, "mean_ns"),
        **{key: _maybe(hop, key, int) for key in ("count", *PERCENTILES, "max_ns", "negative", "negative_max_ns")},
        "worst_ns": tuple(_maybe(hop, "worst_ns", list) or []),
        "host_stall_share_p999": _number(hop, "host_stall_share_p999"),
        "unstalled": _maybe(hop, "unstalled", dict),
        "hdr": _maybe(hop, "hdr", str),
    }


_V2 = 0x1C849313
"""Magic number of an HdrHistogram in V2 encoding."""

_HEADER = struct.Struct(">IIIIQQd")
"""Cookie, bytes after the header, offset, digits, least and greatest value, ratio."""


def _histogram(text: str) -> list[tuple[int, int]]:
    """Decodes the values of an HdrHistogram in base64, each with its number of samples, the least first."""
    try:
        data = base64.b64decode(text, validate=True)
        cookie, length, offset, digits, least, _most, _ratio = _HEADER.unpack_from(data)
    except (binascii.Error, struct.error, ValueError):
        raise LabError("a histogram of the result is damaged; the file was changed, so measure again") from None
    if cookie != _V2 or offset or len(data) != _HEADER.size + length or not 0 <= digits <= 5:
        raise LabError("a histogram of the result has an unknown encoding; measure again")
    half = max((2 * 10**digits - 1).bit_length(), 1) - 1
    unit = max(least, 1).bit_length() - 1
    values: list[tuple[int, int]] = []
    index = 0
    for number in _numbers(data[_HEADER.size :]):
        if number > 0:
            values.append((_greatest(index, half, unit), number))
        # A negative number encodes a run of empty places.
        index += max(1, -number)
    return values


def _greatest(index: int, half: int, unit: int) -> int:
    """Returns the greatest value counted at this place; `half` and `unit` are exponents of two."""
    bucket = (index >> half) - 1
    place = (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, place = 0, place - (1 << half)
    return ((place + 1) << (bucket + unit)) - 1


def _numbers(data: bytes) -> Iterator[int]:
    """Decodes zigzag numbers of seven bits per byte, the least significant first; a ninth byte has eight bits."""
    value = shift = 0
    for byte in data:
        last = byte < 0x80 or shift == 56
        value |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if last:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0


def _steps(values: Iterable[tuple[int, int]], count: int) -> Iterator[tuple[float, int]]:
    """Yields the curve from the median up to the last ten samples: two points per step, at its ends."""
    beyond = count
    begun = 2.0
    for ns, samples in values:
        beyond -= samples
        # This value is the percentile up to here.
        until = min(count / max(beyond, 10), FARTHEST)
        if until >= begun:
            yield begun, ns
            if until > begun:
                yield until, ns
            begun = until
        if until >= min(count / 10, FARTHEST):
            return
