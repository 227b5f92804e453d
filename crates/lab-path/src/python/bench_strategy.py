"""The strategy of `bench path` by the package tickpath. It decides as ours does (`decision.rs`): a limit IOC at the touch on
each tick, buying and selling in turn.

    topic ──poll──> tick, seen ──submit──> T0, which the OMS's journal has
                    first report, first of the venue <──poll── reports

Stamps are in ticks of the host's clock, as those of the topic and of the journal are.
"""

import os
import sys

sys.path.append(os.path.dirname(__file__))

import tickpath as tp
from bench_client import OF_OMS, SLEEPS, WAIT, Quiet, listen, log_on, missed, play, save, settings, settle, tell, touched
from tickpath import now

COUNT: int = settings["count"]
SYMBOL: int = settings["symbol"]
QUANTITY: int = settings["quantity"]
FIRST_ID: int = settings["first_id"]

# A row: tick, seen, first report, first report of the venue; and where in it the last two are.
NO_ROW = (0, 0, 0, 0)
WIDTH, ACKED, ACCEPTED = len(NO_ROW), 2, 3

# A report does not wake who sleeps for ticks: so late it is heard where nothing else comes.
LOOK_S = 0.001


class Strategy:
    """What it knows of the market, and what became of its orders."""

    def __init__(self, orders: tp.Orders) -> None:
        self.orders = orders
        self.bid = self.ask = 0
        self.ticks, self.seen = touched(COUNT), 0
        self.rows, self.sent = touched(COUNT * WIDTH), 0
        self.missed = self.denied = self.lapped = self.restamped = 0

    def take(self, event: tp.Event) -> None:
        """Anything that the topic has brought."""
        at = now()
        if type(event) is tp.TopOfBook:
            if event.symbol == SYMBOL:
                self.bid, self.ask = event.bid, event.ask
        elif type(event) is tp.Gap:
            self.missed += event.missed or 0
            return
        elif type(event) is tp.Foreign or type(event) is tp.FeedStatus:
            # What is no tick of ours is nothing to trade on.
            return
        self.answer(event, at)
        if self.seen == len(self.ticks):
            self.ticks.append(0)
        self.ticks[self.seen] = event.stamp
        self.seen += 1

    def answer(self, tick: tp.TopOfBook | tp.Trade | tp.BookLevel | tp.Message, at: int) -> None:
        """The decision, and the order."""
        side, price = (tp.BUY, self.ask) if self.sent % 2 == 0 else (tp.SELL, self.bid)
        # Before the first quote there is no touch.
        if price == 0:
            return
        while True:
            try:
                self.orders.submit(SYMBOL, side, price, QUANTITY, time_in_force="ioc", cause=tick)
                break
            except tp.NotSent as error:
                if not error.may_pass:
                    raise
            self.restamped += 1
            self.hear()
            os.sched_yield()
        place = self.sent * WIDTH
        if place == len(self.rows):
            self.rows.extend(NO_ROW)
        self.rows[place], self.rows[place + 1] = tick.stamp, at
        self.sent += 1

    def hear(self) -> int:
        """Takes what the OMS says; how much it was."""
        told = self.orders.poll()
        if not told:
            return 0
        at, rows = now(), self.rows
        for event in told:
            if type(event) is not tp.Report:
                self.lapped += missed(event)
                continue
            self.denied += event.denial is not None
            number = event.client_order_id - FIRST_ID
            if not 0 <= number < self.sent:
                continue
            place = number * WIDTH
            if rows[place + ACKED] == 0:
                rows[place + ACKED] = at
            if rows[place + ACCEPTED] == 0 and event.exec_type not in OF_OMS:
                rows[place + ACCEPTED] = at
        return len(told)


def strategy() -> None:
    with (
        log_on() as orders,
        tp.connect(settings["target"]) as bus,
        bus.subscribe(settings["topic"], wait=WAIT) as topic,
    ):
        trader, quiet = Strategy(orders), Quiet()
        settle()
        listen()
        tell("ready")
        while True:
            events = topic.poll()
            for event in events:
                trader.take(event)
                trader.hear()
            if events or trader.hear():
                quiet.ends()
            elif quiet.is_over():
                break
            elif SLEEPS:
                topic.wait(LOOK_S)
            else:
                os.sched_yield()
        reconnects = topic.reconnects
    save(settings["out"], trader.rows, trader.sent * WIDTH)
    save(settings["out_ticks"], trader.ticks, trader.seen)
    counts = {name: getattr(trader, name) for name in ("missed", "denied", "lapped", "restamped")}
    tell({"result": {"orders": trader.sent, "reconnects": reconnects, **counts}})


play(strategy)
