"""Warnings about a result: what a reader must know before quoting its figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ._labels import labels
from ._rows import Row

_SLOW_PROFILES = ("debug", "dev", "demo")
"""Cargo profiles that optimise less than the published figures' profile."""

_COUNTED = {
    "lost": "messages were lost",
    "duplicated": "messages arrived twice",
    "reordered": "messages arrived out of order",
    "left": "messages were left when their run ended",
    "errors": "calls failed",
}
"""Counts of trouble, each with its sentence."""


def warnings_of(raw: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """Returns the warnings about a result as sentences, each reason once."""
    return [*_slow_build(raw), *_invalid(rows), *_counted(rows), *_negative(rows)]


def _slow_build(raw: Mapping[str, Any]) -> Iterator[str]:
    profile = raw.get("profile")
    if profile in _SLOW_PROFILES:
        yield f"Measured with a less optimised build ({profile}): do not quote its figures as Tickpath's."


def _invalid(rows: Iterable[Row]) -> list[str]:
    runs = [replace(row, hop=None) for row in _one_per_run(rows)]
    # A search for the highest rate exceeds that rate on purpose.
    named = zip(runs, labels(runs), strict=True)
    invalid = [(run, label) for run, label in named if not run.valid and "slo" not in run.params]
    if not invalid:
        return []
    verb = "is" if len(invalid) == 1 else "are"
    reasons = (f"Not valid: {label}: {'; '.join(run.notes) or 'the run has no notes'}." for run, label in invalid)
    return [f"{len(invalid)} of {len(runs)} runs {verb} not valid: do not quote them.", *reasons]


def _counted(rows: Iterable[Row]) -> Iterator[str]:
    runs = _one_per_run(rows)
    for count, sentence in _COUNTED.items():
        found = [getattr(run, count) for run in runs if getattr(run, count)]
        if found:
            yield f"{sum(found):,} {sentence}, in {len(found)} of {len(runs)} runs."


def _negative(rows: Iterable[Row]) -> Iterator[str]:
    negative = [row for row in rows if row.negative]
    if negative:
        worst = max(row.negative_max_ns or 0 for row in negative)
        by = f", by up to {worst:,} ns" if worst else ""
        yield f"{sum(row.negative or 0 for row in negative):,} samples are negative{by}."


def _one_per_run(rows: Iterable[Row]) -> list[Row]:
    """Returns the first row of each run, in order."""
    firsts: list[Row] = []
    for row in rows:
        # Rows of one run share its objects.
        if not firsts or firsts[-1].params is not row.params:
            firsts.append(row)
    return firsts
