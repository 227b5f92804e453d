//! The REST interface: one table of paths, and the answers in OKX's form.

use serde_json::{Map, Value, json};
use tickpath_venue_sim_web::{WebAnswer, WebRequest};

use crate::account_rows::{balance_row, configuration_row, fee_row};
use crate::audience::user_text;
use crate::cancel_timers::CancelTimers;
use crate::codes::{
    BAD_JSON, EMPTY_BODY, EXPIRED_REQUEST, OkxRefusal, PARAMETER, RATE_LIMIT, TIMED_OUT, TOO_MANY_ORDERS,
    TOO_MANY_REQUESTS, WRONG_METHOD,
};
use crate::depth_stream::{MAX_LEVELS, book_text};
use crate::exchange_clock::ExchangeClock;
use crate::fields::{ms_text, text_field};
use crate::instruments::{currencies, currency_row, find_instrument, instrument_row};
use crate::limits::OrderOperation;
use crate::market::MarketBoard;
use crate::orders::{MAX_BATCH, OrderCaller, operate, summary_code};
use crate::queries;
use crate::rest_auth::authenticate;
use crate::trading_desk::TradingDesk;

/// Types of instruments.
const TYPES: [&str; 6] = ["SPOT", "MARGIN", "SWAP", "FUTURES", "OPTION", "EVENTS"];
/// Page of a proxy in front of the exchange.
const HTML_PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad \
                         Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

/// Parts of the exchange that requests reach.
pub(crate) struct RestDesk<'a> {
    pub(crate) desk: &'a mut TradingDesk,
    pub(crate) market: &'a MarketBoard,
    pub(crate) timers: &'a mut CancelTimers,
    pub(crate) clock: ExchangeClock,
}

/// A request, as far as it is read.
struct RestCall<'a> {
    request: &'a WebRequest<'a>,
    /// Index of the account; zero for a public request.
    account: usize,
    query: Value,
    now_ns: u64,
}

/// Rows of an answer.
type Rows = Result<Vec<Value>, OkxRefusal>;

/// Work of a path.
#[derive(Clone, Copy)]
enum RestWork {
    /// Public data.
    Public(fn(&mut RestDesk<'_>, &RestCall<'_>) -> Rows),
    /// Data of an account.
    Private(fn(&mut RestDesk<'_>, &RestCall<'_>) -> Rows),
    /// An operation on one order, or on the orders of a batch.
    Orders(OrderOperation, bool),
}

use RestWork::{Orders, Private, Public};

const ROUTES: &[(&str, &str, RestWork)] = &[
    ("GET", "/api/v5/public/time", Public(time)),
    ("GET", "/api/v5/public/instruments", Public(instruments)),
    ("GET", "/api/v5/market/ticker", Public(ticker)),
    ("GET", "/api/v5/market/tickers", Public(tickers)),
    ("GET", "/api/v5/market/books", Public(books)),
    ("GET", "/api/v5/market/trades", Public(trades)),
    ("GET", "/api/v5/account/balance", Private(balance)),
    ("GET", "/api/v5/account/positions", Private(positions)),
    ("GET", "/api/v5/account/config", Private(configuration)),
    ("GET", "/api/v5/account/trade-fee", Private(fees)),
    ("GET", "/api/v5/account/instruments", Private(instruments)),
    ("GET", "/api/v5/asset/currencies", Private(currency_list)),
    ("GET", "/api/v5/trade/order", Private(order)),
    ("GET", "/api/v5/trade/orders-pending", Private(pending)),
    ("GET", "/api/v5/trade/orders-history", Private(history)),
    ("GET", "/api/v5/trade/orders-history-archive", Private(history)),
    ("GET", "/api/v5/trade/fills", Private(fills)),
    ("GET", "/api/v5/trade/fills-history", Private(fills)),
    ("POST", "/api/v5/trade/cancel-all-after", Private(cancel_all_after)),
    ("POST", "/api/v5/trade/order", Orders(OrderOperation::Place, false)),
    ("POST", "/api/v5/trade/batch-orders", Orders(OrderOperation::Place, true)),
    ("POST", "/api/v5/trade/amend-order", Orders(OrderOperation::Amend, false)),
    ("POST", "/api/v5/trade/amend-batch-orders", Orders(OrderOperation::Amend, true)),
    ("POST", "/api/v5/trade/cancel-order", Orders(OrderOperation::Cancel, false)),
    ("POST", "/api/v5/trade/cancel-batch-orders", Orders(OrderOperation::Cancel, true)),
];

