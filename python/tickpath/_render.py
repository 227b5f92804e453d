"""Renderings of a result as text, as a page and as curves, from the data and the rows alone.

Each rendering has the warnings for its reader (`warnings`), and the floor of the machine.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import import_module
from typing import Any

from ._rows import PERCENTILES, Row
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

MOST_SHOWN = 200
"""Max rows of a page."""

_NONE = "–"


def needed(module: str) -> Any:
    """Imports an optional module. ImportError: names the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed; install it with: pip install {package}", name=package) from None


def duration(ns: float | None) -> str:
    """Formats a time with its unit, to three digits: `187 ns`, `6.02 µs`."""
    if ns is None:
        return _NONE
    value, units = ns, ["ns", "µs", "ms", "s"]
    while float(f"{value:.3g}") >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{_digits(value)} {units[0]}"


def number(value: float | None) -> str:
    """Formats a number to three digits, without decimals from one hundred on."""
    if value is None:
        return _NONE
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 100 else _digits(value)


def _digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):.15g}"


def titled(name: str, value: Any) -> str:
    """Formats a setting or a figure in words: `size 1024 B`, `wait busy`, `lateness p99 2.1 µs`."""
    for ending, unit in {"_bytes": " B", "_per_s": "/s", "_percent": " %", "_ratio": "×", "_ms": " ms"}.items():
        if name.endswith(ending) and isinstance(value, int | float):
            return f"{_words(name.removesuffix(ending))} {number(value)}{unit}"
    if name.endswith("_ns") and isinstance(value, int | float):
        return f"{_words(name.removesuffix('_ns'))} {duration(value)}"
    if isinstance(value, float):
        return f"{_words(name)} {number(value)}"
    return f"{_words(name)} {value if isinstance(value, str) else json.dumps(value)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def machine(raw: Mapping[str, Any]) -> str:
    """Describes the machine of the measurement, and its floor, below all figures."""
    host = raw["host"]
    profile = f", profile {raw['profile']}" if raw.get("profile") else ""
    return "; ".join(
        [
            f"{host.get('cpu') or 'unknown processor'}, {host.get('cores') or '?'} CPUs, Linux {host.get('kernel') or '?'}",
            *(f"{name} {host[name]}" for name in ("hypervisor", "governor") if host.get(name)),
            f"clock {host.get('clock_source') or '?'}",
            f"one stamp {duration(host.get('clock_cost_ns'))}",
            f"one cache line {duration(host.get('cache_line_transfer_ns'))}",
            f"the host's gaps p99.99 {duration(host.get('spin_gap_p9999_ns'))}",
            f"stolen {number(host.get('steal_percent'))} %",
            f"tickpath {raw.get('tickpath') or '?'}{profile}",
        ]
    )


