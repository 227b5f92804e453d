"""Strategies: the same one live and on a recording, and how a run ends."""

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
    """Buys a little at every offer, up to so many times, and ends with the last fill if it is to."""

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

    def on_other(self, event: tp.Message | tp.Foreign | tp.Gap, orders: tp.Orders) -> None:
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
    """A recording of so many ticks, and a message behind them."""
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
        # It is its owner's.
        assert orders.connected
    assert [stamp for _, stamp in taker.sent] == list(range(1_000, 1_020))
    assert taker.filled == {id for id, _ in taker.sent}
    assert [isinstance(event, tp.Message) for event in taker.others] == [True]


def test_a_run_whose_orders_are_denied_says_so(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Greedy(Taker):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            # Far from the reference price that the OMS has, and then more than it lets through.
            orders.submit(BTC, tp.BUY, tp.units(1), tp.units("0.001"), cause=tick)
            orders.submit(BTC, tp.BUY, ASK, tp.units(1_000_000), cause=tick)

        def on_report(self, report: tp.Report, orders: tp.Orders) -> None:
            assert report.denial is not None, report

    with desk.open() as orders:
        tp.run(Greedy(1, stops=False), ticks=record(tmp_path, ticks=3), orders=orders)
        assert orders.requests == 6
    replay, denied = (record.message for record in caplog.records)
    assert "a recording goes to an OMS that runs now" in replay
    assert denied.startswith("the OMS denied 6 of 6 requests: 3 by "), denied
    assert "3 by PriceCollar" in denied and "3 by MaximumQuantity" in denied, denied
    caplog.clear()
    with desk.open() as orders:
        tp.run(Taker(2, stops=False), ticks=record(tmp_path / "good", ticks=2), orders=orders)
    assert [record.message for record in caplog.records] == [replay]


def test_a_topic_that_nobody_publishes_is_told_and_waited_for(
    desk: Desk, log: Place, caplog: pytest.LogCaptureFixture
) -> None:
    topic = log.name

    class Stops(tp.Strategy):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> tp.Stop:
            return tp.STOP

    def publish() -> None:
        # Without the warning the tick comes all the same, and the test fails.
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
        f"nobody publishes the topic {topic!r} on shm:// now; it is waited for"
    ]


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_a_strategy_hears_several_topics(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    topics = [f"{log.name}-{number}" for number in range(3)]

    class Sums(tp.Strategy):
        def __init__(self) -> None:
            self.came: list[tuple[int, int]] = []

        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> tp.Stop | None:
            assert isinstance(tick, tp.TopOfBook)
            self.came.append((tick.symbol, tick.bid))
            if len(self.came) % 5 == 0 and len(self.came) < 60:
                # The topics take turns, and each is quiet while the others are not.
                send(topics[len(self.came) // 5 % 3], 5)
            return tp.STOP if len(self.came) == 60 else None

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
        for wrong, told in (([], "no topic is named"), ([topics[0]] * 2, "is named twice")):
            with pytest.raises(ValueError, match=told):
                tp.run(sums, ticks="shm://", topic=wrong, orders=orders)
        with pytest.raises(TypeError, match="goes with a list of topics"):
            tp.run(sums, ticks="shm://", topic=topics[0], orders=orders, start={topics[0]: "oldest"})
    for name in topics:
        log.bus.remove(name)
    assert sums.came == sent


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_a_strategy_is_told_once_that_its_orders_wait_for_a_venue(
    tmp_path: Path, wait: Literal["block", "busy"], log: Place
) -> None:
    class Waits(tp.Strategy):
        def __init__(self) -> None:
            self.orders: list[int] = []
            self.notices: list[tp.Notice] = []

        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            self.orders.append(orders.submit(BTC, tp.BUY, ASK - 10, tp.units("0.001"), cause=tick))

        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            # Gone for more than a second, it comes back: nothing else is said of what waits still.
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


def test_a_recording_that_is_not_there_is_told(desk: Desk, tmp_path: Path) -> None:
    with desk.open() as orders, pytest.raises(tp.ReceiveError, match="nothing is recorded there"):
        tp.run(Taker(1, stops=True), ticks=f"file://{tmp_path}", orders=orders)


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_ctrl_c_ends_a_run(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Waiting(Taker):
        def on_other(self, event: tp.Message | tp.Foreign | tp.Gap, orders: tp.Orders) -> None:
            # From here on it waits for ticks that never come.
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

        def on_other(self, event: tp.Message | tp.Foreign | tp.Gap, orders: tp.Orders) -> None:
            id = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units("0.001"))
            # Another thread runs while this one spins.
            threading.Timer(0.1, orders.cancel, (id,)).start()

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        tp.run(Resting(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)


@pytest.mark.parametrize("wait", ["block", "busy"])
def test_a_session_that_is_closed_elsewhere_ends_a_run(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Closing(Taker):
        def on_other(self, event: tp.Message | tp.Foreign | tp.Gap, orders: tp.Orders) -> None:
            threading.Timer(0.1, orders.close).start()

    with tp.connect(log.url) as bus, bus.publisher(log.name) as publisher, desk.open() as orders:
        publisher.publish(b"no tick", 200)
        with pytest.raises(tp.Closed, match="this session is closed"):
            tp.run(Closing(1, stops=True), ticks=log.url, topic=log.name, start="oldest", orders=orders, wait=wait)


def test_what_a_strategy_raises_is_raised(desk: Desk, tmp_path: Path) -> None:
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


def test_a_report_behind_one_that_ends_a_run_stays_with_the_session(desk: Desk, tmp_path: Path) -> None:
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
def test_a_run_hears_its_session_alone(desk: Desk, log: Place, wait: Literal["block", "busy"]) -> None:
    class Watched(Taker):
        def on_other(self, event: tp.Message | tp.Foreign | tp.Gap, orders: tp.Orders) -> None:
            for hear in (orders.poll, orders.wait, lambda: next(orders)):
                with pytest.raises(tp.InUse, match="a run uses this session"):
                    hear()
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


def test_what_a_strategy_gives_is_stop_or_nothing(desk: Desk, tmp_path: Path) -> None:
    class Odd(Taker):
        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            return given  # type: ignore[return-value]

    async def later() -> None:
        pass

    url = record(tmp_path, ticks=1)
    with desk.open() as orders:
        for given in (True, "stop", [tp.STOP], tp.Stop, coroutine := later()):
            with pytest.raises(TypeError, match=r"on_tick gave .*; give tickpath\.STOP to end the run, else nothing"):
                tp.run(Odd(1, stops=True), ticks=url, orders=orders)
        coroutine.close()
        for strategy in (Odd, None, object()):
            with pytest.raises(TypeError, match=r"is no strategy; give an object of a class of tickpath\.Strategy"):
                tp.run(strategy, ticks=url, orders=orders)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="go with the URL of orders"):
            tp.run(Taker(1, stops=True), ticks=url, orders=orders, user="trader")


def test_a_table_of_instruments_is_read_or_told(tmp_path: Path) -> None:
    file = tmp_path / "instruments.csv"
    with pytest.raises(FileNotFoundError, match="instruments.csv is not there; `tickpath oms init`"):
        tp.instruments(file)
    file.write_text("# all\nsymbol, number ,venue\nA, 1,X\n\nB,65535,X\n", "utf-8-sig")
    assert tp.instruments(file) == {"A": 1, "B": 65535}
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
    with pytest.raises(ValueError, match="a linger of -1 s is none"):
        tp.run(Taker(1, stops=True), ticks="shm://", orders="unix:///nowhere", linger=-1)
    with pytest.raises(TypeError, match="need user=, password= and account="):
        tp.run(Taker(1, stops=True), ticks="shm://", orders="unix:///nowhere")


def walk(folder: Path, *, ticks: int) -> str:
    """A recording of prices that wander, the same each time."""
    wander = random.Random(7)
    bid = tp.units(61_800)
    with tp.connect(f"file://{folder}") as bus, bus.publisher("ticks", "keep") as publisher:
        for number in range(ticks):
            bid += tp.units("0.1") * wander.randint(-4, 4)
            tick = tp.TopOfBook(bid, 1, bid + tp.units("0.1"), 1, symbol=wander.choice((BTC, BTC, BTC, BTC + 1)))
            publisher.publish(tick, stamp=1_000 + number)
    return f"file://{folder}"


def digest(journal: str) -> tuple[int, str]:
    """How many orders a journal has, and the digest of all that their strategy has decided."""
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
        # All that comes is asked: nothing that a clock decides may come between.
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
