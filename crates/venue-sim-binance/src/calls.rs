//! Requests of both APIs: one table of their names on the WebSocket API, their paths on the REST API, their weights,
//! and the functions that answer them.

use crate::account;
use crate::cancel_replace::cancel_replace;
use crate::codes::ApiError;
use crate::market_data;
use crate::orders;
use crate::params::RequestParams;
use crate::spot::{CallContext, SpotMarket};

/// A request of the APIs.
pub(crate) struct ApiCall {
    /// Method on the WebSocket API; empty for none.
    method: &'static str,
    /// Method and path on the REST API.
    rest: (&'static str, &'static str),
    weight: CallWeight,
    pub(crate) answer: CallAnswer,
}

/// Function that answers a request, by the request's security.
#[derive(Clone, Copy)]
pub(crate) enum CallAnswer {
    /// Without a key.
    Public(PublicAnswer),
    /// With a key; changes nothing.
    Account(AccountAnswer),
    /// With a key; changes orders.
    Trade(AccountAnswer),
    /// With a key; places an order.
    Placement(AccountAnswer),
}

/// Answers a public request.
pub(crate) type PublicAnswer = fn(&mut SpotMarket, CallContext, &mut RequestParams) -> Result<String, ApiError>;
/// Answers a request of an account.
pub(crate) type AccountAnswer = fn(&mut SpotMarket, CallContext, usize, &mut RequestParams) -> Result<String, ApiError>;

enum CallWeight {
    Fixed(u64),
    /// With one symbol; for several or all.
    BySymbol(u64, u64),
    /// With this parameter; without it.
    ByParam(&'static str, u64, u64),
    ByLevels,
}

/// Weights of a book by the greatest number of its levels.
const LEVEL_WEIGHTS: [(u64, u64); 3] = [(100, 5), (500, 25), (1_000, 50)];
const MAX_LEVEL_WEIGHT: u64 = 250;

static CALLS: [ApiCall; 23] = {
    use CallAnswer::{Account, Placement, Public, Trade};
    use CallWeight::{ByLevels, ByParam, BySymbol, Fixed};
    [
        call("ping", ("GET", "/api/v3/ping"), Fixed(1), Public(market_data::ping)),
        call("time", ("GET", "/api/v3/time"), Fixed(1), Public(market_data::time)),
        call("exchangeInfo", ("GET", "/api/v3/exchangeInfo"), Fixed(20), Public(market_data::exchange_info)),
        call("depth", ("GET", "/api/v3/depth"), ByLevels, Public(market_data::depth)),
        call("trades.recent", ("GET", "/api/v3/trades"), Fixed(25), Public(market_data::recent_trades)),
        call("trades.aggregate", ("GET", "/api/v3/aggTrades"), Fixed(4), Public(market_data::aggregated_trades)),
        call("ticker.price", ("GET", "/api/v3/ticker/price"), BySymbol(2, 4), Public(market_data::price_ticker)),
        call("ticker.book", ("GET", "/api/v3/ticker/bookTicker"), BySymbol(2, 4), Public(market_data::book_ticker)),
        call("ticker.24hr", ("GET", "/api/v3/ticker/24hr"), BySymbol(2, 80), Public(market_data::day_ticker)),
        call("order.place", ("POST", "/api/v3/order"), Fixed(1), Placement(orders::place)),
        call(
            "order.test",
            ("POST", "/api/v3/order/test"),
            ByParam("computeCommissionRates", 20, 1),
            Account(orders::test_order),
        ),
        call("order.cancel", ("DELETE", "/api/v3/order"), Fixed(1), Trade(orders::cancel)),
        call("order.cancelReplace", ("POST", "/api/v3/order/cancelReplace"), Fixed(1), Placement(cancel_replace)),
        call("order.amend.keepPriority", ("PUT", "/api/v3/order/amend/keepPriority"), Fixed(4), Trade(orders::amend)),
        call("order.status", ("GET", "/api/v3/order"), Fixed(4), Account(account::order_status)),
        call("openOrders.status", ("GET", "/api/v3/openOrders"), BySymbol(6, 80), Account(account::open_orders)),
        call("openOrders.cancelAll", ("DELETE", "/api/v3/openOrders"), Fixed(1), Trade(orders::cancel_all)),
        call("allOrders", ("GET", "/api/v3/allOrders"), Fixed(20), Account(account::all_orders)),
        call("myTrades", ("GET", "/api/v3/myTrades"), ByParam("orderId", 5, 20), Account(account::my_trades)),
        call("account.status", ("GET", "/api/v3/account"), Fixed(20), Account(account::status)),
        call("account.commission", ("GET", "/api/v3/account/commission"), Fixed(20), Account(account::commission)),
        call(
            "account.rateLimits.orders",
            ("GET", "/api/v3/rateLimit/order"),
            Fixed(40),
            Account(account::order_limits),
        ),
        call("", ("GET", "/sapi/v1/capital/config/getall"), Fixed(10), Account(account::coins)),
    ]
};

impl ApiCall {
    /// Returns the request of a method of the WebSocket API.
    pub(crate) fn by_method(method: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.method == method && !method.is_empty())
    }

    /// Returns the request of a method and a path of the REST API.
    pub(crate) fn by_path(method: &str, path: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.rest == (method, path))
    }

    /// Returns the weight of the request with these parameters.
    pub(crate) fn weight(&self, params: &RequestParams) -> u64 {
        match self.weight {
            CallWeight::Fixed(weight) => weight,
            CallWeight::BySymbol(one, many) => {
                if params.has("symbol") {
                    one
                } else {
                    many
                }
            }
            CallWeight::ByParam(name, with, without) => {
                if params.has(name) {
                    with
                } else {
                    without
                }
            }
            CallWeight::ByLevels => {
                let levels = params.peek("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0);
                let weight = LEVEL_WEIGHTS.into_iter().find(|(most, _)| levels <= *most);
                weight.map_or(MAX_LEVEL_WEIGHT, |(_, weight)| weight)
            }
        }
    }

    /// Returns whether the request is one of an account.
    pub(crate) fn is_signed(&self) -> bool {
        !matches!(self.answer, CallAnswer::Public(_))
    }

    /// Returns whether the request changes orders.
    pub(crate) fn is_trade(&self) -> bool {
        matches!(self.answer, CallAnswer::Trade(_) | CallAnswer::Placement(_))
    }

    /// Returns whether the request places an order.
    pub(crate) fn is_placement(&self) -> bool {
        matches!(self.answer, CallAnswer::Placement(_))
    }
}

const fn call(
    method: &'static str,
    rest: (&'static str, &'static str),
    weight: CallWeight,
    answer: CallAnswer,
) -> ApiCall {
    ApiCall { method, rest, weight, answer }
}
