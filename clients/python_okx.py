"""PyPI `python-okx`, the exchange's own client: REST, and its two WebSocket classes."""

import asyncio
import json
import sys
from decimal import Decimal
from typing import Any

from okx.Account import AccountAPI
from okx.MarketData import MarketAPI
from okx.PublicData import PublicAPI
from okx.Trade import TradeAPI
from okx.websocket.WsPrivateAsync import WsPrivateAsync
from okx.websocket.WsPublicAsync import WsPublicAsync

from steps import PATIENCE_S, Exchange, Inbox, check, exchange, only, resting_bid, small, step, taking_bid, text

INSTRUMENT = "BTC-USDT"


class Rest:
    """The REST classes, and the facts about the instrument with which orders are made."""

    def __init__(self, at: Exchange) -> None:
        keys = {"api_key": at.key, "api_secret_key": at.secret, "passphrase": at.passphrase}
        public = {"flag": "0", "domain": at.rest, "debug": False}
        self.public, self.market = PublicAPI(**public), MarketAPI(**public)
        self.trade, self.account = TradeAPI(**keys, **public), AccountAPI(**keys, **public)
        found = rows(self.public.get_instruments(instType="SPOT", instId=INSTRUMENT))
        self.instrument = only(found, INSTRUMENT)
        ticker = only(rows(self.market.get_ticker(instId=INSTRUMENT)), "ticker")
        self.tick = Decimal(self.instrument["tickSz"])
        self.far = resting_bid(ticker["bidPx"], self.tick)
        self.near = text(taking_bid(ticker["askPx"], self.tick))
        self.size = text(small(self.instrument["minSz"], self.instrument["lotSz"]))

    def order(self, **name: str) -> dict[str, Any]:
        """Returns an order."""
        return only(rows(self.trade.get_order(instId=INSTRUMENT, **name)), "order")

    def open_orders(self, client_id: str) -> list[dict[str, Any]]:
        """Returns the open orders with a client's id."""
        listed = rows(self.trade.get_order_list(instType="SPOT", instId=INSTRUMENT))
        return [order for order in listed if order["clOrdId"] == client_id]


def rows(answer: dict[str, Any]) -> list[Any]:
    """Returns the rows of an answer that reports success."""
    check(answer["code"] == "0", "the exchange has refused a request", answer)
    return answer["data"]


