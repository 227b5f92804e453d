"""A result file as rows: one a run and hop, as `docs/results.md` explains the names.

Times are nanoseconds. A percentile is None where too few samples carry it. Nothing here reads or writes files.
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
"""1/(1−q) where curves end: 99.999 %."""

Scalar: TypeAlias = str | int | float | bool | None
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Row:
    """One hop of one run, or a run that has no hop (`hop` is None then, and so is what belongs to it).

    What belongs to the hop stands from `count` to `hdr`; all else is the run's, and is the same in its other rows.
    """

    workload: str
    """What was measured: pubsub, queue, path, and so on."""
    target: str
    """On what, as a URL."""
    client: str
    """The client that was driven: 'rust', 'redis-py', …"""
    phase: str
    """'cold', 'idle' or 'steady': three results, never one."""
    repeat: int
    """Which repetition, from 1."""
    layout: str | None
    """How the parts were put on threads: 'inline', 'split' or 'mutex'; None where there is no such choice."""
    batch: str | int | None
    """Messages or commands sent together, or an order group's name."""
    valid: bool
    """Whether the run kept the rules of honest measuring; where not, `notes` says why, and nobody should quote it."""
    notes: tuple[str, ...]
    """Sentences for the reader: why the run is not valid, what is special about it."""
    finding: str | None
    """What the run shows, where that is more than its leading hop."""
    hop: str | None
    """From where to where; `docs/results.md` has the names."""
    count: int | None
    """Samples, negative ones not among them."""
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
    """99.9 % are no longer than this."""
    p9999_ns: int | None
    """99.99 % are no longer than this."""
    max_ns: int | None
    """The largest sample."""
    worst_ns: tuple[int, ...]
    """The three largest, the largest last."""
    negative: int | None
    """Samples that came out negative: in no percentile."""
    negative_max_ns: int | None
    """By how much the worst of these did."""
    host_stall_share_p999: float | None
    """Of the samples at or beyond p99.9, the share that the host's gaps explain: 0 to 1."""
    unstalled: Mapping[str, int | None] | None
    """`count`, the percentiles and `max_ns` without what the host's gaps explain; None where that cannot be told."""
    hdr: str | None = field(repr=False)
    """The whole distribution: an HdrHistogram in the V2 form, in base64."""
    sent: int
    """Messages that were handed to the transport."""
    received: int
    """Messages that the receiver has taken."""
    lost: int
    """Messages that were sent and never received."""
    duplicated: int
    """Messages that were received more than once."""
    reordered: int
    """Messages that were received after a later one."""
    left: int
    """Messages that still waited when the run ended."""
    errors: int
    """Calls that failed."""
    throughput_per_s: float | None
    """Messages received a second."""
    elapsed_ns: int | None
    """From the first send to the last receipt."""
    memory: Mapping[str, int]
    """Resident memory of the system under test: `before_bytes`, `after_bytes`, `peak_bytes`."""
    floor: Mapping[str, float]
    """The machine just before and just after the run."""
    figures: Mapping[str, float]
    """What is neither a hop nor a count, by name."""
    params: Mapping[str, Any]
    """The settings of the run, by name."""
    software: Mapping[str, Any]
    """What answered, and what asked, by name."""

    def curve(self) -> list[tuple[float, int]]:
        """The distribution as (1/(1−q), nanoseconds), from the median to where ten samples lie beyond.

        It has all steps of the histogram where the file keeps it, else the percentiles. LabError: a damaged histogram.
        """
        if self.hdr is None or not self.count:
            known = ((odds, getattr(self, key)) for key, odds in PERCENTILES.items())
            return [(odds, ns) for odds, ns in known if ns is not None]
        largest = self.max_ns if self.max_ns is not None else 1 << 63
        values = _histogram(self.hdr)
        if sum(samples for _, samples in values) != self.count:
            raise LabError(f"the histogram of {self.hop} is of another distribution; the file was changed, so measure again")
        return [(odds, min(ns, largest)) for odds, ns in _steps(values, self.count)]


def rows_of(raw: Any, name: str) -> list[Row]:
    """All rows of a result file's data, in its order. LabError, which begins with `name`: it is none, or of another version."""
    if not isinstance(raw, dict) or not isinstance(raw.get("schema"), str):
        raise LabError(f"{name} is JSON without a 'schema' text; give a file that a bench wrote with --json")
    if raw["schema"] != SCHEMA:
        found = raw["schema"]
        raise LabError(f"{name} says schema {found}; this tickpath reads {SCHEMA}; use the tickpath that wrote it")
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
        allowed = "docs/result.schema.json says what is allowed"
        raise LabError(f"{name} breaks {SCHEMA}: {place}: {wrong}; {allowed}") from None
    return rows


