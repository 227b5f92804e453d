"""PyPI `ccxt` over REST: `ccxt_sync.py trade okx|binance`."""

import sys

import ccxt

from ccxt_options import SYMBOL, options, terms
from steps import check, exchange, only, step


def trade(name: str) -> None:
    client = getattr(ccxt, name)(options(name, exchange()))
    market = client.load_markets()[SYMBOL]
    check(client.fetch_time() > 0, "the exchange has a time")
    step("load", symbol=market["symbol"], id=market["id"])

    at = terms(market, client.fetch_ticker(SYMBOL))
    book = client.fetch_order_book(SYMBOL, 5)
    check(book["bids"] and book["asks"], "the book has two sides", book)
    client.fetch_trades(SYMBOL)
    step("market", ask=book["asks"][0][0])

    balance = client.fetch_balance()
    check(balance["USDT"]["free"] > 0, "the account has a balance", balance["USDT"])
    step("account", free=balance["USDT"]["free"])

    placed = client.create_order(SYMBOL, "limit", "buy", at.size, at.far)["id"]
    only([order for order in client.fetch_open_orders(SYMBOL) if order["id"] == placed], "open order")
    step("place", order=placed)

    # Binance replaces the order by another one.
    amended = client.edit_order(placed, SYMBOL, "limit", "buy", at.size, at.lower)["id"]
    order = client.fetch_order(amended, SYMBOL)
    check(order["status"] == "open" and order["price"] == at.lower, "the price is amended", order)
    step("amend", order=amended, price=order["price"])

    client.cancel_order(amended, SYMBOL)
    check(client.fetch_order(amended, SYMBOL)["status"] == "canceled", "the order is canceled")
    mine = [order for order in client.fetch_open_orders(SYMBOL) if order["id"] in (placed, amended)]
    check(mine == [], "no order is open", mine)
    step("cancel")

    filled = client.create_order(SYMBOL, "limit", "buy", at.size, at.near)["id"]
    order = client.fetch_order(filled, SYMBOL)
    check(order["status"] == "closed" and order["filled"] == at.size, "the order is filled", order)
    step("fill", order=filled, price=order["average"])

    trades = [trade for trade in client.fetch_my_trades(SYMBOL) if trade["order"] == filled]
    fill = only(trades, "fill")
    check(fill["takerOrMaker"] == "taker" and fill["amount"] == at.size, "the order has taken", fill)
    check(fill["fee"]["cost"] > 0 and fill["fee"]["currency"] in ("BTC", "USDT"), "the fill has its fee", fill["fee"])
    step("list", fee=fill["fee"])


if __name__ == "__main__":
    trade(sys.argv[2])
