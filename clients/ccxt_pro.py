"""PyPI `ccxt` over WebSockets, `ccxt.pro`: `ccxt_pro.py trade|cut okx|binance`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import ccxt.pro

from ccxt_options import SYMBOL, options, terms
from steps import PATIENCE_S, TRIES, Inbox, StepError, check, exchange, only, step

PAUSE_S = 2
"""Seconds between two tries."""


async def collect(inbox: Inbox, watch: Callable[[], Awaitable[list[Any]]]) -> None:
    """Puts all that a `watch` call brings into an inbox, until the connection ends."""
    while True:
        for item in await watch():
            # The client changes its cached items later.
            inbox.put(dict(item))


class Orders:
    """The private channel: orders and fills, collected until the connection ends."""

    def __init__(self, client: Any) -> None:
        self.orders, self.fills = Inbox(), Inbox()
        self.tasks = [
            asyncio.create_task(collect(self.orders, lambda: client.watch_orders(SYMBOL))),
            asyncio.create_task(collect(self.fills, lambda: client.watch_my_trades(SYMBOL))),
        ]

    async def find(self, order: str, status: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """Returns an order, once it has a status."""
        return await self.orders.find(
            f"{status} order", lambda found: found["id"] == order and found["status"] == status, seconds
        )

    async def ended(self) -> None:
        """Waits for the end of the connection."""
        done, _ = await asyncio.wait(self.tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        check(done, "the exchange has cut the connection")
        error = done.pop().exception()
        check(isinstance(error, ccxt.NetworkError), "the connection is lost", error)
        await self.close()

    async def close(self) -> None:
        """Ends the collection."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def trade(name: str, client: Any) -> None:
    market = (await client.load_markets())[SYMBOL]
    step("load", symbol=market["symbol"], id=market["id"])

    at = terms(market, await client.fetch_ticker(SYMBOL))
    watched = {
        "ticker": asyncio.create_task(client.watch_ticker(SYMBOL)),
        "quotes": asyncio.create_task(client.watch_bids_asks([SYMBOL])),
        "trades": asyncio.create_task(client.watch_trades(SYMBOL)),
    }
    book = await asyncio.wait_for(client.watch_order_book(SYMBOL), PATIENCE_S)
    check(book["bids"] and book["asks"], "the book has two sides", book)
    step("subscribe", ask=book["asks"][0][0])

    await client.authenticate()
    private = Orders(client)
    await private_channel(client, private, at)
    step("login")

    placed = (await client.create_order_ws(SYMBOL, "limit", "buy", at.size, at.far))["id"]
    await private.find(placed, "open")
    step("place", order=placed)

    # Binance replaces the order by another one.
    amended = (await client.edit_order_ws(placed, SYMBOL, "limit", "buy", at.size, at.lower))["id"]
    await private.orders.find("amended order", lambda found: found["id"] == amended and found["price"] == at.lower)
    step("amend", order=amended, price=at.lower)

    await client.cancel_order_ws(amended, SYMBOL)
    await private.find(amended, "canceled")
    step("cancel")

    # The client does not show whether a public subscription is confirmed: trades are repeated until each has come.
    filled = []
    for _ in range(TRIES):
        filled.append((await client.create_order_ws(SYMBOL, "limit", "buy", at.size, at.near))["id"])
        await asyncio.wait(watched.values(), timeout=PAUSE_S)
        if all(task.done() for task in watched.values()):
            break
    silent = [what for what, task in watched.items() if not task.done()]
    check(silent == [], "each public channel has sent", silent)
    check((await watched["ticker"])["symbol"] == SYMBOL, "the ticker has its market")
    check((await watched["quotes"])[SYMBOL]["ask"] > 0, "the quotes have an ask")
    check((await watched["trades"])[0]["price"] > 0, "the trade has a price")
    for order in filled:
        await private.find(order, "closed")
    fill = await private.fills.find("fill", lambda found: found["order"] == filled[0])
    check(fill["fee"]["cost"] != 0 and fill["fee"]["currency"] in ("BTC", "USDT"), "the fill has its fee", fill)
    step("fill", orders=len(filled), fee=fill["fee"])

    listed = [found for found in await client.fetch_my_trades(SYMBOL) if found["order"] in filled]
    check(len(listed) == len(filled), "each fill is listed once", listed)
    check(await client.fetch_open_orders(SYMBOL) == [], "no order is open")
    step("list", fills=len(listed))
    await private.close()


async def private_channel(client: Any, private: Orders, at: Any) -> None:
    """The client shows no confirmation of its subscription: orders are placed and canceled by REST until one comes."""
    for attempt in range(TRIES):
        order = (await client.create_order(SYMBOL, "limit", "buy", at.size, at.far))["id"]
        await client.cancel_order(order, SYMBOL)
        try:
            await private.find(order, "canceled", PAUSE_S)
            return
        except StepError:
            check(attempt + 1 < TRIES, "the private channel is open")


async def cut(name: str, client: Any) -> None:
    """The exchange cuts the connection behind the acknowledgement of each order."""
    market = (await client.load_markets())[SYMBOL]
    at = terms(market, await client.fetch_ticker(SYMBOL))
    await client.authenticate()
    private = Orders(client)
    # For Binance the client sends its own word on beside the exchange's, and the exchange refuses a parameter too many.
    params = {"newClientOrderId" if name == "binance" else "clientOrderId": "ccxtcut1"}
    placed = (await client.create_order_ws(SYMBOL, "limit", "buy", at.size, at.far, params))["id"]
    await private.ended()
    step("cut", order=placed)

    await client.authenticate()
    private = Orders(client)
    only([order for order in await client.fetch_open_orders(SYMBOL) if order["id"] == placed], "open order")
    await client.cancel_order(placed, SYMBOL)
    check((await client.fetch_order(placed, SYMBOL))["status"] == "canceled", "the order is canceled")
    await private_channel(client, private, at)
    step("reconnect", order=placed)
    await private.close()


async def main(phase: str, name: str) -> None:
    client = getattr(ccxt.pro, name)(options(name, exchange()))
    try:
        await {"trade": trade, "cut": cut}[phase](name, client)
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
