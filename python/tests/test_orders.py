"""A session with a real OMS and a simulated exchange: outcomes of orders, denials, and lost connections."""

import copy
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tickpath as tp
from desk import ASK, BTC, COMMAND, Desk, await_price, report

needs_command = pytest.mark.skipif(COMMAND is None, reason="TICKPATH names no command: TICKPATH=target/debug/tickpath")


@pytest.mark.parametrize("scheme", ["unix", "shm+unix"])
def test_an_order_fills(desk: Desk, scheme: str) -> None:
    with desk.open(f"{scheme}://{desk.folder}/oms.sock") as orders:
        assert orders.connected and orders.session in range(4) and orders.heartbeat == 10
        id = orders.submit("BTCUSDT", tp.BUY, ASK, tp.units("0.5"), cause=77)
        filled = report(orders, of=id, exec_type="trade")
        assert (filled.status, filled.denial, filled.live, filled.symbol) == ("filled", None, True, BTC)
        assert (filled.last_price, filled.cumulative_quantity, filled.leaves_quantity) == (ASK, tp.units("0.5"), 0)
        assert f"symbol={BTC}, side=BUY, exec_type='trade'" in repr(filled) and "last=0.5@61800.1" in repr(filled)
    assert f"client_order_id={id} " in desk.journal() and "cause=77" in desk.journal()


def test_an_order_is_replaced_and_cancelled(desk: Desk) -> None:
    with desk.open() as orders:
        id = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units(1))
        resting = report(orders, of=id, exec_type="new")
        changed = report(
            orders, of=orders.replace(id, price=tp.units(61_001), quantity=tp.units(2)), exec_type="replaced"
        )
        assert (changed.price, changed.leaves_quantity) == (tp.units(61_001), tp.units(2))
        gone = report(orders, of=orders.cancel(id), exec_type="canceled")
        assert resting.order_id == changed.order_id == gone.order_id


def test_a_denial_has_code_limit_and_value(desk: Desk) -> None:
    with desk.open() as orders:
        denied = report(orders, of=orders.submit(BTC, tp.BUY, ASK, tp.units(1_000)), exec_type="denied")
        denial = denied.denial
        assert denial is not None and denied.status is None
        assert (denial.code, denial.name, denial.limit, denial.value) == (
            23,
            "MaximumQuantity",
            tp.units(100),
            tp.units(1_000),
        )
        assert "split the order" in str(denial)
        assert denial == denied.denial and hash(denial) == hash(denied.denial)
        unknown = report(orders, of=orders.cancel(1), exec_type="denied")
        assert unknown.denial is not None and unknown.denial.name == "UnknownOrder"
        assert pickle.loads(pickle.dumps(denied)) == denied


def test_session_events_can_be_created_pickled_and_copied() -> None:
    denial = tp.Denial(code=23, limit=1, value=-(1 << 100))
    events = [
        tp.Report(),
        tp.Report(client_order_id=7, exec_type="trade", status="filled", last_quantity=5, symbol=BTC, side=tp.BUY),
        tp.Report(client_order_id=7, exec_type="denied", status=None, denial=denial, live=False),
        denial,
        tp.NotTaken(client_order_id=7, request="replace"),
        tp.InDoubt(client_order_id=7, request="cancel"),
        tp.Notice(what="failed", sentence="the connection failed"),
    ]
    for event in events:
        assert pickle.loads(pickle.dumps(event)) == copy.deepcopy(event) == event
    assert "exec_type='trade', status='filled', filled=0" in repr(events[1]) and "last=0.00000005@0" in repr(events[1])
    with pytest.raises(TypeError, match="a Report has no field 'quantity'; use number, stamp, "):
        tp.Report(quantity=1)
    with pytest.raises(TypeError, match="symbol of a Report: "):
        tp.Report(symbol="BTCUSDT")
    with pytest.raises(TypeError, match="'filled' is not one of .*canceled, "):
        tp.Report(exec_type="filled")
    with pytest.raises(TypeError, match="'connected' is not one of .*canceled, "):
        tp.Report(status="connected")


@needs_command
def test_a_venues_rejection_is_no_denial(tmp_path: Path) -> None:
    desk = Desk(tmp_path, reject="1")
    try:
        desk.start("exchange")
        desk.start("oms")
        await_price(desk)
        with desk.open() as orders:
            rejected = report(orders, of=orders.submit(BTC, tp.BUY, ASK, tp.units(1)), exec_type="rejected")
            assert (rejected.denial, rejected.status) == (None, "rejected")
    finally:
        desk.close()


@needs_command
def test_a_session_survives_its_oms(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    try:
        desk.start("exchange")
        desk.start("oms")
        await_price(desk)
        with desk.open() as orders:
            id = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units(1))
            report(orders, of=id, exec_type="new")
            desk.kill("oms")
            notices = {event.what for event in _until(orders, "disconnected") if isinstance(event, tp.Notice)}
            assert "disconnected" in notices and not orders.connected
            with pytest.raises(tp.NotSent, match="no connection to the OMS") as caught:
                orders.submit(BTC, tp.BUY, ASK, tp.units(1))
            assert caught.value.may_pass
            desk.start("oms")
            _until(orders, "connected")
            report(orders, of=orders.cancel(id), exec_type="canceled")
    finally:
        desk.close()


