//! One-line test cases: a script of commands, and the reports expected of it.
//!
//! Commands are separated by `;`, and only the reports of commands after the `|` are compared:
//! `b1 5@100` buys 5 at 100 as order 1 (`s` sells), optionally `ioc`, `fok`, `mkt`, `gtc`, `bad` (an unknown side),
//! `sym` (an unknown symbol), `post` (post-only), `red` (reduce-only), `stp` (a self-trade mode), `iso` (a trade mode)
//! or `a7` (account 7, by default 4); `c9 1` cancels order 1 as request 9; `r9 1 4@101`
//! replaces it; `q9 1` requests its status; `m9 7 4` cancels all of account 4, with 7 as the type; `t 10@99 8@101` is
//! a tick; `x2` busts fill 2, `v2 3@99` corrects it, `d` ends the day.
//!
//! A report is its type (New, Trade, Canceled, Replaced, X expired, J rejected, K cancel or replace rejected, Bust, V
//! corrected, S status) and its order, then filled/open, the quantity of a changed fill, `@` the price of a fill, `=`
//! the status and the count of events in a status report, `#` the reason of a rejection. A refusal to the operator is
//! `!` and the first words of the sentence.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, MassCancel, NewOrder, OrdStatus,
    OrderType, Price, Quantity, ReplaceOrder, Request, SelfTradeMode, Side, StatusRequest, SymbolId, TimeInForce,
    TopOfBook, TradeMode, VenueId,
};
use tickpath_venue_sim::{Config, SimVenue};

use crate::random_commands::Command;

/// Default account of an order.
const ACCOUNT: u32 = 4;

pub fn check(script: &str, expected: &str) {
    let (before, after) = script.split_once('|').expect("a script has a bar");
    let mut venue = venue();
    let mut stamp = 0;
    let mut run = |commands: &str| {
        let mut shown = Vec::new();
        for text in commands.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            stamp += 1;
            match command(text).apply(&mut venue, stamp) {
                Ok(reports) => shown.extend(reports.iter().map(show)),
                Err(e) => shown.push(format!("!{}", e.to_string().split(' ').take(4).collect::<Vec<_>>().join(" "))),
            }
        }
        shown
    };
    run(before);
    assert_eq!(run(after).join("; "), expected, "{script}");
}

pub fn venue() -> SimVenue {
    SimVenue::new(Config { venue: VenueId(9), symbols: 1, expected_orders: 16 })
}

pub fn order(side: Side, id: u64, quantity: i64, price: i64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(id),
        price: Price(price),
        quantity: Quantity(quantity),
        symbol: SymbolId(0),
        account: AccountId(ACCOUNT),
        side: side.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::Day.code(),
        ..NewOrder::default()
    }
}

pub fn tick(text: &str) -> TopOfBook {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ((bid_quantity, bid), (ask_quantity, ask)) = (amount(words[1]), amount(words[2]));
    TopOfBook { bid, bid_quantity, ask, ask_quantity, ..TopOfBook::default() }
}

fn show(report: &ExecutionReport) -> String {
    let letter = match ExecType::from_code(report.exec_type) {
        Some(ExecType::New) => 'N',
        Some(ExecType::Trade) => 'T',
        Some(ExecType::Canceled) => 'C',
        Some(ExecType::Replaced) => 'R',
        Some(ExecType::Expired) => 'X',
        Some(ExecType::Rejected) => 'J',
        Some(ExecType::CancelRejected) => 'K',
        Some(ExecType::TradeCancel) => 'B',
        Some(ExecType::TradeCorrect) => 'V',
        Some(ExecType::OrderStatus) => 'S',
        _ => '?',
    };
    let (filled, open) = (report.cumulative_quantity.0, report.leaves_quantity.0);
    let detail = match letter {
        'T' => format!("@{}", report.last_price.0),
        'B' | 'V' => format!(" {}@{}", report.last_quantity.0, report.last_price.0),
        'S' => format!("={}{}", status(report.status), report.venue_sequence),
        _ => String::new(),
    };
    let reason = if report.reason == 0 { String::new() } else { format!("#{}", report.reason) };
    format!("{letter}{} {filled}/{open}{detail}{reason}", report.order_id)
}

