"""PyPI `ccxt` in the ways by which it trades, for `tickpath explain`: `ccxt_calls.py trade okx|binance`."""

import asyncio
import sys
from typing import Any

import ccxt
import ccxt.pro

from ccxt_options import SYMBOL, options, terms
from steps import PATIENCE_S, check, exchange, step

ORDERS = 4


def blocking(name: str) -> None:
    client = getattr(ccxt, name)(options(name, exchange()))
    at = terms(client.load_markets()[SYMBOL], client.fetch_ticker(SYMBOL))
    for _ in range(ORDERS):
        placed = client.create_order(SYMBOL, "limit", "buy", at.size, at.far)["id"]
        client.cancel_order(placed, SYMBOL)
    step("blocking", orders=ORDERS)


async def rest(name: str) -> None:
    import ccxt.async_support

    client = getattr(ccxt.async_support, name)(options(name, exchange()))
    try:
        at = terms((await client.load_markets())[SYMBOL], await client.fetch_ticker(SYMBOL))
        for _ in range(ORDERS):
            placed = (await client.create_order(SYMBOL, "limit", "buy", at.size, at.far))["id"]
            await client.cancel_order(placed, SYMBOL)
    finally:
        await client.close()
    step("asyncio", orders=ORDERS)


async def stream(name: str) -> None:
    client = getattr(ccxt.pro, name)(options(name, exchange()))
    try:
        at = terms((await client.load_markets())[SYMBOL], await client.fetch_ticker(SYMBOL))
        await watched(client)
        for _ in range(ORDERS):
            # An order that rests changes the book.
            change = asyncio.create_task(watched(client))
            placed = (await client.create_order_ws(SYMBOL, "limit", "buy", at.size, at.far))["id"]
            await change
            await client.cancel_order_ws(placed, SYMBOL)
    finally:
        await client.close()
    step("stream", orders=ORDERS)


async def watched(client: Any) -> None:
    """Waits for a message of the order book."""
    book = await asyncio.wait_for(client.watch_order_book(SYMBOL), PATIENCE_S)
    check(book["asks"], "the book has asks", book)


if __name__ == "__main__":
    blocking(sys.argv[2])
    asyncio.run(rest(sys.argv[2]))
    asyncio.run(stream(sys.argv[2]))
