"""A strategy: ticks in, orders out, the same over a live topic and a recording.

    class Mine(tp.Strategy):
        def on_tick(self, tick, orders):
            if isinstance(tick, tp.TopOfBook) and tick.ask <= self.limit:
                orders.submit(tick.symbol, tp.BUY, tick.ask, tp.units(1), time_in_force="ioc", cause=tick)

    tp.run(Mine(), ticks="shm://", topic="oms.ticks", orders="unix:///desk/oms.sock", user="trader", password=…, account=1)

        topic ──> on_tick ──submit, cancel, replace──> orders ──> OMS ──> venue, a simulated exchange or another
                  on_report, on_detail, on_notice <───────┘

A recording is another URL of the ticks (file:///FOLDER, from its oldest tick, as fast as the strategy takes them), a
simulated exchange another OMS. One thread runs everything, in a loop of native code: a slow `on_tick` delays the next
tick, and the session's heartbeat.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from enum import Enum
from os import PathLike, fspath
from os.path import exists
from typing import Literal

from . import _native

__all__ = ["Stop", "Strategy", "instruments", "run"]


class Stop(Enum):
    """The value that a strategy returns to end its run."""

    STOP = "stop"
    """The only value, also named `tickpath.STOP`."""


Tick = _native.TopOfBook | _native.Trade

Other = _native.BookLevel | _native.FeedStatus | _native.Message | _native.Foreign | _native.Gap


class Strategy:
    """Base class of strategies, whose methods handle ticks and reports. Each method may return STOP, which ends the
    run.
    """

    def on_tick(self, tick: Tick, orders: _native.Orders) -> Stop | None:
        """Handles a TopOfBook or a Trade."""
        raise NotImplementedError(f"{type(self).__name__} has no on_tick(tick, orders)")

    def on_report(self, report: _native.Report, orders: _native.Orders) -> Stop | None:
        """Handles a report on an order. `report.denial` is the reason of a denial by the OMS; a venue's rejection has
        none.
        """
        return None

    def on_detail(self, detail: _native.ReportDetail, orders: _native.Orders) -> Stop | None:
        """Handles the detail of the report before it: fee, maker or taker, the exchange's times and text."""
        return None

    def on_other(self, event: Other, orders: _native.Orders) -> Stop | None:
        """Handles any other event of the topic: for an OrderBook, a BookLevel, a FeedStatus and a Gap. By default a Gap
        is logged.
        """
        if isinstance(event, _native.Gap):
            _warn(f"ticks were missed: {'an unknown number' if event.missed is None else event.missed}")
        return None

    def on_notice(
        self, notice: _native.Gap | _native.NotTaken | _native.InDoubt | _native.Notice, orders: _native.Orders
    ) -> Stop | None:
        """Handles an event of the session: a gap in its reports, a request that was not accepted or is in doubt, a lost
        connection, or an order that has waited for its venue for more than a second (`waiting`). By default it is
        logged.
        """
        if not (isinstance(notice, _native.Notice) and notice.what == "connected"):
            _warn(f"the session with the OMS: {notice}")
        return None