/// Returns the letter of a status: New, Partially filled, Filled, Canceled, X expired, J rejected, Unknown.
fn status(code: u8) -> char {
    match OrdStatus::from_code(code) {
        Some(OrdStatus::New) => 'N',
        Some(OrdStatus::PartiallyFilled) => 'P',
        Some(OrdStatus::Filled) => 'F',
        Some(OrdStatus::Canceled) => 'C',
        Some(OrdStatus::Expired) => 'X',
        Some(OrdStatus::Rejected) => 'J',
        Some(OrdStatus::Unknown) => 'U',
        _ => '?',
    }
}

fn command(text: &str) -> Command {
    let words: Vec<&str> = text.split_whitespace().collect();
    let id = words[0][1..].parse().unwrap_or(0);
    let request = ClientOrderId(id);
    let original = || ClientOrderId(words[1].parse().expect("an order id"));
    match &text[..1] {
        "c" => Command::Request(Request::Cancel(CancelOrder {
            client_order_id: request,
            original: original(),
            ..CancelOrder::default()
        })),
        "r" => {
            let (quantity, price) = amount(words[2]);
            let (client_order_id, original) = (request, original());
            let replace = ReplaceOrder { client_order_id, original, price, quantity, ..ReplaceOrder::default() };
            Command::Request(Request::Replace(replace))
        }
        "q" => Command::Request(Request::Status(StatusRequest {
            client_order_id: request,
            original: original(),
            ..StatusRequest::default()
        })),
        "m" => Command::Request(Request::MassCancel(MassCancel {
            client_order_id: request,
            cancel_type: words[1].parse().expect("a type"),
            account: AccountId(words[2].parse().expect("an account")),
            symbol: SymbolId(words.get(3).map_or(0, |word| word.parse().expect("a symbol"))),
            ..MassCancel::default()
        })),
        "x" => Command::Bust(ExecId(id)),
        "v" => {
            let (quantity, price) = amount(words[1]);
            Command::Correct(ExecId(id), price, quantity)
        }
        "d" => Command::EndOfDay,
        "t" => Command::Tick(tick(text)),
        side => {
            let side = if side == "b" { Side::Buy } else { Side::Sell };
            let (quantity, price) = amount(words[1]);
            let mut new = order(side, id, quantity.0, price.0);
            words[2..].iter().for_each(|word| apply_word(&mut new, word));
            Command::Request(Request::New(new))
        }
    }
}

fn apply_word(new: &mut NewOrder, word: &str) {
    match word {
        "ioc" => new.time_in_force = TimeInForce::ImmediateOrCancel.code(),
        "fok" => new.time_in_force = TimeInForce::FillOrKill.code(),
        "gtc" => new.time_in_force = TimeInForce::GoodTillCancel.code(),
        "mkt" => new.order_type = OrderType::Market.code(),
        "bad" => new.side = 9,
        "sym" => new.symbol = SymbolId(1),
        "post" => new.instructions |= NewOrder::POST_ONLY,
        "red" => new.instructions |= NewOrder::REDUCE_ONLY,
        "stp" => new.self_trade_mode = SelfTradeMode::CancelMaker.code(),
        "iso" => new.trade_mode = TradeMode::Isolated.code(),
        other => new.account = AccountId(other.strip_prefix('a').and_then(|n| n.parse().ok()).expect("a known word")),
    }
}

fn amount(text: &str) -> (Quantity, Price) {
    let (quantity, price) = text.split_once('@').expect("quantity@price");
    (Quantity(quantity.parse().expect("a quantity")), Price(price.parse().expect("a price")))
}
