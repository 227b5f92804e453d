"""The client of `bench orders` by the package tickpath: a group of orders in one session, each at its intended time, or as fast
as they go.

    intended, or at once ──submit──> T0, which the OMS's journal has
                    first report, first of the venue <──poll── reports

Stamps are in ticks of the host's clock, as those of the journal are. An order's cause is its intended time.
"""

import os
import select
import sys
import time

sys.path.append(os.path.dirname(__file__))

import tickpath as tp
from bench_client import PENDING, SLEEPS, log_on, missed, play, save, settings, settle, tell, touched
from tickpath import now

COUNT: int = settings["count"]
INTERVAL: int | None = settings["interval_ticks"]
LATE: int = settings["late_ticks"]
FIRST_ID: int = settings["first_id"]
TERMS = tuple(settings[name] for name in ("symbol", "side", "price", "quantity"))
TIME_IN_FORCE: str = settings["time_in_force"]

# A row: first report, first report of the venue, which is this where the OMS has denied the order.
WIDTH = 2
DENIED = 2**64 - 1

# Orders that leave as fast as they go, between two looks at the reports.
HEAR_EVERY = 32

# With nothing new for so long, what is open stays so.
PATIENCE_NS = 5_000_000_000

# Between two looks at a session that has nothing to do: far below half a heartbeat.
IDLE_LOOK_S = 0.5


class Generator:
    """A group, and what became of it."""

    def __init__(self, orders: tp.Orders) -> None:
        self.orders = orders
        self.rows = touched(COUNT * WIDTH)
        self.open = COUNT
        self.denied = self.missed = self.late = self.restamped = 0
        self.last_report = 0

    def paced(self, interval: int) -> None:
        """Each at its intended time, however long the one before took. One is late for which that was not to blame."""
        start = now() + interval
        free = start
        for number in range(COUNT):
            intended = start + number * interval
            at = self.until(intended)
            self.submit(intended)
            self.late += at - max(intended, free) > LATE
            free = now()

    def until(self, intended: int) -> int:
        """Hears reports until a time; gives what it is then, never before."""
        while (at := now()) < intended:
            if not self.hear():
                os.sched_yield()
        return at

    def burst(self) -> None:
        for number in range(COUNT):
            self.submit(None)
            if number % HEAR_EVERY == HEAR_EVERY - 1:
                self.hear()

    def submit(self, cause: int | None) -> None:
        while True:
            try:
                self.orders.submit(*TERMS, time_in_force=TIME_IN_FORCE, cause=cause)
                return
            except tp.NotSent as error:
                if not error.may_pass:
                    raise
            self.restamped += 1
            if not self.hear():
                os.sched_yield()

    def hear(self) -> int:
        """Takes what the OMS says; how much it was."""
        told = self.orders.poll()
        if not told:
            return 0
        at, rows = now(), self.rows
        for event in told:
            if type(event) is not tp.Report:
                self.missed += missed(event)
                continue
            self.denied += event.denial is not None
            place = (event.client_order_id - FIRST_ID) * WIDTH
            if not 0 <= place < len(rows):
                continue
            if rows[place] == 0:
                rows[place] = at
            if rows[place + 1] != 0 or event.exec_type in PENDING:
                continue
            # A denial closes the order, and is no answer of the venue.
            rows[place + 1] = at if event.denial is None else DENIED
            self.open -= 1
            self.last_report = at
        return len(told)

    def hear_all(self) -> None:
        """Hears until the venue has answered each order, or nothing comes."""
        last = time.monotonic_ns()
        while self.open > 0:
            if self.hear():
                last = time.monotonic_ns()
            elif time.monotonic_ns() - last > PATIENCE_NS:
                return
            elif SLEEPS:
                self.orders.wait(0.01)
            else:
                os.sched_yield()

    def next_line(self) -> str:
        """What the bench says next, nothing when it has all. Meanwhile the session is kept alive."""
        while not select.select([sys.stdin], [], [], IDLE_LOOK_S)[0]:
            self.hear()
        return sys.stdin.readline()


def client() -> None:
    with log_on() as orders:
        generator = Generator(orders)
        settle()
        # What the logon brings is heard before the first order.
        generator.hear()
        tell("ready")
        if generator.next_line():
            generator.burst() if INTERVAL is None else generator.paced(INTERVAL)
            generator.hear_all()
            save(settings["out"], generator.rows, COUNT * WIDTH)
            counts = {name: getattr(generator, name) for name in ("denied", "missed", "late", "restamped", "last_report")}
            tell({"result": {**counts, "unanswered": generator.open}})
            generator.next_line()
    tell({"result": None})


play(client)