def run(
    strategy: Strategy,
    *,
    ticks: str,
    orders: _native.Orders | str,
    topic: str | list[str] = "ticks",
    start: str | int | Mapping[str, str | int | None] | None = None,
    wait: Literal["busy", "yield", "block", "adaptive"] = "block",
    linger: float = 1.0,
    user: str | None = None,
    password: str | None = None,
    account: int | None = None,
    session: int | None = None,
    symbols: dict[str, int] | None = None,
    since: Literal["now", "start"] = "now",
) -> None:
    """Runs a strategy until Ctrl-C, until it returns STOP, or to the end of a recording. Errors are raised, those of
    the strategy too. Ctrl-C reaches the main thread only: in another thread, closing the orders ends the run (Closed).

    `ticks` is the URL of a bus; a topic without a publisher is logged. By default a run starts with the oldest tick on
    file://, elsewhere with the next one. A recording without a writer ends the run once it is read, and once no report
    has arrived for `linger` seconds from a connected OMS. Several topics, in a list, take turns; a run that sleeps
    (`wait="block"`) notices an event of each within a millisecond. Several recordings are not merged by their times.

    `orders` is a session from `tickpath.orders`, which stays open, or the URL of an OMS, with a user, a password and an
    account; such a session is closed at the end, and orders at a venue keep working. `since="start"` first passes on
    the session's reports of the day, so that `orders.open` and `orders.positions` are of the whole day.
    """
    if not isinstance(strategy, Strategy):
        raise TypeError(f"{strategy!r} is no strategy; give an instance of a subclass of tickpath.Strategy")
    if not 0 <= linger < float("inf"):
        raise ValueError(f"a linger of {linger} s is invalid; give seconds, 0 or more")
    is_recording = ticks.startswith("file:")
    if start is None:
        start = "oldest" if is_recording else "now"
    with ExitStack() as opened:
        if isinstance(orders, str):
            if user is None or password is None or account is None:
                raise TypeError("a URL of orders needs user=, password= and account=; or give the session of tickpath.orders(…)")
            logon = _native.orders(orders, user, password, account=account, session=session, symbols=symbols, since=since)
            orders = opened.enter_context(logon)
        elif any(given is not None for given in (user, password, account, session, symbols)):
            raise TypeError("user, password, account, session and symbols need a URL of orders; leave them out for an open session")
        bus = opened.enter_context(_native.connect(ticks))
        subscribers = dict[str, _native.Subscriber]()
        if isinstance(topic, str):
            if isinstance(start, Mapping):
                raise TypeError("a dict of starts needs a list of topics; give a single topic its own start")
            subscribers[topic] = opened.enter_context(bus.subscribe(topic, start, wait=wait))
        else:
            multi = opened.enter_context(bus.subscribe(topic, start, wait=wait))  # type: ignore[arg-type]
            subscribers = {name: multi[name] for name in topic}
        if is_recording:
            _warn(_REPLAY)
        for name, subscriber in subscribers.items():
            if not is_recording and subscriber.publisher == 0:
                _warn(f"the topic {name!r} on {ticks} has no publisher yet; the run waits for one")
        denied, before = dict[str, int](), orders.requests
        try:
            _native.trade(strategy, Stop.STOP, list(subscribers.values()), orders, wait != "busy", is_recording, linger, denied)
        except KeyboardInterrupt:
            return
        finally:
            if denied:
                _warn(_denied(denied, orders.requests - before, is_recording))


_REPLAY = (
    "a recording is traded against a live OMS, which checks orders against its present reference prices and clock: it denies "
    "prices of another day and a faster pace (docs/risk-checks.md)"
)


def _denied(denied: dict[str, int], requests: int, is_recording: bool) -> str:
    by_check = ", ".join(f"{count} by {name}" for name, count in sorted(denied.items(), key=lambda item: -item[1]))
    remedy = "report.denial has the limit and the value of each, docs/risk-checks.md the remedies"
    if is_recording:
        remedy += "; in a replay, reference prices and rates are those of the live OMS"
    total = sum(denied.values())
    of = f"{total} of {requests} requests" if total <= requests else f"{total} requests, some of them sent before,"
    return f"the OMS denied {of}: {by_check}; {remedy}"


def instruments(file: str | PathLike[str]) -> dict[str, int]:
    """Returns the symbols' numbers in an OMS's instruments.csv, by name, as `symbols` of `tickpath.orders`."""
    # Imported here, since most programs that import the package read no table.
    import csv

    file, numbers = fspath(file), dict[str, int]()
    if not exists(file):
        raise FileNotFoundError(f"{file} does not exist; `tickpath oms init` creates the files of an OMS")
    try:
        with open(file, encoding="utf-8-sig") as table:
            lines = [line for line in table if line.strip() and line[0] != "#"]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, strict=True)]
        symbol, number = rows[0].index("symbol"), rows[0].index("number")
        for row in rows[1:]:
            name, id = row[symbol], int(row[number])
            if name in numbers or id in numbers.values() or not 0 <= id < 1 << 16:
                raise ValueError(f"{name}, {id}")
            numbers[name] = id
    except (IndexError, ValueError, csv.Error) as e:
        sentence = f"{file} is no table of instruments: `tickpath oms --check` lists every mistake in it ({e})"
        raise ValueError(sentence) from None
    return numbers


def _warn(sentence: str) -> None:
    # Imported here, since most programs that import the package never log.
    import logging

    logging.getLogger("tickpath").warning("%s", sentence)