impl RestDesk<'_> {
    /// Answers a request.
    pub(crate) fn answer(&mut self, request: &WebRequest<'_>) -> WebAnswer {
        if self.desk.dice.happens(self.desk.faults.html_answers) {
            let headers = vec![("Content-Type".to_owned(), "text/html".to_owned())];
            return WebAnswer { headers, ..WebAnswer::status(502, HTML_PAGE) };
        }
        self.try_answer(request).unwrap_or_else(|refusal| refused(&refusal))
    }

    fn try_answer(&mut self, request: &WebRequest<'_>) -> Result<WebAnswer, OkxRefusal> {
        let mut of_path = ROUTES.iter().filter(|(_, path, _)| *path == request.path).peekable();
        if of_path.peek().is_none() {
            return Ok(not_found());
        }
        let (_, _, work) =
            of_path.find(|(method, _, _)| *method == request.method).ok_or_else(|| WRONG_METHOD.refusal())?;
        let now_ns = self.clock.now_ns();
        let account = match work {
            Public(_) => 0,
            Private(_) | Orders(..) => authenticate(self.desk.sim.accounts(), request, now_ns)?,
        };
        let call = RestCall { request, account, query: read_query(request.query), now_ns };
        match work {
            Public(rows) => Ok(data(rows(self, &call)?)),
            Private(_) if self.desk.dice.happens(self.desk.faults.rate_limited) => Err(TOO_MANY_REQUESTS.refusal()),
            Private(rows) => Ok(data(rows(self, &call)?)),
            Orders(operation, is_batch) => self.operate(&call, *operation, *is_batch),
        }
    }

    fn operate(
        &mut self,
        call: &RestCall<'_>,
        operation: OrderOperation,
        is_list: bool,
    ) -> Result<WebAnswer, OkxRefusal> {
        let body = call.body()?;
        let orders = match (&body, is_list) {
            (Value::Array(orders), true) if orders.len() > MAX_BATCH => {
                return Err(TOO_MANY_ORDERS.about(&MAX_BATCH.to_string()));
            }
            (Value::Array(orders), true) if !orders.is_empty() => orders.as_slice(),
            (Value::Object(_), false) => std::slice::from_ref(&body),
            _ => return Err(BAD_JSON.refusal()),
        };
        call.check_expiry(operation)?;
        let caller = OrderCaller { account: call.account, now_ns: call.now_ns, is_batch: orders.len() > 1 };
        let replies = operate(self.desk, caller, operation, orders);
        if let [reply] = replies.as_slice()
            && let Err(refusal) = &reply.outcome
            && !is_list
        {
            match refusal.code {
                RATE_LIMIT => return Err(TOO_MANY_REQUESTS.refusal()),
                TIMED_OUT => return Err(TIMED_OUT.refusal()),
                _ => {}
            }
        }
        let code = summary_code(&replies);
        let text = match code {
            "0" => "",
            "1" => "All operations failed",
            _ => "Bulk operation partially succeeded.",
        };
        let rows: Vec<Value> = replies.iter().map(|reply| reply.row()).collect();
        let (in_us, out_us) = (call.now_ns / 1_000, self.clock.now_ns() / 1_000);
        Ok(WebAnswer::json(
            json!({"code": code, "msg": text, "data": rows, "inTime": in_us.to_string(), "outTime": out_us.to_string()})
                .to_string(),
        ))
    }
}

impl RestCall<'_> {
    fn body(&self) -> Result<Value, OkxRefusal> {
        match self.request.body {
            [] => Err(EMPTY_BODY.refusal()),
            body => serde_json::from_slice(body).map_err(|_| BAD_JSON.refusal()),
        }
    }

    /// Refuses a request whose deadline has passed. Cancels have none.
    fn check_expiry(&self, operation: OrderOperation) -> Result<(), OkxRefusal> {
        let Some(text) = self.request.header("expTime").filter(|_| operation != OrderOperation::Cancel) else {
            return Ok(());
        };
        let deadline_ms: u64 = text.parse().map_err(|_| PARAMETER.about("expTime"))?;
        if deadline_ms < self.now_ns / 1_000_000 { Err(EXPIRED_REQUEST.refusal()) } else { Ok(()) }
    }

    /// Returns the query's type of instruments, which must be there.
    fn kind(&self) -> Result<String, OkxRefusal> {
        let kind = text_field(&self.query, "instType").filter(|kind| TYPES.contains(&kind.as_str()));
        kind.ok_or_else(|| PARAMETER.about("instType"))
    }
}

fn time(_: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    Ok(vec![json!({"ts": ms_text(call.now_ns)})])
}

fn instruments(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    call.kind()?;
    let sim = &rest.desk.sim;
    let all = sim.instruments().iter().enumerate();
    let wanted = all.filter(|(_, instrument)| queries::covers(&call.query, instrument));
    Ok(wanted.map(|(index, instrument)| instrument_row(instrument, sim.is_suspended(index))).collect())
}