def warnings(raw: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """Returns the warnings that a reader needs before quoting a figure, as sentences; each reason once."""
    runs = one_a_run(rows)
    told = [*_build(raw), *_invalid(runs)]
    for count, what in _COUNTED.items():
        found = [getattr(run, count) for run in runs if getattr(run, count)]
        if found:
            told.append(f"{number(sum(found))} {what}, in {len(found)} of {len(runs)} runs.")
    negative = [row for row in rows if row.negative]
    if negative:
        worst = max(row.negative_max_ns or 0 for row in negative)
        by = f", by up to {duration(worst)}" if worst else ""
        told.append(f"{number(sum(row.negative or 0 for row in negative))} samples came out negative{by}.")
    return told


_COUNTED = {
    "lost": "messages were lost",
    "duplicated": "messages came twice",
    "reordered": "messages came after a later one",
    "left": "messages still waited when their run ended",
    "errors": "calls failed",
}


def _build(raw: Mapping[str, Any]) -> list[str]:
    profile = raw.get("profile")
    if profile not in ("debug", "dev", "demo"):
        return []
    return [f"Measured with a build that optimises less ({profile}): no figure of it is one of Tickpath's."]


def _invalid(runs: Sequence[Row]) -> list[str]:
    # A search for the highest rate exceeds that rate on purpose.
    named = zip(runs, labels(_no_hops(runs)), strict=True)
    invalid = [(run, label) for run, label in named if not run.valid and "slo" not in run.params]
    if not invalid:
        return []
    verb = "is" if len(invalid) == 1 else "are"
    reasons = (f"Not valid: {label}: {'; '.join(run.notes) or 'no reason is told'}." for run, label in invalid)
    return [f"{len(invalid)} of {len(runs)} runs {verb} not valid: do not quote them.", *reasons]


def one_a_run(rows: Iterable[Row]) -> list[Row]:
    """Returns the first row of each run, in order."""
    firsts: list[Row] = []
    for row in rows:
        # Rows of one run share the objects of the run.
        if not firsts or firsts[-1].params is not row.params:
            firsts.append(row)
    return firsts


_WEAK = ("generator_wait", "rate_per_s", "count", "orders", "cpus", "seed", "interval_ns", "measured_rtt_ns", "encoding")
"""Settings shown only where no other setting distinguishes the rows, in order of preference."""


def labels(rows: Sequence[Row]) -> list[str]:
    """Returns a label for each row: the settings that differ among the rows, or the target if none differs."""
    settings = dict.fromkeys(name for row in rows for name in row.params if name not in ("idle_ns", "threads"))
    ordered = sorted(settings, key=lambda name: _WEAK.index(name) + 1 if name in _WEAK else 0)
    table = [_said(row, ordered) for row in rows]
    # A setting that a run lacks does not differ because of that.
    differ = [column for column, words in enumerate(zip(*table, strict=True)) if len({*words} - {""}) > 1]
    kinds = len({tuple(line[column] for column in differ) for line in table})
    # From the last column on, columns that distinguish no further rows are left out.
    for column in reversed(differ):
        others = [other for other in differ if other != column]
        if len({tuple(line[other] for other in others) for line in table}) == kinds:
            differ = others
    told = (", ".join(filter(None, (line[column] for column in differ))) for line in table)
    return [label or row.target for label, row in zip(told, rows, strict=True)]


def _said(row: Row, settings: Sequence[str]) -> list[str]:
    idle = row.params.get("idle_ns") if row.phase == "idle" else None
    phase = f"idle {duration(idle)}" if isinstance(idle, int | float) else row.phase
    own = [row.hop or "", row.target, row.client, phase, row.layout or "", titled("batch", row.batch) if row.batch else ""]
    told = (titled(name, row.params[name]) if name in row.params else "" for name in settings)
    # The repetition is last: it is needed only where all other columns are equal.
    return [*own, *told, f"#{row.repeat}"]


def text(raw: Mapping[str, Any], rows: Sequence[Row], most: int) -> str:
    """Renders some lines of text: the workload, the machine, and up to `most` warnings."""
    told = warnings(raw, rows)
    more = [f"… and {len(told) - most} more: .warnings has all"] if len(told) > most else []
    runs = len(one_a_run(rows))
    head = f"{raw['workload']}, {raw['started_at']}: {runs} run{'' if runs == 1 else 's'}, {len(rows)} rows"
    return "\n".join([head, machine(raw), *told[:most], *more, *map(str, raw.get("findings") or [])])


_HEADER = (
    *("run", "hop", "samples", "p50", "p90", "p99", "p99.9", "p99.99", "max"),
    *("unstalled p99.9", "the host's share of p99.9", "sent", "lost", "a second", "notes"),
)


def html(raw: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Renders a plain table, with the warnings above it, and notes, ratios and figures below it. All text is escaped.
    """
    notes: dict[str, int] = {}
    shown = rows[:MOST_SHOWN]
    body = "".join(_line(row, label, notes) for row, label in zip(shown, labels(_no_hops(shown)), strict=True))
    more = [f"{len(rows) - len(shown)} more rows: .rows and .to_pandas() have all."] if len(rows) > len(shown) else []
    header = "".join(f"<th>{escape(name)}</th>" for name in _HEADER)
    return (
        f"<div><p><b>{escape(raw['workload'])}</b>, {escape(raw['started_at'])}: <code>{escape(raw['command'])}</code></p>"
        f"<p>{escape(machine(raw))}</p>"
        + _list("ul", (f"<b>{escape(told)}</b>" for told in warnings(raw, rows)))
        + _list("ul", map(escape, map(str, raw.get("findings") or [])))
        + f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        + _list("ul", map(escape, more))
        + _list("ol", map(escape, notes))
        + _list("ul", map(escape, [*_ratios(raw), *_figures(shown)]))
        + "</div>"
    )


def _list(kind: str, items: Iterable[str]) -> str:
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f"<{kind}>{lines}</{kind}>" if lines else ""


def _no_hops(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows without their hops, which have a column of their own."""
    return [replace(row, hop=None) for row in rows]


def _line(row: Row, label: str, notes: dict[str, int]) -> str:
    marks = ", ".join(str(notes.setdefault(note, len(notes) + 1)) for note in row.notes)
    share = row.host_stall_share_p999
    cells = [
        label,
        row.hop or "",
        number(row.count),
        *(duration(getattr(row, key)) for key in PERCENTILES if key != "p75_ns"),
        duration(row.max_ns),
        duration((row.unstalled or {}).get("p999_ns")),
        _NONE if share is None else f"{100 * share:.0f} %",
        number(row.sent),
        number(row.lost),
        number(row.throughput_per_s),
        f"not valid {marks}" if not row.valid else marks,
    ]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _ratios(raw: Mapping[str, Any]) -> list[str]:
    return [_ratio(comparison) for comparison in raw.get("comparisons") or []]


def _ratio(of: Mapping[str, Any]) -> str:
    said = f"{_words(str(of.get('name')))}: {number(of.get('ratio'))}× in {of.get('figure')}"
    if of.get("ratio") is not None:
        between = f"{number(of['low'])}× to {number(of['high'])}×" if of.get("low") is not None else "no interval"
        level = f" at {of['level_percent']:g} %" if of.get("level_percent") else ", too few pairs for a level"
        said += f" ({between}{level})"
    return f"{said}; {of['note']}" if of.get("note") else said


def _figures(rows: Sequence[Row]) -> list[str]:
    runs = one_a_run(rows)
    named = zip(runs, labels(_no_hops(runs)), strict=True)
    told = ((label, [titled(*figure) for figure in run.figures.items()]) for run, label in named if run.figures)
    return [f"{label}: {', '.join(figures)}" for label, figures in told]


def usual(rows: Sequence[Row], hop: str | None) -> list[Row]:
    """Returns the rows of a hop, or of the leading hop: those of steady runs, if any has a percentile.

    All of a user's own hops are equal: none of them leads.
    """
    known = [row for row in rows if row.hop is not None and row.p50_ns is not None]
    hops = dict.fromkeys(row.hop for row in known if row.hop is not None)
    wanted = [hop] if hop else [name for name in LEADING_HOPS if name in hops][:1]
    wanted = wanted or [name for name in hops if name.startswith("own.")] or list(hops)[:1]
    found = [row for row in known if row.hop in wanted]
    return [row for row in found if row.phase == "steady"] or found


_MARKS = {2: "50%", 10: "90%", 100: "99%", 1_000: "99.9%", 10_000: "99.99%", 100_000: "99.999%"}


def plot(raw: Mapping[str, Any], rows: Sequence[Row], drawn: Sequence[Row], ax: Any) -> Any:
    """Draws percentile curves of some of the rows; returns matplotlib's axes."""
    curves = [(label, row, row.curve()) for row, label in zip(drawn, labels(drawn), strict=True)]
    curves = [one for one in curves if one[2]]
    if not curves:
        raise LabError("there is no percentile to draw: it takes 20 samples of a hop; measure longer, or name another hop")
    columns = 1 if any(len(label) > 50 for label, _, _ in curves) else 2
    if ax is None:
        height = 5 + 0.2 * len(curves) / columns
        _, ax = needed("matplotlib.pyplot").subplots(figsize=(9, height), layout="constrained")
    colours = needed("matplotlib").colormaps["turbo"]
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
    ticker = needed("matplotlib.ticker")
    ax.set_xscale("log")
    ax.set_yscale("log")
    farthest = max(points[-1][0] for points in curves)
    marks = [odds for odds in _MARKS if odds <= 2 or odds / 10 < farthest]
    ax.set_xticks(marks, [_MARKS[odds] for odds in marks])
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    times = [max(ns, 1) for points in curves for _, ns in points]
    within = (1, 2, 5) if max(times) < 1000 * min(times) else (1,)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=within))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _place: duration(ns)))
    ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("percentile (%), logarithmic towards 100 %")
    ax.set_ylabel(f"{', '.join(hops)} (ns, µs, ms), logarithmic")
    ax.grid(alpha=0.3)


def _title(raw: Mapping[str, Any], rows: Sequence[Row], shown: str) -> str:
    """Returns a title with the workload, the machine, its floor and the warnings, since a picture is shown without its
    page.
    """
    host = raw["host"]
    floor = f"one cache line {duration(host.get('cache_line_transfer_ns'))}"
    gaps = f"the host's gaps p99.99 {duration(host.get('spin_gap_p9999_ns'))}"
    where = f"{host.get('cpu')}, {host.get('cores')} CPUs, Linux {host.get('kernel')}"
    told = [told for told in warnings(raw, rows) if not told.startswith("Not valid: ")]
    return "\n".join([f"{raw['workload']}, {shown}, {raw['started_at']}, on {where}", f"{floor}, {gaps}", *told])