def columns(raw: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[Scalar]]:
    """The rows as columns of equal length, each of one type or None; what is nested has names as `params.size_bytes`.

    Every row says what it was measured on (`host.cpu`, the floor, `profile`) and whether that is valid, so that frames of
    several results can be put together. Left out are `worst_ns` and the histograms.
    """
    head = {key: raw.get(key) for key in ("started_at", "tickpath", "commit", "profile")}
    host = {f"host.{key}": value for key, value in raw["host"].items()}
    lines = [{**_flat(row), **head, **host} for row in rows]
    # The plain ones always stand; of the nested ones those that some row has.
    names = dict.fromkeys([*_plain(), *(name for line in lines for name in line)])
    return {name: _column([line.get(name) for line in lines]) for name in names}


_NESTED = ("unstalled", "memory", "floor", "figures", "params", "software")
_LEFT_OUT = ("worst_ns", "hdr")

INTEGERS = ("repeat", "count", *PERCENTILES, "max_ns", "negative", "negative_max_ns", *COUNTS, "elapsed_ns")
"""Columns of whole numbers that always stand."""

FLOATS = ("mean_ns", "host_stall_share_p999", "throughput_per_s")
"""Columns of other numbers that always stand."""


def _plain() -> list[str]:
    return [name for name in Row.__dataclass_fields__ if name not in (*_NESTED, *_LEFT_OUT)]


def _flat(row: Row) -> dict[str, Any]:
    flat = {name: getattr(row, name) for name in _plain()}
    flat["notes"] = "; ".join(row.notes)
    for name in _NESTED:
        flat |= {f"{name}.{key}": value for key, value in (getattr(row, name) or {}).items()}
    return flat


def _column(values: list[Any]) -> list[Scalar]:
    """Of one type: text where one is text, or where they are lists; else fractions where one is."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and kinds <= {str, int, float, bool}:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]


class _Wrong(Exception):
    """What is wrong in a run."""


def _get(of: Any, key: str, kind: type[Kind]) -> Kind:
    value = _maybe(of, key, kind)
    if value is None:
        raise _Wrong(f"there is no '{key}'")
    return value


def _maybe(of: Any, key: str, *kinds: type[Kind]) -> Kind | None:
    """None where there is no such key, or null."""
    if not isinstance(of, dict):
        raise _Wrong(f"{json.dumps(of)[:40]} stands where names and values should")
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
"""How an HdrHistogram in the V2 form begins."""

_HEADER = struct.Struct(">IIIIQQd")
"""Cookie, bytes behind the header, offset, digits, least and greatest value, ratio."""


def _histogram(text: str) -> list[tuple[int, int]]:
    """Each value of an HdrHistogram in base64 and how many samples it has, the least first."""
    try:
        data = base64.b64decode(text, validate=True)
        cookie, length, offset, digits, least, _most, _ratio = _HEADER.unpack_from(data)
    except (binascii.Error, struct.error, ValueError):
        raise LabError("a histogram of the result is none; the file was changed, so measure again") from None
    if cookie != _V2 or offset or len(data) != _HEADER.size + length or not 0 <= digits <= 5:
        raise LabError("a histogram of the result has another form; measure again")
    half = max((2 * 10**digits - 1).bit_length(), 1) - 1
    unit = max(least, 1).bit_length() - 1
    values: list[tuple[int, int]] = []
    index = 0
    for number in _numbers(data[_HEADER.size :]):
        if number > 0:
            values.append((_greatest(index, half, unit), number))
        # A negative number stands for so many empty places.
        index += max(1, -number)
    return values


def _greatest(index: int, half: int, unit: int) -> int:
    """The greatest value that counts at this place; `half` and `unit` are powers of two."""
    bucket = (index >> half) - 1
    place = (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, place = 0, place - (1 << half)
    return ((place + 1) << (bucket + unit)) - 1


def _numbers(data: bytes) -> Iterator[int]:
    """Signed numbers of seven bits a byte, the least first; a ninth byte has eight."""
    value = shift = 0
    for byte in data:
        last = byte < 0x80 or shift == 56
        value |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if last:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0


def _steps(values: Iterable[tuple[int, int]], count: int) -> Iterator[tuple[float, int]]:
    """From the median to where ten of all samples lie beyond: where the curve rises, before it and behind."""
    beyond = count
    begun = 2.0
    for ns, samples in values:
        beyond -= samples
        # Up to here this value is the percentile.
        until = min(count / max(beyond, 10), FARTHEST)
        if until >= begun:
            yield begun, ns
            if until > begun:
                yield until, ns
            begun = until
        if until >= min(count / 10, FARTHEST):
            return
