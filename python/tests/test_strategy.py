"""Strategies: live and on a recording, and the ends of a run."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

import tickpath as tp
from conftest import Place
from desk import ASK, BTC, Desk, await_price


class Taker(tp.Strategy):
    """Strategy that buys a little at each of the first `most` offers; with `stops`, it ends after the last fill."""

    def __init__(self, most: int, *, stops: bool) -> None:
        self.most, self.stops = most, stops
        self.sent: list[tuple[int, int]] = []
        self.filled: set[int] = set()
        self.others: list[object] = []

    def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
        if isinstance(tick, tp.TopOfBook) and tick.symbol == BTC and len(self.sent) < self.most:
            id = orders.submit("BTCUSDT", tp.BUY, tick.ask, tp.units("0.001"), time_in_force="ioc", cause=tick)
            self.sent.append((id, tick.stamp))

    def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
        assert report.denial is None, report
        if report.status == "filled":
            self.filled.add(report.client_order_id)
        return tp.STOP if self.stops and len(self.filled) == self.most else None

    def on_other(self, event: tp.Event, orders: tp.Orders) -> None:
        self.others.append(event)


def test_a_live_strategy_trades_and_stops(desk: Desk) -> None:
    taker = Taker(1, stops=True)
    tp.run(
        taker,
        ticks="shm://",
        topic=desk.ticks,
        orders=desk.url,
        user="trader",
        password=desk.password,
        account=1,
        symbols=desk.symbols,
    )
    [(id, stamp)] = taker.sent
    assert taker.filled == {id}
    line = next(line for line in desk.journal().splitlines() if f"client_order_id={id} " in line)
    assert f"cause={stamp}" in line and stamp > 0


def record(folder: Path, *, ticks: int) -> str:
    """Writes a recording of `ticks` ticks and one message; returns its URL."""
    with tp.connect(f"file://{folder}") as bus, bus.publisher("ticks", "keep") as publisher:
        for number in range(ticks):
            publisher.publish(tp.TopOfBook(ASK - 10, 1, ASK, tp.units(5), symbol=BTC), stamp=1_000 + number)
        publisher.publish(b"no tick", 200)
    return f"file://{folder}"


def test_a_recording_is_traded_to_its_end(desk: Desk, tmp_path: Path) -> None:
    url = record(tmp_path, ticks=20)
    taker = Taker(20, stops=False)
    with desk.open() as orders:
        tp.run(taker, ticks=url, orders=orders)
        # The run leaves the session open.
        assert orders.connected
    assert [stamp for _, stamp in taker.sent] == list(range(1_000, 1_020))
    assert taker.filled == {id for id, _ in taker.sent}
    assert [isinstance(event, tp.Message) for event in taker.others] == [True]


def test_run_logs_denied_orders(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Greedy(Taker):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            # One price is far from the OMS's reference price, and one quantity is above the limit.
            orders.submit(BTC, tp.BUY, tp.units(1), tp.units("0.001"), cause=tick)
            orders.submit(BTC, tp.BUY, ASK, tp.units(1_000_000), cause=tick)

        def on_report(self, report: tp.Report, orders: tp.Orders) -> None:
            assert report.denial is not None, report

    with desk.open() as orders:
        tp.run(Greedy(1, stops=False), ticks=record(tmp_path, ticks=3), orders=orders)
        assert orders.requests == 6
    replay, denied = (record.message for record in caplog.records)
    assert "a recording is traded against a live OMS" in replay
    assert denied.startswith("the OMS denied 6 of 6 requests: 3 by "), denied
    assert "3 by PriceCollar" in denied and "3 by MaximumQuantity" in denied, denied
    caplog.clear()
    with desk.open() as orders:
        tp.run(Taker(2, stops=False), ticks=record(tmp_path / "good", ticks=2), orders=orders)
    assert [record.message for record in caplog.records] == [replay]


def test_run_logs_and_awaits_a_topic_without_publisher(
    desk: Desk, log: Place, caplog: pytest.LogCaptureFixture
) -> None:
    topic = log.name

    class Stops(tp.Strategy):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> tp.Stop:
            return tp.STOP

    def publish() -> None:
        # Without the warning the tick is published later, and the test fails.
        end = time.monotonic() + 30
        while not caplog.records and time.monotonic() < end:
            time.sleep(0.01)
        with tp.connect("shm://") as bus, bus.publisher(topic) as publisher:
            publisher.publish(tp.TopOfBook(ASK - 10, 1, ASK, 1, symbol=BTC))
            ended.wait()

    ended = threading.Event()
    publishing = threading.Thread(target=publish)
    publishing.start()
    with desk.open() as orders:
        tp.run(Stops(), ticks="shm://", topic=topic, orders=orders)
    ended.set()
    publishing.join()
    assert [record.message for record in caplog.records] == [
        f"the topic {topic!r} on shm:// has no publisher yet; the run waits for one"
    ]


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_strategy_receives_several_topics(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    topics = [f"{log.name}-{number}" for number in range(3)]

    class Sums(tp.Strategy):
        def __init__(self) -> None:
            self.received: list[tuple[int, int]] = []

        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> tp.Stop | None:
            assert isinstance(tick, tp.TopOfBook)
            self.received.append((tick.symbol, tick.bid))
            if len(self.received) % 5 == 0 and len(self.received) < 60:
                # Only one topic at a time has ticks.
                send(topics[len(self.received) // 5 % 3], 5)
            return tp.STOP if len(self.received) == 60 else None

    sent: list[tuple[int, int]] = []

    def send(topic: str, most: int) -> None:
        for _ in range(most):
            sent.append((topics.index(topic), len(sent)))
            symbol, bid = sent[-1]
            publishers[topic].publish(tp.TopOfBook(bid, 1, bid + 1, 1, symbol=symbol))

    sums = Sums()
    with desk.open() as orders, ExitStack() as opened:
        publishers = {name: opened.enter_context(log.bus.publisher(name)) for name in topics}
        send(topics[0], 5)
        tp.run(sums, ticks="shm://", topic=topics, orders=orders, wait=wait, start="oldest")
        for wrong, sentence in (([], "no topic is given"), ([topics[0]] * 2, "is given twice")):
            with pytest.raises(ValueError, match=sentence):
                tp.run(sums, ticks="shm://", topic=wrong, orders=orders)
        with pytest.raises(TypeError, match="needs a list of topics"):
            tp.run(sums, ticks="shm://", topic=topics[0], orders=orders, start={topics[0]: "oldest"})
    for name in topics:
        log.bus.remove(name)
    assert sums.received == sent


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_strategy_is_notified_once_that_its_orders_wait_for_a_venue(
    tmp_path: Path, wait: Literal["block", "busy"], log: Place
) -> None:
    class Waits(tp.Strategy):
        def __init__(self) -> None:
            self.orders: list[int] = []
            self.notices: list[tp.Notice] = []

        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            self.orders.append(orders.submit(BTC, tp.BUY, ASK - 10, tp.units("0.001"), cause=tick))

        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            # The exchange returns after more than a second: no second notice follows for the waiting orders.
            if self.notices and "exchange" not in away.running:
                away.start("exchange")
            return tp.STOP if report.status == "new" else None

        def on_notice(self, notice: object, orders: tp.Orders) -> None:
            assert isinstance(notice, tp.Notice), notice
            if notice.what == "waiting":
                self.notices.append(notice)
                orders.submit(BTC, tp.BUY, ASK - 20, tp.units("0.001"))

    away = Desk(tmp_path)
    strategy = Waits()
    try:
        away.start("exchange")
        away.start("oms")
        await_price(away)
        away.kill("exchange")
        with away.open() as orders, log.bus.publisher(log.name) as ticks:
            ticks.publish(tp.TopOfBook(ASK - 10, 1, ASK, 1, symbol=BTC))
            tp.run(strategy, ticks="shm://", topic=log.name, orders=orders, wait=wait, start="oldest")
    finally:
        away.close()
    [notice] = strategy.notices
    assert f"order {strategy.orders[0]} has waited for its venue" in notice.sentence, notice
    assert "RequestAge" in notice.sentence and "venues_up" in notice.sentence


def test_missing_recording_is_an_error(desk: Desk, tmp_path: Path) -> None:
    with desk.open() as orders, pytest.raises(tp.ReceiveError, match="nothing is recorded in "):
        tp.run(Taker(1, stops=True), ticks=f"file://{tmp_path}", orders=orders)


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_ctrl_c_ends_a_run(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Waiting(Taker):
        def on_other(self, event: tp.Event, orders: tp.Orders) -> None:
            # After this message the run waits for ticks in vain.
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        tp.run(Waiting(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)
        assert orders.connected


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_a_report_ends_a_run_that_waits_for_ticks(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Resting(Taker):
        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            return tp.STOP if report.status == "canceled" else None

        def on_other(self, event: tp.Event, orders: tp.Orders) -> None:
            id = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units("0.001"))
            # Another thread runs while this thread spins.
            threading.Timer(0.1, orders.cancel, (id,)).start()

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        tp.run(Resting(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_session_closed_by_another_thread_ends_a_run(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Closing(Taker):
        def on_other(self, event: tp.Event, orders: tp.Orders) -> None:
            threading.Timer(0.1, orders.close).start()

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        with pytest.raises(tp.Closed, match="this session is closed"):
            tp.run(Closing(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)


def test_exception_of_a_strategy_propagates(desk: Desk, tmp_path: Path) -> None:
    class Broken(tp.Strategy):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            raise ZeroDivisionError("mine")

    url = record(tmp_path, ticks=1)
    with desk.open() as orders:
        with pytest.raises(ZeroDivisionError, match="mine"):
            tp.run(Broken(), ticks=url, orders=orders)
        with pytest.raises(NotImplementedError, match="Strategy has no on_tick"):
            tp.run(tp.Strategy(), ticks=url, orders=orders)
        orders.close()
        with pytest.raises(tp.Closed):
            tp.run(Taker(1, stops=True), ticks=url, orders=orders)


def test_report_after_the_end_of_a_run_stays_in_the_session(desk: Desk, tmp_path: Path) -> None:
    class Once(Taker):
        last = -1

        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            self.last = report.number
            return tp.STOP

    taker = Once(0, stops=False)
    with desk.open() as orders:
        for _ in range(3):
            orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"))
        assert orders.wait(60)
        tp.run(taker, ticks=record(tmp_path, ticks=1), orders=orders, linger=60)
        following = next(event for event in orders if isinstance(event, tp.Report))
    assert following.number == taker.last + 1


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_run_has_exclusive_use_of_session_events(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Watched(Taker):
        def on_other(self, event: tp.Event, orders: tp.Orders) -> None:
            for receive in (orders.poll, orders.wait, lambda: next(orders)):
                with pytest.raises(tp.InUse, match="a run uses this session"):
                    receive()
            with pytest.raises(tp.InUse, match="a run uses this session"):
                tp.run(Taker(0, stops=True), ticks=log.url, topic=log.name, orders=orders)
            # Another thread may send.
            threading.Timer(0.1, orders.submit, (BTC, tp.BUY, tp.units(61_000), tp.units("0.001"))).start()

        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            return tp.STOP if report.exec_type == "new" else None

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        tp.run(Watched(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)
        orders.poll()


def test_strategy_may_return_only_stop_or_none(desk: Desk, tmp_path: Path) -> None:
    class Odd(Taker):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            return returned  # type: ignore[return-value]

    async def later() -> None:
        pass

    url = record(tmp_path, ticks=1)
    with desk.open() as orders:
        for returned in (True, "stop", [tp.STOP], tp.Stop, coroutine := later()):
            with pytest.raises(TypeError, match=r"on_tick returned .*; return tickpath\.STOP to end the run, or None"):
                tp.run(Odd(1, stops=True), ticks=url, orders=orders)
        coroutine.close()
        for strategy in (Odd, None, object()):
            with pytest.raises(TypeError, match=r"is no strategy; give an instance of a subclass of tickpath\.Strategy"):
                tp.run(strategy, ticks=url, orders=orders)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="need a URL of orders"):
            tp.run(Taker(1, stops=True), ticks=url, orders=orders, user="trader")


def test_instruments_table_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "instruments.csv"
    with pytest.raises(FileNotFoundError, match="instruments.csv does not exist; `tickpath oms init`"):
        tp.instruments(file)
    file.write_text('# all\nsymbol, number ,venue\nA, 1,X\n\n"B,C",65535,"X"\n', "utf-8-sig")
    assert tp.instruments(file) == {"A": 1, "B,C": 65535}
    for rows in ("", "symbol\nA\n", "symbol,number\nA,1\nA,2\n", "symbol,number\nA,1\nB,1\n", "symbol,number\nA,70000\n", "A\n"):
        file.write_text(rows)
        with pytest.raises(ValueError, match="is no table of instruments: `tickpath oms --check`"):
            tp.instruments(file)
    file.write_bytes("symbol,number".encode("utf-16"))
    with pytest.raises(ValueError, match="is no table of instruments"):
        tp.instruments(file)
    with pytest.raises(TypeError):
        tp.instruments(5)  # type: ignore[arg-type]


def test_a_url_of_orders_needs_a_login() -> None:
    with pytest.raises(ValueError, match="a linger of -1 s is invalid"):
        tp.run(Taker(1, stops=True), ticks="shm://", orders="unix:///nowhere", linger=-1)
    with pytest.raises(TypeError, match="needs user=, password= and account="):
        tp.run(Taker(1, stops=True), ticks="shm://", orders="unix:///nowhere")


def walk(folder: Path, *, ticks: int) -> str:
    """Writes a recording of a random walk, the same each time; returns its URL."""
    dice = random.Random(7)
    bid = tp.units(61_800)
    with tp.connect(f"file://{folder}") as bus, bus.publisher("ticks", "keep") as publisher:
        for number in range(ticks):
            bid += tp.units("0.1") * dice.randint(-4, 4)
            tick = tp.TopOfBook(bid, 1, bid + tp.units("0.1"), 1, symbol=dice.choice((BTC, BTC, BTC, BTC + 1)))
            publisher.publish(tick, stamp=1_000 + number)
    return f"file://{folder}"


def digest(journal: str) -> tuple[int, str]:
    """Returns the number of orders in a journal, and the digest of the fields that their strategy decides."""
    decided = ("cause", "symbol", "account", "side", "quantity", "price", "order_type", "time_in_force")
    orders = []
    for line in journal.splitlines():
        if "journal_new_order" in line:
            fields = dict(field.split("=", 1) for field in line.split() if "=" in field)
            orders.append(" ".join(fields[name] for name in decided))
    return len(orders), hashlib.sha256("\n".join(orders).encode()).hexdigest()


@pytest.mark.skipif("STRATEGY" not in os.environ, reason="STRATEGY names no program: crates/oms-client/examples/strategy.rs")
def test_python_and_rust_send_the_same_orders(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples/python/06_strategy.py"
    url = walk(tmp_path / "ticks", ticks=3_000)
    digests = []
    for name, command in (("python", [sys.executable, str(example)]), ("rust", [os.environ["STRATEGY"]])):
        (folder := tmp_path / name).mkdir()
        desk = Desk(folder)
        # No limit on the rate of orders, since its denials would depend on the clock.
        desk.change("accounts.csv", "\n1,1000,", "\n1,,")
        try:
            desk.start("exchange")
            desk.start("oms")
            subprocess.run([*command, str(folder), url, "ticks"], check=True, timeout=60, capture_output=True)
            digests.append(digest(desk.journal()))
        finally:
            desk.close()
    [of_python, of_rust] = digests
    assert of_python == of_rust and of_python[0] > 500, digests
