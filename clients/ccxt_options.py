"""Public options by which PyPI `ccxt` trades on a simulated exchange, and the order with which it does."""

from decimal import Decimal
from typing import Any, NamedTuple

from steps import Exchange, resting_bid, small, taking_bid

SYMBOL = "BTC/USDT"


class Terms(NamedTuple):
    """Terms of the orders, as ccxt's calls take them."""

    size: float
    near: float
    """A price at which a buyer trades at once."""
    far: float
    """A price that no seller takes."""
    lower: float
    """A tick below it."""


def options(name: str, at: Exchange) -> dict[str, Any]:
    """Returns the options of the exchange `okx` or `binance`."""
    shared = {
        "apiKey": at.key,
        "secret": at.secret,
        # Of ccxt over asyncio; the other one follows REQUESTS_CA_BUNDLE.
        "cafile": at.ca,
        "requests_trust_env": True,
        "enableRateLimit": False,
    }
    if name == "okx":
        return shared | {"password": at.passphrase, "urls": {"api": {"rest": at.rest, "ws": f"{at.ws}/ws/v5"}}}
    spot = {"spot": f"{at.ws}/ws", "ws-api": {"spot": f"{at.ws}/ws-api/v3"}}
    api = {"public": f"{at.rest}/api/v3", "private": f"{at.rest}/api/v3", "sapi": f"{at.rest}/sapi/v1", "ws": spot}
    # Neither margin trading nor futures have their hosts here.
    only_spot = {"defaultType": "spot", "fetchMarkets": {"types": ["spot"]}, "fetchMargins": False}
    return shared | {"urls": {"api": api}, "options": only_spot}


def terms(market: dict[str, Any], ticker: dict[str, Any]) -> Terms:
    """Returns the terms of orders for a market at its present prices."""
    tick, limits = market["precision"]["price"], market["limits"]
    far, near = resting_bid(ticker["bid"], tick), taking_bid(ticker["ask"], tick)
    notional = limits["cost"]["min"] or 0
    size = small(limits["amount"]["min"], market["precision"]["amount"], far, notional)
    return Terms(float(size), float(near), float(far), float(far - Decimal(str(tick))))
