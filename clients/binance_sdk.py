"""PyPI `binance-sdk-spot`, the exchange's own client: REST, the WebSocket API and the market streams."""

import asyncio
import sys
from decimal import Decimal
from typing import Any

from binance_common.configuration import (
    ConfigurationRestAPI,
    ConfigurationWebSocketAPI,
    ConfigurationWebSocketStreams,
)
from binance_sdk_spot.spot import Spot

from steps import PATIENCE_S, Exchange, Inbox, check, exchange, only, resting_bid, small, step, taking_bid

SYMBOL = "BTCUSDT"
STREAM = SYMBOL.lower()
REST_TIMEOUT_MS = PATIENCE_S * 1_000
LIMIT = {"symbol": SYMBOL, "side": "BUY", "type": "LIMIT", "time_in_force": "GTC"}


def client(at: Exchange) -> Spot:
    keys = {"api_key": at.key, "api_secret": at.secret}
    return Spot(
        config_rest_api=ConfigurationRestAPI(**keys, base_path=at.rest, timeout=REST_TIMEOUT_MS),
        config_ws_api=ConfigurationWebSocketAPI(**keys, stream_url=f"{at.ws}/ws-api/v3"),
        config_ws_streams=ConfigurationWebSocketStreams(stream_url=at.ws),
    )


def plain(value: Any) -> Any:
    """Returns the client's models as JSON."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if getattr(value, "actual_instance", None) is not None:
        return plain(value.actual_instance)
    return value.to_dict() if hasattr(value, "to_dict") else value


def result(answer: Any) -> Any:
    """Returns the result of an answer on the WebSocket API that reports success."""
    found = plain(answer.data())
    check(isinstance(found, dict) and found.get("status") == 200, "the exchange has refused a request", found)
    return found["result"]


class Market:
    """The facts with which orders are made."""

    def __init__(self, spot: Spot) -> None:
        self.rest = spot.rest_api
        info = only(plain(self.rest.exchange_info(symbol=SYMBOL).data())["symbols"], SYMBOL)
        filters = {found["filterType"]: found for found in info["filters"] if found}
        notional = filters.get("NOTIONAL") or filters.get("MIN_NOTIONAL") or {"minNotional": "0"}
        quotes = plain(self.rest.ticker_book_ticker(symbol=SYMBOL).data())
        lot, tick = filters["LOT_SIZE"], filters["PRICE_FILTER"]["tickSize"]
        self.far, self.near = resting_bid(quotes["bidPrice"], tick), taking_bid(quotes["askPrice"], tick)
        self.size = small(lot["minQty"], lot["stepSize"], self.far, notional["minNotional"])

    def open_orders(self) -> list[dict[str, Any]]:
        return plain(self.rest.get_open_orders(symbol=SYMBOL).data())


async def private_stream(spot: Spot, events: Inbox) -> Any:
    """Opens the WebSocket API, and subscribes to the account's events by a signed request."""
    api = await spot.websocket_api.create_connection()
    check(api is not None, "the WebSocket API accepts the connection")
    subscribed = await api.user_data_stream_subscribe_signature()
    subscribed.stream.on("message", lambda event: events.put(plain(event)))
    return api


def of_order(order_id: int, status: str) -> Any:
    """Returns the condition that an event reports an order in a status."""
    return lambda event: event.get("i") == order_id and event.get("X") == status


def is_same_trade(message: dict[str, Any], event: dict[str, Any]) -> bool:
    """Returns whether a public trade has the price and the quantity of a fill."""
    return (Decimal(message["p"]), Decimal(message["q"])) == (Decimal(event["L"]), Decimal(event["l"]))


