"""A session for trading programs: open orders, positions, triggers, mass cancels, event loops."""

import asyncio
import json
from collections.abc import Callable

import pytest
import uvloop

import tickpath as tp
from conftest import Place
from desk import ASK, BTC, PATIENCE_S, Desk, report

LOW = tp.units(61_000)
ONE = tp.units(1)


def test_open_orders_and_positions_follow_the_reports(desk: Desk) -> None:
    with desk.open() as orders:
        assert (orders.open, orders.positions) == ({}, {})
        resting = orders.submit(BTC, tp.BUY, LOW, ONE)
        report(orders, of=resting, exec_type="new")
        assert [(id, order.status, order.leaves_quantity) for id, order in orders.open.items()] == [(resting, "new", ONE)]
        changed = orders.replace(resting, price=LOW + 1, quantity=2 * ONE)
        report(orders, of=changed, exec_type="replaced")
        assert [(id, order.price) for id, order in orders.open.items()] == [(resting, LOW + 1)]
        bought = orders.submit(BTC, tp.BUY, ASK, ONE)
        report(orders, of=bought, exec_type="trade")
        sold = orders.submit(BTC, tp.SELL, LOW, tp.units("0.25"))
        report(orders, of=sold, exec_type="trade")
        assert orders.positions == {BTC: tp.units("0.75")}
        other = orders.submit(BTC, tp.BUY, LOW, ONE)
        report(orders, of=other, exec_type="new")
        assert set(orders.open) == {resting, other}
        orders.cancel_all("BTCUSDT")
        gone: set[int] = set()
        while orders.open:
            assert orders.wait(PATIENCE_S)
            gone |= {event.order_id for event in orders.poll() if isinstance(event, tp.Report)}
        assert len(gone) >= 2 and orders.positions == {BTC: tp.units("0.75")}
    # A client that starts with the first report of the day has the open orders and positions of the session.
    with tp.orders(desk.url, "trader", desk.password, account=1, since="start") as again:
        session = again.session
    with tp.orders(desk.url, "trader", desk.password, account=1, session=session, since="start") as again:
        answer = again.submit(BTC, tp.BUY, LOW, ONE)
        report(again, of=answer, exec_type="new")
        assert set(again.open) == {answer}
        again.cancel(answer)
        while again.open:
            assert again.wait(PATIENCE_S) and again.poll()


def test_a_strategy_knows_its_orders_and_positions(desk: Desk) -> None:
    class Holder(tp.Strategy):
        """Strategy that buys once, and holds the position."""

        def __init__(self) -> None:
            self.held: dict[int, int] = {}

        def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
            if isinstance(tick, tp.TopOfBook) and tick.symbol == BTC and not orders.open and not orders.positions:
                orders.submit(BTC, tp.BUY, tick.ask, ONE, cause=tick)

        def on_report(self, report: tp.Report, orders: tp.Orders) -> tp.Stop | None:
            self.held = orders.positions
            return tp.STOP if report.status == "filled" and not orders.open else None

    holder = Holder()
    with desk.open() as orders:
        tp.run(holder, ticks="shm://", topic=desk.ticks, orders=orders)
    assert holder.held == {BTC: ONE}


def test_order_denied_later_is_not_open(desk: Desk) -> None:
    with desk.open() as orders:
        # Armed at first; once triggered, the price is too far from the market.
        id = orders.submit(BTC, tp.BUY, 10, ONE, trigger=tp.when(BTC, "bid", at_least=1))
        reports: list[tuple[str | None, list[int]]] = []
        while not reports or reports[-1][0] != "denied":
            assert orders.wait(PATIENCE_S)
            # `open` follows the reports returned so far, and none beyond them.
            reports += [(event.exec_type, list(orders.open)) for event in orders.poll(1) if isinstance(event, tp.Report)]
        assert reports[0] == ("pending_new", [id]) and reports[-1] == ("denied", []), reports


def test_status_queries_the_state_of_an_order(desk: Desk) -> None:
    with desk.open() as orders:
        id = orders.submit(BTC, tp.BUY, LOW, ONE)
        report(orders, of=id, exec_type="new")
        answer = report(orders, of=orders.status(id), exec_type="order_status")
        assert (answer.status, answer.leaves_quantity, answer.price) == ("new", ONE, LOW)
        report(orders, of=orders.cancel(id), exec_type="canceled")
        answer = report(orders, of=orders.status(id), exec_type="order_status")
        assert answer.status == "canceled"


