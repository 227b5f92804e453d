"""PyPI `python-okx` in the ways by which it trades, for `tickpath explain`: `python_okx_calls.py trade`."""

import asyncio

from okx.websocket.WsPrivateAsync import WsPrivateAsync
from okx.websocket.WsPublicAsync import WsPublicAsync

from python_okx import INSTRUMENT, Rest, acknowledged, into, of_channel
from steps import Exchange, Inbox, exchange, step, text

ORDERS = 4


def rest_orders(rest: Rest) -> None:
    for _ in range(ORDERS):
        placed = acknowledged(
            rest.trade.place_order(
                instId=INSTRUMENT, tdMode="cash", side="buy", ordType="limit", sz=rest.size, px=text(rest.far)
            )
        )
        acknowledged(rest.trade.cancel_order(instId=INSTRUMENT, ordId=placed["ordId"]))
    step("rest", orders=ORDERS)


async def stream_orders(at: Exchange, rest: Rest) -> None:
    market, answers = Inbox(), Inbox()
    public = WsPublicAsync(f"{at.ws}/ws/v5/public")
    await public.start()
    await public.subscribe([{"channel": "books", "instId": INSTRUMENT}], into(market))
    await market.find("book", of_channel("books"))
    private = WsPrivateAsync(at.key, at.passphrase, at.secret, f"{at.ws}/ws/v5/private")
    private.callback = into(answers)
    await private.start()
    await private.login()
    await answers.find("logon", lambda message: message.get("event") == "login" and message["code"] == "0")
    order = {
        "instIdCode": rest.instrument["instIdCode"], "tdMode": "cash", "side": "buy", "ordType": "limit",
        "sz": rest.size, "px": text(rest.far),
    }
    for number in range(ORDERS):
        await private.place_order([order], id=f"place{number}")
        placed = acknowledged(await answers.find("answer", lambda message: message.get("id") == f"place{number}"))
        cancel = {"instIdCode": rest.instrument["instIdCode"], "ordId": placed["ordId"]}
        await private.cancel_order([cancel], id=f"cancel{number}")
        acknowledged(await answers.find("answer", lambda message: message.get("id") == f"cancel{number}"))
    await market.find("update of the book", lambda m: of_channel("books")(m) and m["action"] == "update")
    step("stream", orders=ORDERS)
    await public.stop()
    await private.stop()


async def main() -> None:
    at = exchange()
    rest = Rest(at)
    rest_orders(rest)
    await stream_orders(at, rest)


if __name__ == "__main__":
    asyncio.run(main())