async def trade(at: Exchange) -> None:
    spot, market_data, events = client(at), Inbox(), Inbox()
    market = Market(spot)
    check(plain(spot.rest_api.time().data())["serverTime"] > 0, "the exchange has a time")
    check(plain(spot.rest_api.get_account().data())["balances"], "the account has balances")
    step("load", symbol=SYMBOL, size=market.size)

    streams = await spot.websocket_streams.create_connection()
    check(streams is not None, "the streams accept the connection")
    opened = {
        "bookTicker": await streams.book_ticker(symbol=STREAM),
        "trade": await streams.trade(symbol=STREAM),
        "depth": await streams.diff_book_depth(symbol=STREAM, update_speed="100ms"),
    }
    for kind, stream in opened.items():
        stream.on("message", lambda message, kind=kind: market_data.put({"kind": kind} | plain(message)))
    # The answer also confirms the subscriptions, which were sent before on the same connection.
    listed = await streams.list_subscribe()
    wanted = {f"{STREAM}@bookTicker", f"{STREAM}@trade", f"{STREAM}@depth@100ms"}
    check(listed and set(listed["result"]) == wanted, "each stream is subscribed", listed)
    book = plain(spot.rest_api.depth(symbol=SYMBOL, limit=5).data())
    check(book["bids"] and book["asks"], "the book has two sides", book)
    step("subscribe", streams=sorted(wanted))

    api = await private_stream(spot, events)
    step("login")

    placed = result(await api.order_place(**LIMIT, quantity=2 * market.size, price=market.far))
    order_id = placed["orderId"]
    await events.find("open order", of_order(order_id, "NEW"))
    check([order["orderId"] for order in market.open_orders()] == [order_id], "the order is open")
    step("place", order=order_id)

    amended = result(await api.order_amend_keep_priority(symbol=SYMBOL, order_id=order_id, new_qty=market.size))
    check(Decimal(amended["amendedOrder"]["qty"]) == market.size, "the quantity is amended", amended)
    order = result(await api.order_status(symbol=SYMBOL, order_id=order_id))
    check(Decimal(order["origQty"]) == market.size and order["status"] == "NEW", "the order is still open", order)
    step("amend", quantity=order["origQty"])

    result(await api.order_cancel(symbol=SYMBOL, order_id=order_id))
    await events.find("canceled order", of_order(order_id, "CANCELED"))
    check(market.open_orders() == [], "no order is open")
    step("cancel")

    # By REST, where this client sends all parameters of a POST in the query.
    terms = {"quantity": market.size, "price": market.near, "new_order_resp_type": "FULL"}
    filled = plain(spot.rest_api.new_order(**LIMIT, **terms).data())
    order_id = filled["orderId"]
    check(filled["status"] == "FILLED" and filled["fills"], "the order is filled", filled)
    event = await events.find("fill", of_order(order_id, "FILLED"))
    check(event["x"] == "TRADE" and Decimal(event["n"]) > 0 and event["N"], "the fill has its fee", event)
    for kind in opened:
        await market_data.find(kind, lambda message, kind=kind: message["kind"] == kind)
    await market_data.find("trade of the fill", lambda message: message["kind"] == "trade" and is_same_trade(message, event))
    step("fill", price=event["L"], fee=event["n"], currency=event["N"])

    trades = plain(spot.rest_api.my_trades(symbol=SYMBOL, order_id=order_id).data())
    check([found["id"] for found in trades] == [event["t"]], "the fill is listed once", trades)
    check(Decimal(trades[0]["commission"]) == Decimal(event["n"]), "the fill is listed with its fee", trades)
    check(market.open_orders() == [], "a filled order is not open")
    step("list", fills=len(trades))
    await spot.websocket_api.close_connection()
    await spot.websocket_streams.close_connection()


async def cut(at: Exchange) -> None:
    """The exchange cuts the connection behind the acknowledgement of each order."""
    spot, events = client(at), Inbox()
    market = Market(spot)
    api = await private_stream(spot, events)
    ended = asyncio.Event()
    api.on_connection("close", ended.set)
    placed = result(
        await api.order_place(**LIMIT, quantity=market.size, price=market.far, new_client_order_id="sdkcut1")
    )
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    step("cut", order=placed["orderId"])

    again = Inbox()
    await private_stream(spot, again)
    order = only(market.open_orders(), "open order")
    check((order["orderId"], order["clientOrderId"]) == (placed["orderId"], "sdkcut1"), "the order is placed", order)
    spot.rest_api.delete_order(symbol=SYMBOL, orig_client_order_id="sdkcut1")
    await again.find("canceled order", of_order(placed["orderId"], "CANCELED"))
    step("reconnect", order=placed["orderId"])
    await spot.websocket_api.close_connection()


if __name__ == "__main__":
    asyncio.run({"trade": trade, "cut": cut}[sys.argv[1]](exchange()))