def test_an_order_waits_for_its_trigger(desk: Desk) -> None:
    with desk.open() as orders:
        never = tp.when("BTCUSDT", "ask", at_most=1) & tp.when(BTC, at_least=ONE)
        assert repr(never) == f"when('BTCUSDT', 'ask', at_most=1) & when({BTC}, 'last', at_least={ONE})"
        waits = orders.submit(BTC, tp.BUY, ASK, ONE, trigger=never)
        armed = report(orders, of=waits, exec_type="pending_new")
        assert armed.status == "armed" and set(orders.open) == {waits}
        at_once = tp.when(BTC, "ask", at_least=1) | tp.when(BTC, "bid", at_most=1)
        orders.replace(waits, price=ASK, quantity=ONE, trigger=at_once)
        fired = None
        while orders.open:
            assert orders.wait(PATIENCE_S)
            for event in orders.poll():
                if isinstance(event, tp.Report) and event.exec_type == "triggered":
                    fired = event
        assert fired is not None and orders.positions == {BTC: ONE}
        wrongs: list[tuple[Callable[[], object], str]] = [
            (lambda: tp.when(BTC), "one of at_least and at_most"),
            (lambda: tp.when(BTC, "mid", at_least=1), "'mid' is not a valid price; use one of"),  # type: ignore[arg-type]
            (lambda: never & at_once, "at most two conditions"),
            (lambda: orders.submit(BTC, tp.BUY, ASK, ONE, trigger=tp.when("NOPE", at_least=1)), "'NOPE' is no symbol"),
        ]
        for wrong, words in wrongs:
            with pytest.raises((TypeError, ValueError), match=words):
                wrong()


@pytest.mark.parametrize("scheme", ["unix", "shm+unix"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_one_task_receives_while_others_send(desk: Desk, scheme: str, loop: object) -> None:
    async def main() -> None:
        with desk.open(f"{scheme}://{desk.folder}/oms.sock") as orders:
            filled: set[int] = set()
            enough = asyncio.Event()

            async def receive() -> None:
                async for event in orders:
                    if isinstance(event, tp.Report) and event.status == "filled":
                        filled.add(event.client_order_id)
                        if len(filled) == 60:
                            enough.set()

            async def send() -> set[int]:
                sent: set[int] = set()
                for _ in range(20):
                    sent.add(orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"), time_in_force="ioc"))
                    await asyncio.sleep(0.002)
                return sent

            receiving = asyncio.create_task(receive())
            await asyncio.sleep(0)
            with pytest.raises(tp.InUse):
                await anext(aiter(orders))
            sent = await asyncio.gather(send(), send(), send())
            await enough.wait()
            assert filled == set.union(*sent)
            # A cancelled task loses no event.
            receiving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await receiving
            id = orders.submit(BTC, tp.BUY, ASK, tp.units("0.001"), time_in_force="ioc")
            async for event in orders:
                if isinstance(event, tp.Report) and (event.client_order_id, event.status) == (id, "filled"):
                    break
            waiting = asyncio.ensure_future(anext(aiter(orders)))
            await asyncio.sleep(0)
            orders.close()
            with pytest.raises(tp.Closed):
                await waiting

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(main(), PATIENCE_S))


def test_wait_any_waits_for_several_subscribers(any_place: Place) -> None:
    bus, names = any_place.bus, [any_place.name, f"{any_place.name}-b", f"{any_place.name}-c"]
    subscribers = [bus.subscribe(name) for name in names]
    publishers = [bus.publisher(name) for name in names]
    try:
        assert tp.wait_any(subscribers, 0.01) == []
        for turn in (2, 0, 1):
            publishers[turn].publish(bytes([turn]), 200)
            ready = tp.wait_any(subscribers, 60)
            assert ready == [subscribers[turn]]
            [message] = ready[0].poll()
            assert isinstance(message, tp.Message) and message.payload == bytes([turn])
        for publisher in publishers:
            publisher.publish(b"x", 200)
        count = 0
        while count < 3:
            count += sum(len(subscriber.poll()) for subscriber in tp.wait_any(subscribers, 60))
        for wrong in ([], [1], subscribers[0]):
            with pytest.raises(TypeError, match="give a list of subscribers"):
                tp.wait_any(wrong)  # type: ignore[arg-type]
        for seconds in (-1, float("inf"), float("nan")):
            with pytest.raises(ValueError, match="is invalid"):
                tp.wait_any(subscribers, seconds)
    finally:
        for subscriber in subscribers:
            subscriber.close()
        for publisher in publishers:
            publisher.close()
        for name in names[1:]:
            bus.remove(name)


def test_events_are_rows() -> None:
    tick = tp.TopOfBook(bid=1, bid_quantity=2, ask=3, ask_quantity=4, symbol=5, event_ns=6)
    row = tp.as_dict(tick)
    assert row == {
        **{"event": "TopOfBook", "symbol": 5, "bid": 1, "bid_quantity": 2, "ask": 3, "ask_quantity": 4},
        **{"event_ns": 6, "wire_age_ns": 0, "stamp": 0, "sequence": None},
    }
    assert json.loads(json.dumps(row)) == row
    assert tp.as_dict(tp.Foreign(b"x", 3, '{"key":"a"}')) == {
        **{"event": "Foreign", "payload": b"x", "sequence": 3, "details": '{"key":"a"}'}
    }
    assert tp.as_dict(tp.Gap(None)) == {"event": "Gap", "missed": None}
    # A row has every field of its event.
    kinds = ("getset_descriptor", "member_descriptor")
    ticks = (tp.TopOfBook, tp.Trade, tp.BookLevel, tp.FeedStatus)
    for kind in (*ticks, tp.Message, tp.Foreign, tp.Gap, tp.Report, tp.Denial, tp.Notice, tp.Pulled):
        names = {name for name, value in vars(kind).items() if type(value).__name__ in kinds}
        assert names == set(tp._events._FIELDS[kind]), kind
    with pytest.raises(TypeError, match="is no event"):
        tp.as_dict(3)  # type: ignore[arg-type]
