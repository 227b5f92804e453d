"""From a tick to an order at an exchange by ccxt, as people write it: two processes with a bus between them.

exchange ── ccxt.pro ──> watcher ── JSON over the bus ──> strategy ── ccxt ──> exchange

The bus is redis-py on asyncio or the package tickpath, in modules of their own; all else is the same. Stamps are nanoseconds
of the monotonic clock, which all processes of a host share.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from array import array
from importlib import import_module
from time import monotonic_ns as now

sys.path.append(os.path.dirname(__file__))

settings = json.loads(os.environ.pop("TICKPATH_SETTINGS"))
library = import_module(settings["library"])

import ccxt.pro

SYMBOL = "BTC/USDT"
AMOUNT = 0.001

# Prices as integers, as the exchange's process has them.
SCALE = 100_000_000


def tell(what) -> None:
    print(json.dumps(what), flush=True)


def options() -> dict:
    """The options by which ccxt trades at an address that is not the exchange's own."""
    host, account = settings["address"], settings["account"]
    shared = {
        "apiKey": account["key"],
        "secret": account["secret"],
        "cafile": settings["ca"],
        "enableRateLimit": False,
    }
    rest, ws = f"https://{host}", f"wss://{host}"
    if settings["via"] == "okx":
        return shared | {"password": account["passphrase"], "urls": {"api": {"rest": rest, "ws": f"{ws}/ws/v5"}}}
    spot = {"spot": f"{ws}/ws", "ws-api": {"spot": f"{ws}/ws-api/v3"}}
    api = {"public": f"{rest}/api/v3", "private": f"{rest}/api/v3", "sapi": f"{rest}/sapi/v1", "ws": spot}
    only_spot = {"defaultType": "spot", "fetchMarkets": {"types": ["spot"]}, "fetchMargins": False}
    return shared | {"urls": {"api": api}, "options": only_spot}


def is_answered(bid: float) -> bool:
    """Whether the strategy orders at this tick: the exchange takes fewer orders than it sends ticks."""
    steps = (round(bid * SCALE) - settings["first_bid"]) // settings["step"]
    return steps >= 0 and steps % settings["ticks_per_order"] == 0


async def watch(client, bus, rows: array) -> None:
    """Publishes each change of the best quotes."""
    publish = await bus.publisher(settings["topic"])
    # The first quotes come at once, and connect.
    await client.watch_bids_asks([SYMBOL])
    tell("ready")
    while True:
        quote = (await client.watch_bids_asks([SYMBOL]))[SYMBOL]
        watched = now()
        await publish(json.dumps({"symbol": SYMBOL, "bid": quote["bid"], "ask": quote["ask"]}))
        rows.extend((round(quote["bid"] * SCALE), watched, now()))


async def trade(client, bus, rows: array) -> None:
    """Buys at the ask and sells at the bid in turn, each time."""
    messages = await bus.messages(settings["topic"])
    # Connects, as a program does that has asked for its balance.
    await client.fetch_balance()
    tell("ready")
    number, bid = 0, None
    async for data in messages:
        received = now()
        quote = json.loads(data)
        # A fill changes the quantity of a quote, and not its price.
        if quote["bid"] == bid or not is_answered(quote["bid"]):
            continue
        bid = quote["bid"]
        side, price = ("buy", quote["ask"]) if number % 2 == 0 else ("sell", quote["bid"])
        called = now()
        await client.create_order(SYMBOL, "limit", side, AMOUNT, price, {"timeInForce": "IOC"})
        rows.extend((round(quote["bid"] * SCALE), received, called, now()))
        number += 1


async def main() -> None:
    client = getattr(ccxt.pro, settings["via"])(options())
    bus = library.Bus(settings["url"])
    rows = array("Q")
    try:
        await client.load_markets()
        work = asyncio.create_task({"watcher": watch, "strategy": trade}[settings["role"]](client, bus, rows))
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=wait_for_end, args=(loop, ended), daemon=True).start()
        end = asyncio.create_task(ended.wait())
        await asyncio.wait((work, end), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        work.cancel()
    finally:
        await bus.close()
        await client.close()
    with open(settings["out"], "wb") as file:
        rows.tofile(file)
    tell({"result": None})


def wait_for_end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    sys.stdin.readline()
    loop.call_soon_threadsafe(ended.set)


# The whole group is ended from the terminal; there is nothing to say about it.
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    asyncio.run(main())
except Exception as error:
    tell({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