def _until(orders: tp.Orders, what: str) -> list[object]:
    """Returns the events up to this notice."""
    received: list[object] = []
    while orders.wait(60):
        for event in orders.poll(1):
            received.append(event)
            if isinstance(event, tp.Notice) and event.what == what:
                return received
    raise AssertionError(f"no notice of {what}: {received}")


def test_a_name_is_the_symbol_of_the_running_oms(desk: Desk) -> None:
    def opened(symbols: dict[str, int] | None) -> tp.Orders:
        return tp.orders(desk.url, "trader", desk.password, account=1, symbols=symbols)

    with opened(None) as orders:
        report(orders, of=orders.submit("BTCUSDT", tp.BUY, ASK, tp.units(1)), exec_type="trade")
    with opened({"coin": 1}) as orders:
        report(orders, of=orders.submit("coin", tp.BUY, ASK, tp.units(1)), exec_type="trade")
    with pytest.raises(ValueError, match="BTCUSDT is symbol 1 at the OMS and 2 in symbols="):
        opened({"BTCUSDT": 2})


def test_invalid_order_is_refused_with_the_remedy(desk: Desk) -> None:
    with desk.open() as orders:
        for arguments, sentence in [
            (("DOGE", tp.BUY, ASK, 1), "'DOGE' is no symbol of the OMS"),
            ((BTC, 3, ASK, 1), "3 is no side; give tickpath.BUY or SELL"),
            ((BTC, tp.BUY, None, 1), "a limit order has a price"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                orders.submit(*arguments)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="whole number of 10⁻⁸"):
            orders.submit(BTC, tp.BUY, 61800.1, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a cause is the TopOfBook"):
            orders.submit(BTC, tp.BUY, ASK, 1, cause="tick")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'gfd' is not a valid time_in_force; use one of 'day'"):
            orders.submit(BTC, tp.BUY, ASK, 1, time_in_force="gfd")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'default' is not a valid self_trade; use one of 'cancel_maker'"):
            orders.submit(BTC, tp.BUY, ASK, 1, self_trade="default")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'margin' is not a valid trade_mode; use one of 'cash', 'cross'"):
            orders.submit(BTC, tp.BUY, ASK, 1, trade_mode="margin")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a market order has no price"):
            orders.submit(BTC, tp.BUY, ASK, 1, order_type="market")
        with pytest.raises(ValueError, match="0 is no request id"):
            orders.submit(BTC, tp.BUY, ASK, 1, id=0)
    with pytest.raises(ValueError, match="65535 is no session"):
        tp.orders(desk.url, "trader", desk.password, account=1, session=65_535)


def test_the_exchange_honours_or_rejects_instructions(desk: Desk) -> None:
    with desk.open() as orders:
        rejected = report(orders, of=orders.submit(BTC, tp.BUY, ASK, tp.units(1), post_only=True), exec_type="rejected")
        assert (rejected.reason, rejected.denial, rejected.leaves_quantity) == (11, None, 0)
        low = tp.units(61_000)
        id = orders.submit(BTC, tp.BUY, low, tp.units("0.001"), post_only=True)
        report(orders, of=id, exec_type="new")
        crossing = orders.replace(id, price=ASK, quantity=tp.units("0.001"))
        assert report(orders, of=crossing, exec_type="cancel_rejected").reason == 11
        report(orders, of=orders.cancel(id), exec_type="canceled")
        for id in (
            orders.submit(BTC, tp.BUY, low, tp.units("0.001"), reduce_only=True),
            orders.submit(BTC, tp.BUY, low, tp.units("0.001"), self_trade="cancel_both"),
            orders.submit(BTC, tp.BUY, low, tp.units("0.001"), trade_mode="isolated"),
        ):
            assert report(orders, of=id, exec_type="rejected").reason == 12
        # An armed order keeps its instructions until it fires.
        trigger = tp.when("BTCUSDT", "ask", at_most=ASK)
        fired = orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"), trigger=trigger, post_only=True)
        assert report(orders, of=fired, exec_type="rejected").reason == 11
    journal = desk.journal()
    assert "instructions=post_only " in journal and "instructions=reduce_only " in journal
    assert "self_trade_mode=cancel_both " in journal and "trade_mode=isolated " in journal


def test_an_order_is_named_by_its_client_id(desk: Desk) -> None:
    with desk.open() as orders:
        low, one = tp.units(61_000), tp.units("0.001")
        id = orders.submit(BTC, tp.BUY, low, one, client_id="grid-7")
        order_id = report(orders, of=id, exec_type="new").order_id
        assert orders.client_id(order_id) == "grid-7" and orders.client_id(1) is None
        denied = report(orders, of=orders.submit(BTC, tp.BUY, low, one, client_id="grid-7"), exec_type="denied")
        assert denied.denial is not None and denied.denial.name == "DuplicateTextId"
        status = report(orders, of=orders.status(client_id="grid-7"), exec_type="order_status")
        assert (status.order_id, status.status) == (order_id, "new")
        report(orders, of=orders.cancel(client_id="grid-7"), exec_type="canceled")
        again = orders.submit(BTC, tp.BUY, low, one, client_id="grid-7")
        report(orders, of=again, exec_type="new")
        report(orders, of=orders.cancel(again), exec_type="canceled")
        trigger = tp.when("BTCUSDT", "ask", at_most=ASK)
        refusals: list[Callable[[], object]] = [
            lambda: orders.cancel(),
            lambda: orders.cancel(id, client_id="grid-7"),
            lambda: orders.status(client_id="a b"),
            lambda: orders.submit(BTC, tp.BUY, low, one, client_id="x" * 37),
            lambda: orders.submit(BTC, tp.BUY, low, one, client_id="armed", trigger=trigger),
        ]
        for refused in refusals:
            with pytest.raises(ValueError):
                refused()


def test_a_good_till_date_order_expires_at_its_end(desk: Desk) -> None:
    with desk.open() as orders:
        low, one = tp.units(61_000), tp.units("0.001")
        for time_in_force, expire_ns in (("gtd", None), ("gtd", 0), ("day", 1)):
            with pytest.raises(ValueError, match="'gtd' has an expire_ns above 0"):
                times = {"time_in_force": time_in_force, "expire_ns": expire_ns}
                orders.submit(BTC, tp.BUY, low, one, **times)  # type: ignore[arg-type]
        late = orders.submit(BTC, tp.BUY, low, one, time_in_force="gtd", expire_ns=1)
        denied = report(orders, of=late, exec_type="denied").denial
        assert denied is not None and denied.name == "EndTimePassed"
        id = orders.submit(BTC, tp.BUY, low, one, time_in_force="gtd", expire_ns=time.time_ns() + 300_000_000)
        report(orders, of=id, exec_type="new")
        assert report(orders, of=id, exec_type="expired").status == "expired"


def test_own_request_id_is_known_before_the_call(desk: Desk) -> None:
    with desk.open() as orders:
        own = tp.now()
        assert orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"), id=own) == own
        assert report(orders, of=own, exec_type="trade").client_order_id == own
        again = report(orders, of=orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"), id=own), exec_type="denied")
        assert again.denial is not None and again.denial.name == "DuplicateClientOrderId"


def test_session_taken_over_by_another_client_ends(desk: Desk) -> None:
    with desk.open() as orders:
        answered = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units("0.001"))
        report(orders, of=answered, exec_type="new")
        with tp.orders(desk.url, "trader", desk.password, account=1, session=orders.session):
            received: list[object] = []
            with pytest.raises(tp.SessionEnded, match="give each program a session= of its own"):
                for event in orders:
                    received.append(event)
            assert not [event for event in received if isinstance(event, tp.InDoubt | tp.NotTaken)], received
            with pytest.raises(tp.SessionEnded):
                orders.submit(BTC, tp.BUY, ASK, 1)


def test_failed_logon_raises_the_reason(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(tp.ConnectError, match="the OMS refused"):
        tp.orders(desk.url, "trader", "wrong", account=1)
    with pytest.raises(tp.ConnectError, match="no OMS answers at .*start it with `tickpath oms`"):
        tp.orders(f"unix://{tmp_path}/nowhere.sock", "trader", "x", account=1)
    with pytest.raises(tp.ConnectError, match="is no address of an OMS"):
        tp.orders("shm://oms", "trader", "x", account=1)
    with pytest.raises(ValueError, match="'later' is not a valid since"):
        tp.orders(desk.url, "trader", "x", account=1, since="later")  # type: ignore[arg-type]


def test_closed_or_forked_session_refuses_calls(desk: Desk) -> None:
    orders = desk.open()
    child = os.fork()
    if child == 0:
        try:
            orders.poll()
        except tp.Forked:
            orders.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    # The parent's session stays open.
    report(orders, of=orders.cancel(1), exec_type="denied")
    orders.close()
    orders.close()
    with pytest.raises(tp.Closed, match="this session is closed"):
        orders.poll()


def test_an_interrupt_ends_the_wait(desk: Desk) -> None:
    script = """
import os, signal, sys, threading, tickpath as tp
with tp.orders(sys.argv[1], "trader", sys.argv[2], account=1) as orders:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for event in orders: pass
    except KeyboardInterrupt:
        print("interrupted")
"""
    command = [sys.executable, "-c", script, desk.url, desk.password]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done


def test_instruments_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "instruments.csv"
    table.write_text("# a remark\nsymbol,number,venue\n\nBTCUSDT, 1,SIM\nETHUSDT,2,SIM\n", encoding="utf-8-sig")
    assert tp.instruments(table) == {"BTCUSDT": 1, "ETHUSDT": 2}
    table.write_text("name\nBTCUSDT\n")
    with pytest.raises(ValueError, match="is no table of instruments"):
        tp.instruments(table)
