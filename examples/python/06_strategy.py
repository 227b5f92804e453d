"""Buys below the mean price and sells above it, through an OMS that `tickpath oms init` has set up.

    python examples/python/06_strategy.py DESK [TICKS_URL [TOPIC [EDGE]]]

DESK is the folder of the OMS, which runs with an exchange (docs/python.md has the commands). The prices of the exchange of `init`
do not move: an EDGE of 0 buys at each tick. The ticks are those with which the OMS checks prices, or those of another URL; a
recording, file:///FOLDER, is traded to its end. Ctrl-C ends the strategy.
crates/oms-client/examples/strategy.rs is the same in Rust, with the same orders on the same ticks.
"""

import sys
from pathlib import Path

import tickpath as tp

desk, url, topic, edge, *_ = *sys.argv[1:], *("", "shm://", "oms.ticks", "0.5")[len(sys.argv) - 1 :]
if not desk:
    sys.exit("give the folder of an OMS: 06_strategy.py DESK [TICKS_URL [TOPIC [EDGE]]]")


class Fade(tp.Strategy):
    """Strategy that sends a limit order at the touch for each tick at least an edge away from the mean."""

    def __init__(self, symbol: int, edge: int) -> None:
        self.symbol, self.edge = symbol, edge
        self.quantity = tp.units("0.001")
        self.mean: int | None = None

    def on_tick(self, tick: tp.TopOfBook | tp.Trade, orders: tp.Orders) -> None:
        if not isinstance(tick, tp.TopOfBook) or tick.symbol != self.symbol:
            return
        middle = (tick.bid + tick.ask) >> 1
        if self.mean is None:
            self.mean = middle
        away = middle - self.mean
        self.mean += away >> 4
        if away <= -self.edge:
            orders.submit(tick.symbol, tp.BUY, tick.ask, self.quantity, time_in_force="ioc", cause=tick)
        elif away >= self.edge:
            orders.submit(tick.symbol, tp.SELL, tick.bid, self.quantity, time_in_force="ioc", cause=tick)

    def on_report(self, report: tp.Report, orders: tp.Orders) -> None:
        if report.denial is not None:
            print(f"denied: {report.denial}")
        elif report.exec_type == "trade":
            print(f"filled {tp.decimal(report.last_quantity)} at {tp.decimal(report.last_price)}")


folder = Path(desk)
for file in ("instruments.csv", "trader.password"):
    if not (folder / file).exists():
        sys.exit(f"{desk} has no {file}; make the files of an OMS with: tickpath oms init --folder FOLDER")
symbols = tp.instruments(folder / "instruments.csv")
password = (folder / "trader.password").read_text().strip()
print(f"trading {topic!r} of {url}", flush=True)
tp.run(
    Fade(symbols["BTCUSDT"], tp.units(edge)),
    ticks=url,
    topic=topic,
    orders=f"shm+unix://{folder.absolute()}/oms.sock",
    user="trader",
    password=password,
    account=1,
    wait="busy",
)
