"""Parts of all scripts here: the exchange's address, the steps that a script prints, and waits with a bound.

A script drives one client of other people, unchanged, against a simulated exchange. It prints a line of JSON for each
step that held, and ends with code 0 only if all of them held. `scripts/clients` runs it with the pinned versions.
"""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

PATIENCE_S = 20
"""Max seconds of a wait for a message, an answer or a state."""
TRIES = 8
"""Max tries of what a client does not confirm, such as a subscription."""


@dataclass(frozen=True)
class Exchange:
    """A simulated exchange, and an account on it."""

    rest: str
    """URL of REST, `https://HOST:PORT`."""
    ws: str
    """URL of WebSockets without a path, `wss://HOST:PORT`."""
    ca: str
    """File of the authority that has signed the exchange's certificate."""
    key: str
    secret: str
    passphrase: str


class StepError(Exception):
    """A step that did not hold."""


def exchange() -> Exchange:
    """Returns the exchange that the environment names, where no other user can read the secret."""
    return Exchange(**json.loads(os.environ["TICKPATH_EXCHANGE"]))


def step(name: str, **facts: Any) -> None:
    """Prints a step that held, with what it has seen."""
    print(json.dumps({"step": name, **facts}, default=str), flush=True)


def check(holds: Any, why: str, seen: Any = "") -> None:
    """Fails unless the condition holds."""
    if not holds:
        raise StepError(f"{why}: {seen!r}")


def only(rows: list[Any], what: str) -> Any:
    """Returns the only row of a list."""
    check(len(rows) == 1, f"expected one {what}, not {len(rows)}", rows)
    return rows[0]


def resting_bid(bid: Any, tick: Any) -> Decimal:
    """Returns a price that no seller takes: a tenth below the best bid, on the grid of prices."""
    return on_grid(Decimal(str(bid)) * Decimal("0.9"), tick)


def taking_bid(ask: Any, tick: Any) -> Decimal:
    """Returns a price at which a buyer trades at once, also if the market has moved a little."""
    return on_grid(Decimal(str(ask)) * Decimal("1.01"), tick)


def small(minimum: Any, lot: Any, price: Any = 0, notional: Any = 0) -> Decimal:
    """Returns a hundred times the smallest quantity, of which a fee is not rounded away, or more for a minimum value."""
    lot, least = Decimal(str(lot)), 100 * Decimal(str(minimum))
    if Decimal(str(notional)) > 0:
        least = max(least, Decimal(str(notional)) / Decimal(str(price)))
    return (least / lot).to_integral_value(ROUND_UP) * lot


def on_grid(price: Decimal, tick: Any) -> Decimal:
    """Returns the next lower price on the grid."""
    tick = Decimal(str(tick))
    return (price // tick) * tick


def text(number: Decimal) -> str:
    """Returns a number without an exponent."""
    return format(number.normalize(), "f")


class Inbox:
    """Messages that a client's callbacks have received, in their order."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.arrived = asyncio.Event()

    def put(self, message: Any) -> None:
        """Takes a message; for a callback."""
        self.messages.append(message)
        self.arrived.set()

    async def find(self, what: str, is_wanted: Callable[[Any], Any], seconds: float = PATIENCE_S) -> Any:
        """Returns the first message that is wanted, and waits for it if there is none."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self.arrived.clear()
                    for message in self.messages:
                        if is_wanted(message):
                            return message
                    await self.arrived.wait()
        except TimeoutError:
            raise StepError(f"no {what} came; the last messages: {self.messages[-5:]!r}") from None
