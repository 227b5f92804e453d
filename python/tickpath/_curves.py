"""Percentile curves of rows, drawn by matplotlib."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._labels import labels
from ._packages import optional
from ._rows import Row
from ._warnings import warnings_of
from .errors import LabError

LEADING_HOPS = (
    "tick_to_order",
    "order_round_trip",
    "t0_t2",
    "one_way",
    "round_trip",
    "in_queue",
    "publish",
    "push",
    "spin_gap",
)
"""The leading hops, the most important first."""

_MARKS = {2: "50%", 10: "90%", 100: "99%", 1_000: "99.9%", 10_000: "99.99%", 100_000: "99.999%"}
"""Labels of the horizontal axis, by 1/(1−q)."""

_MAX_SHORT_LABEL = 50
"""Max characters of the labels in a legend of two columns."""


def default_rows(rows: Sequence[Row], hop: str | None) -> list[Row]:
    """Returns the rows of a hop, or of the leading hop: those of steady runs, if any has a percentile.

    None of a user's own hops leads: all of them are returned.
    """
    known = [row for row in rows if row.hop is not None and row.p50_ns is not None]
    hops = dict.fromkeys(row.hop for row in known if row.hop is not None)
    wanted = [hop] if hop else [name for name in LEADING_HOPS if name in hops][:1]
    wanted = wanted or [name for name in hops if name.startswith("own.")] or list(hops)[:1]
    found = [row for row in known if row.hop in wanted]
    return [row for row in found if row.phase == "steady"] or found


def plot(raw: Mapping[str, Any], rows: Sequence[Row], drawn: Sequence[Row], ax: Any) -> Any:
    """Draws percentile curves of some of the rows; returns matplotlib's axes."""
    curves = [(label, row, row.curve()) for row, label in zip(drawn, labels(drawn), strict=True)]
    curves = [curve for curve in curves if curve[2]]
    if not curves:
        raise LabError("there is no percentile to draw: a hop needs 20 samples; measure longer, or name another hop")
    columns = 1 if any(len(label) > _MAX_SHORT_LABEL for label, _, _ in curves) else 2
    if ax is None:
        height = 5 + 0.2 * len(curves) / columns
        _, ax = optional("matplotlib.pyplot").subplots(figsize=(9, height), layout="constrained")
    colours = optional("matplotlib").colormaps["turbo"]
    for place, (label, row, points) in enumerate(curves):
        along, up = zip(*((odds, max(ns, 1)) for odds, ns in points), strict=True)
        look: dict[str, Any] = {"linestyle": "-" if row.valid else ":", "marker": "o" if row.hdr is None else None}
        named = label if row.valid else f"{label} (not valid)"
        ax.plot(along, up, **look, markersize=3, color=colours((place + 0.5) / len(curves)), label=named)
    _axes(ax, [points for _, _, points in curves], sorted({row.hop or "" for _, row, _ in curves}))
    phases = dict.fromkeys(row.phase for _, row, _ in curves)
    shown = f"{', '.join(phases)}: {len(curves)} of {len(rows)} rows"
    ax.set_title(_title(raw, rows, shown), fontsize="small", loc="left", wrap=True)
    # Below the frame, since the curves fill it.
    ax.legend(fontsize="x-small", ncols=columns, loc="upper left", bbox_to_anchor=(0, -0.12), borderaxespad=0, frameon=False)
    return ax


def _axes(ax: Any, curves: Sequence[Sequence[tuple[float, int]]], hops: Sequence[str]) -> None:
    ticker = optional("matplotlib.ticker")
    ax.set_xscale("log")
    ax.set_yscale("log")
    farthest = max(points[-1][0] for points in curves)
    marks = [odds for odds in _MARKS if odds <= 2 or odds / 10 < farthest]
    ax.set_xticks(marks, [_MARKS[odds] for odds in marks])
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    times = [max(ns, 1) for points in curves for _, ns in points]
    within = (1, 2, 5) if max(times) < 1000 * min(times) else (1,)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=within))
    seconds = ticker.EngFormatter(unit="s")
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _place: seconds(ns / 1e9)))
    ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("percentile (%), logarithmic towards 100 %")
    ax.set_ylabel(f"{', '.join(hops)} (ns, µs, ms), logarithmic")
    ax.grid(alpha=0.3)


def _title(raw: Mapping[str, Any], rows: Sequence[Row], shown: str) -> str:
    """Returns a title with the workload, the machine, its floor and the warnings, since a picture is shown without its
    page.
    """
    host = raw["host"]
    where = f"{host.get('cpu')}, {host.get('cores')} CPUs, Linux {host.get('kernel')}"
    floor = f"one cache line {_ns(host.get('cache_line_transfer_ns'))}, gaps p99.99 {_ns(host.get('spin_gap_p9999_ns'))}"
    # The reasons for invalid runs would fill the picture.
    shown_warnings = [warning for warning in warnings_of(raw, rows) if not warning.startswith("Not valid: ")]
    return "\n".join([f"{raw['workload']}, {shown}, {raw['started_at']}, on {where}", floor, *shown_warnings])


def _ns(time: float | None) -> str:
    return "–" if time is None else f"{time:,.1f} ns"
