"""Details of reports: an OMS trades over a line to a simulated OKX, and a session receives what the exchange sends beside its
reports, each detail once, also over a lost connection."""

import copy
import pickle
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tickpath as tp
from desk import BTC, COMMAND, PATIENCE_S, Desk, await_text

needs_command = pytest.mark.skipif(COMMAND is None, reason="TICKPATH names no command: TICKPATH=target/debug/tickpath")

NEW_LINES = "#lines = [{ url ="


class OkxDesk(Desk):
    """A desk whose venue is a simulated OKX."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.facts = folder / "okx.facts"
        with self.facts.open("wb") as out:
            command = [self.command, "exchange", "--as", "okx", "--no-tls", "--ticks", f"shm://{self.ticks}"]
            self.running["okx"] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out)
        await_text(self.facts, "\nready ")
        keys = self.folder / "okx.toml"
        keys.touch(0o600)
        keys.write_text("".join(f'{name} = "{self.fact(name)}"\n' for name in ("key", "secret", "passphrase")))
        (folder / "instruments.csv").unlink()
        fetch = [self.command, "instruments", "fetch", "okx", "--url", self.fact("rest"), "--venue", "SIM"]
        subprocess.run([*fetch, "--to", str(folder / "instruments.csv")], check=True, capture_output=True)
        line = f'lines = [{{ url = "okx+{self.fact("private")}", credentials = "okx.toml" }}]'
        self.change("oms.toml", NEW_LINES, f"{line}\n{NEW_LINES}")
        self.change("oms.toml", "#numbered = true", "numbered = false")
        self.symbols = tp.instruments(folder / "instruments.csv")

    def fact(self, name: str) -> str:
        facts = (line.split(maxsplit=1) for line in self.facts.read_text().splitlines() if line.strip())
        return next(rest[0] for first, *rest in facts if first == name)


@pytest.fixture
def okx(tmp_path: Path) -> Iterator[OkxDesk]:
    desk = OkxDesk(tmp_path)
    try:
        yield desk
    finally:
        desk.close()


def quote(publisher: tp.Publisher) -> None:
    """Publishes the prices that the exchange and the OMS take."""
    five = tp.units(5)
    publisher.publish(
        tp.TopOfBook(symbol=BTC, bid=tp.units(61_799), bid_quantity=five, ask=tp.units(61_800), ask_quantity=five)
    )


def await_notice(orders: tp.Orders, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not any(isinstance(event, tp.Notice) and event.what == what for event in orders.poll()):
        assert time.monotonic() < end, f"no notice '{what}'"
        orders.wait(0.1)


def fill(orders: tp.Orders, publisher: tp.Publisher) -> tuple[tp.Report, tp.ReportDetail]:
    """Buys at the offer; returns the report of the fill and the detail behind it."""
    end, filled = time.monotonic() + PATIENCE_S, None
    id = 0
    while time.monotonic() < end:
        if id == 0:
            quote(publisher)
            id = orders.submit(BTC, tp.BUY, tp.units(61_900), tp.units("0.01"), time_in_force="ioc")
        orders.wait(0.1)
        for event in orders.poll():
            if isinstance(event, tp.Report) and event.client_order_id == id and event.denial is not None:
                # Without a price the OMS denies every order.
                assert event.denial.name in ("NoReference", "StaleReference"), event
                id = 0
            elif isinstance(event, tp.Report) and event.client_order_id == id and event.exec_type == "trade":
                filled = event
            elif isinstance(event, tp.ReportDetail) and filled and event.exec_id == filled.exec_id:
                return filled, event
    raise AssertionError(f"no detail of order {id}; its fill: {filled}")


@needs_command
def test_a_fill_has_its_fee_over_a_restart_of_the_oms(okx: OkxDesk) -> None:
    with tp.connect("shm://") as bus, bus.publisher(okx.ticks) as publisher:
        quote(publisher)
        okx.start("oms")
        with okx.open() as orders:
            filled, detail = fill(orders, publisher)
            assert (detail.order_id, detail.exec_id) == (filled.order_id, filled.exec_id)
            # OKX takes the fee of a buyer out of what it buys: 0.1 % of 0.01.
            assert (detail.fee, detail.fee_currency, detail.liquidity) == (10**11, "BTC", "taker")
            assert detail.venue_received_ns > 0 and detail.text == ""
            okx.kill("oms")
            await_notice(orders, "disconnected")
            okx.start("oms")
            await_notice(orders, "connected")
            again, other = fill(orders, publisher)
            assert (other.number, other.exec_id) == (detail.number + 1, again.exec_id)
            assert other.exec_id != detail.exec_id


def test_details_can_be_created_pickled_and_shown() -> None:
    detail = tp.ReportDetail(number=7, fee=-(1 << 100), fee_currency="USDT", liquidity="maker", text="late")
    assert pickle.loads(pickle.dumps(detail)) == copy.deepcopy(detail) == detail
    assert "liquidity='maker'" in repr(detail)
    row = tp.as_dict(detail)
    assert (row["event"], row["fee"], row["text"]) == ("ReportDetail", -(1 << 100), "late")
    with pytest.raises(TypeError, match="'both' is not one of maker, other, taker, unknown"):
        tp.ReportDetail(liquidity="both")


def test_a_strategy_receives_details_by_default_without_effect() -> None:
    class Mine(tp.Strategy):
        pass

    assert Mine().on_detail(tp.ReportDetail(), None) is None  # type: ignore[arg-type]