def acknowledged(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the acknowledgement of one order."""
    row = only(rows(answer), "acknowledgement")
    check(row["sCode"] == "0", "the exchange has refused an order", row)
    return row


def into(inbox: Inbox) -> Any:
    """Returns a callback that takes messages as JSON."""
    return lambda message: inbox.put(message if message == "pong" else json.loads(message))


def of_channel(channel: str, is_wanted: Any = lambda row: True) -> Any:
    """Returns the condition that a message of a channel has a row that is wanted."""
    return lambda message: (
        isinstance(message, dict)
        and message.get("arg", {}).get("channel") == channel
        and any(is_wanted(row) for row in message.get("data", []))
    )


def of_order(order_id: str, state: str) -> Any:
    """Returns the condition that a message reports an order in a state."""
    return of_channel("orders", lambda order: order["ordId"] == order_id and order["state"] == state)


async def private_stream(at: Exchange, inbox: Inbox) -> tuple[WsPrivateAsync, asyncio.Task[None]]:
    """Logs on, and subscribes to orders."""
    stream = WsPrivateAsync(at.key, at.passphrase, at.secret, f"{at.ws}/ws/v5/private")
    task = await stream.start()
    await stream.subscribe([{"channel": "orders", "instType": "ANY"}], into(inbox))
    await inbox.find("logon", lambda message: message.get("event") == "login" and message["code"] == "0")
    await inbox.find("subscription", lambda message: message.get("event") == "subscribe")
    return stream, task


async def trade(at: Exchange) -> None:
    rest = Rest(at)
    check(rows(rest.public.get_system_time())[0]["ts"], "the exchange has a time")
    check(rows(rest.account.get_account_balance()), "the account has a balance")
    step("load", instrument=rest.instrument["instId"], code=rest.instrument["instIdCode"])

    market, orders = Inbox(), Inbox()
    public = WsPublicAsync(f"{at.ws}/ws/v5/public")
    await public.start()
    channels = [{"channel": channel, "instId": INSTRUMENT} for channel in ("tickers", "books", "trades")]
    await public.subscribe(channels, into(market))
    await market.find("ticker", of_channel("tickers"))
    book = await market.find("book", of_channel("books"))
    check(book["action"] == "snapshot" and book["data"][0]["prevSeqId"] == -1, "the book begins anew", book)
    await market.find("subscription to trades", lambda m: m.get("event") == "subscribe" and m["arg"]["channel"] == "trades")
    step("subscribe")

    private, _ = await private_stream(at, orders)
    step("login")

    placed = acknowledged(
        rest.trade.place_order(
            instId=INSTRUMENT, tdMode="cash", side="buy", ordType="limit",
            sz=rest.size, px=text(rest.far), clOrdId="pyokx1",
        )
    )
    order_id = placed["ordId"]
    await orders.find("open order", of_order(order_id, "live"))
    check(rest.order(ordId=order_id)["state"] == "live", "the order is open")
    only(rest.open_orders("pyokx1"), "open order")
    step("place", order=order_id)

    lower = text(rest.far - rest.tick)
    acknowledged(rest.trade.amend_order(instId=INSTRUMENT, ordId=order_id, newPx=lower, reqId="amend1"))
    is_lower = of_channel("orders", lambda order: order["ordId"] == order_id and Decimal(order["px"]) == Decimal(lower))
    await orders.find("amended order", is_lower)
    check(Decimal(rest.order(clOrdId="pyokx1")["px"]) == Decimal(lower), "the price is amended")
    step("amend", price=lower)

    acknowledged(rest.trade.cancel_order(instId=INSTRUMENT, ordId=order_id))
    await orders.find("canceled order", of_order(order_id, "canceled"))
    check(rest.open_orders("pyokx1") == [], "no order is open")
    step("cancel")

    await private.place_order(
        [{
            "instIdCode": rest.instrument["instIdCode"], "tdMode": "cash", "side": "buy", "ordType": "limit",
            "sz": rest.size, "px": rest.near, "clOrdId": "pyokx2",
        }],
        id="fill1",
    )
    answer = await orders.find("acknowledgement", lambda message: message.get("id") == "fill1")
    order_id = acknowledged(answer)["ordId"]
    push = only((await orders.find("fill", of_order(order_id, "filled")))["data"], "order of a message")
    check(push["tradeId"], "the order has a trade", push)
    check(Decimal(push["fillFee"]) < 0 and push["fillFeeCcy"] in ("BTC", "USDT"), "the fill has its fee", push)
    check(push["execType"] == "T" and Decimal(push["fillSz"]) > 0, "the order has taken", push)
    await market.find("trade", of_channel("trades", lambda row: Decimal(row["px"]) == Decimal(push["fillPx"])))
    await market.find("update of the book", lambda m: of_channel("books")(m) and m["action"] == "update")
    step("fill", price=push["fillPx"], fee=push["fillFee"], currency=push["fillFeeCcy"])

    listed = rows(rest.trade.get_fills(instType="SPOT", ordId=order_id))
    fill = next((row for row in listed if row["tradeId"] == push["tradeId"]), None)
    check(fill and Decimal(fill["fee"]) == Decimal(push["fillFee"]), "the fill is listed with its fee", listed)
    check(rest.open_orders("pyokx2") == [], "a filled order is not open")
    step("list", fills=len(listed))
    await public.stop()
    await private.stop()


async def cut(at: Exchange) -> None:
    """The exchange cuts the connection behind the acknowledgement of each order."""
    rest, orders = Rest(at), Inbox()
    private, task = await private_stream(at, orders)
    await private.place_order(
        [{
            "instIdCode": rest.instrument["instIdCode"], "tdMode": "cash", "side": "buy", "ordType": "limit",
            "sz": rest.size, "px": text(rest.far), "clOrdId": "pyokxcut",
        }],
        id="cut1",
    )
    acknowledged(await orders.find("acknowledgement", lambda message: message.get("id") == "cut1"))
    await asyncio.wait([task], timeout=PATIENCE_S)
    check(task.done(), "the exchange has cut the connection")
    # Its error is the cut.
    task.exception()
    step("cut")

    again = Inbox()
    private, _ = await private_stream(at, again)
    order = only(rest.open_orders("pyokxcut"), "open order")
    acknowledged(rest.trade.cancel_order(instId=INSTRUMENT, clOrdId="pyokxcut"))
    await again.find("canceled order", of_order(order["ordId"], "canceled"))
    step("reconnect", order=order["ordId"])
    await private.stop()


if __name__ == "__main__":
    asyncio.run({"trade": trade, "cut": cut}[sys.argv[1]](exchange()))