fn ticker(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let index = find_instrument(&rest.desk.sim, &call.query)?;
    let at = (index, &rest.desk.sim.instruments()[index]);
    Ok(vec![rest.market.ticker_row(at, &rest.desk.sim, call.now_ns)])
}

fn tickers(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    call.kind()?;
    let sim = &rest.desk.sim;
    let all = sim.instruments().iter().enumerate();
    let wanted = all.filter(|(_, instrument)| queries::covers(&call.query, instrument));
    Ok(wanted.map(|at| rest.market.ticker_row(at, sim, call.now_ns)).collect())
}

fn books(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let sim = &rest.desk.sim;
    let index = find_instrument(sim, &call.query)?;
    let levels = count(&call.query, "sz", 1, MAX_LEVELS)?;
    let (book, ms, sequence) = (book_text(sim, index, levels), ms_text(call.now_ns), sim.book_sequence(index));
    let text = format!(r#"{{{book},"ts":"{ms}","seqId":{sequence}}}"#);
    Ok(vec![serde_json::from_str(&text).map_err(|_| BAD_JSON.refusal())?])
}

fn trades(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let index = find_instrument(&rest.desk.sim, &call.query)?;
    let max = count(&call.query, "limit", 100, 500)?;
    Ok(rest.market.trade_rows((index, &rest.desk.sim.instruments()[index]), max))
}

fn balance(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let named = text_field(&call.query, "ccy").unwrap_or_default();
    let named: Vec<&str> = named.split(',').filter(|name| !name.is_empty()).collect();
    Ok(vec![balance_row(&rest.desk.sim, call.account, &named, call.now_ns)])
}

fn positions(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    Ok(queries::positions(rest.desk, call.account, &call.query, call.now_ns))
}

fn configuration(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let label = &rest.desk.sim.accounts()[call.account].name;
    Ok(vec![configuration_row(&user_text(call.account), label)])
}

fn fees(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let (maker_e6, taker_e6) = rest.desk.fee_rates_e6;
    Ok(vec![fee_row(&call.kind()?, maker_e6, taker_e6, call.now_ns)])
}

fn currency_list(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    let named = text_field(&call.query, "ccy");
    let is_wanted = |name: &String| named.as_ref().is_none_or(|named| named.split(',').any(|one| one == name));
    Ok(currencies(&rest.desk.sim).iter().filter(|name| is_wanted(name)).map(|name| currency_row(name)).collect())
}

fn order(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    queries::order(rest.desk, call.account, &call.query, call.now_ns)
}

fn pending(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    Ok(queries::pending(rest.desk, call.account, &call.query, call.now_ns))
}

fn history(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    call.kind()?;
    Ok(queries::history(rest.desk, call.account, &call.query, call.now_ns))
}

fn fills(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    Ok(queries::fills(rest.desk, call.account, &call.query))
}

fn cancel_all_after(rest: &mut RestDesk<'_>, call: &RestCall<'_>) -> Rows {
    Ok(vec![rest.timers.set(call.account, &call.body()?, call.now_ns)?])
}

/// Returns a number of a query, from 1 to a maximum.
fn count(query: &Value, name: &str, usual: usize, max: usize) -> Result<usize, OkxRefusal> {
    let Some(text) = text_field(query, name) else { return Ok(usual) };
    let number = text.parse::<usize>().ok().filter(|number| *number > 0);
    number.map(|number| number.min(max)).ok_or_else(|| PARAMETER.about(name))
}

/// Returns the fields of a query.
fn read_query(query: &str) -> Value {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    Value::Object(pairs.map(|(name, text)| (decoded(name), Value::from(decoded(text)))).collect::<Map<_, _>>())
}

/// Returns a part of a query without its escapes. Others than valid ones stay as they are.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn data(rows: Vec<Value>) -> WebAnswer {
    WebAnswer::json(json!({"code": "0", "msg": "", "data": rows}).to_string())
}

fn refused(refusal: &OkxRefusal) -> WebAnswer {
    let body = json!({"code": refusal.code.number, "msg": refusal.text, "data": []});
    WebAnswer { status: refusal.code.status, ..WebAnswer::json(body.to_string()) }
}

/// Returns OKX's answer for a path that it does not have.
pub(crate) fn not_found() -> WebAnswer {
    let body = json!({
        "code": "404",
        "data": {},
        "detailMsg": "",
        "error_code": "404",
        "error_message": "Not Found",
        "msg": "Not Found",
    });
    WebAnswer { status: 404, ..WebAnswer::json(body.to_string()) }
}
