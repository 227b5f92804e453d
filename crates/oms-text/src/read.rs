//! The name of a message of a known kind, and its named fields: messages of `market`, and records of an order journal,
//! which are messages too, with the sequencer's fields in front.

use tickpath_market::{
    CancelOrder, ConditionalOrder, ExecType, ExecutionReport, Kind, MassCancel, MassCancelType, NewOrder, OrdStatus,
    OrderDenied, OrderId, OrderType, PositionEffect, Quantity, ReplaceConditional, ReplaceOrder, Request, Side,
    StatusRequest, SymbolId, TimeInForce, TopOfBook, Trade, TriggerPriceType,
};
use tickpath_oms_core::{
    AccountLimits, Boot, DefinitionEnd, Denial, Digest, EnterFill, EnterOrder, EnterPosition, Envelope, FirmLimits,
    GIVE_UP, Input, Instrument, JournalStart, JournalStop, KillSwitch, LOST_REPORTS, LOST_REQUESTS, LaneRecord,
    MessageLoss, NAME_SESSION, NAME_VENUE, NameRecord, OTHER_LINE, RETRY, RecordKind, RejectRule, Release,
    ReportRecord, Resolve, SessionRules, SymbolLimits, TradingHours, TriggerFired, UnsentRequest, VenueRules,
    scope_name,
};
use zerocopy::FromBytes;

use crate::field::{self, MessageField, code, number, text};
use crate::trigger;

/// Reads a message or a record of an order journal; returns none if its kind or length is unknown.
pub fn read(kind: u8, payload: &[u8]) -> Option<(&'static str, Vec<MessageField>)> {
    Some(match Kind::from_code(kind) {
        Some(Kind::TopOfBook) => ("tick", top_of_book(&flat(payload)?)),
        Some(Kind::Trade) => ("trade", trade(&flat(payload)?)),
        Some(Kind::NewOrder) => ("new_order", new_order(&flat(payload)?)),
        Some(Kind::CancelOrder) => ("cancel_order", cancel_order(&flat(payload)?)),
        Some(Kind::ReplaceOrder) => ("replace_order", replace_order(&flat(payload)?)),
        Some(Kind::StatusRequest) => ("status_request", status_request(&flat(payload)?)),
        Some(Kind::MassCancel) => ("mass_cancel", mass_cancel(&flat(payload)?)),
        Some(Kind::ConditionalOrder) => ("conditional_order", conditional_order(&flat(payload)?)),
        Some(Kind::ReplaceConditional) => ("replace_conditional", replace_conditional(&flat(payload)?)),
        Some(Kind::ExecutionReport) => ("execution_report", execution_report(&flat(payload)?)),
        Some(Kind::OrderDenied) => ("order_denied", order_denied(&flat(payload)?)),
        None => return record(kind, payload),
    })
}

/// Reads a record of an order journal.
fn record(kind: u8, payload: &[u8]) -> Option<(&'static str, Vec<MessageField>)> {
    Some(match Input::read(kind, payload).ok()? {
        Some(Input::Instrument(found)) => ("instrument", instrument(&found)),
        Some(Input::Account(found)) => ("account_limits", account_limits(&found)),
        Some(Input::Kill(found)) => ("kill", kill(&found)),
        Some(Input::Report(found)) => ("journal_execution_report", report_record(&found)),
        Some(Input::Request { envelope: around, request }) => {
            let (name, fields) = match request {
                Request::New(order) => ("journal_new_order", new_order(&order)),
                Request::Cancel(order) => ("journal_cancel_order", cancel_order(&order)),
                Request::Replace(order) => ("journal_replace_order", replace_order(&order)),
                Request::Status(order) => ("journal_status_request", status_request(&order)),
                Request::MassCancel(orders) => ("journal_mass_cancel", mass_cancel(&orders)),
                Request::Conditional(order) => ("journal_conditional_order", conditional_order(&order)),
                Request::ReplaceConditional(order) => ("journal_replace_conditional", replace_conditional(&order)),
            };
            (name, [envelope(&around), fields].concat())
        }
        Some(Input::Boot(found)) => ("boot", boot(&found)),
        Some(Input::Venue(found)) => ("venue_rules", venue_rules(&found)),
        Some(Input::Session(found)) => ("session_rules", session_rules(&found)),
        Some(Input::Grant(found)) => {
            ("grant", vec![number("session", found.session), number("account", found.account.0)])
        }
        Some(Input::SymbolLimits(found)) => ("symbol_limits", symbol_limits(&found)),
        Some(Input::Firm(found)) => ("firm_limits", firm_limits(&found)),
        Some(Input::DefinitionEnd(found)) => ("ended", ended(&found)),
        Some(Input::VenueConnection(found)) => ("line", vec![number("venue", found.venue.0), number("up", found.up)]),
        Some(Input::SessionConnection(found)) => {
            ("login", vec![number("session", found.session), number("up", found.up)])
        }
        Some(Input::UnsentRequest(found)) => ("returned", returned(&found)),
        Some(Input::Release(found)) => ("release", release(&found)),
        Some(Input::MessageLoss(found)) => ("doubt", doubt(&found)),
        Some(Input::Resolve(found)) => ("resolve", resolve(&found)),
        Some(Input::QueryStatus(found)) => ("inquire", vec![order_id("order", found.order)]),
        Some(Input::Reconcile(found)) => ("reconcile", vec![number("venue", found.venue.0), reason(&found.reason)]),
        Some(Input::CancelScope(found)) => ("cancel_scope", vec![scope(found.scope), number("target", found.target)]),
        Some(Input::EnterOrder(found)) => ("enter_order", enter_order(&found)),
        Some(Input::EnterFill(found)) => ("enter_fill", enter_fill(&found)),
        Some(Input::EnterPosition(found)) => ("enter_position", enter_position(&found)),
        Some(Input::GapTimer(_)) => ("timer", Vec::new()),
        Some(Input::DayEnd(found)) => ("day_end", vec![number("day", found.day)]),
        Some(Input::TriggerFired(found)) => ("fired", fired(&found)),
        Some(Input::Reject(found)) => ("reject_rule", reject_rule(&found)),
        None if kind == RecordKind::Lane.code() => ("lane", lane(&flat(payload)?)),
        None if kind == RecordKind::JournalStart.code() => ("journal_start", start(&flat(payload)?)),
        None if kind == RecordKind::JournalStop.code() => ("journal_stop", stop(&flat(payload)?)),
        None if kind == RecordKind::JournalRollover.code() => ("journal_rolled", Vec::new()),
        None if kind == RecordKind::Name.code() => ("name", name(&flat(payload)?)),
        None => ("digest", digest(&flat(payload)?)),
    })
}

fn top_of_book(m: &TopOfBook) -> Vec<MessageField> {
    vec![
        number("symbol", m.symbol.0),
        text("bid", m.bid),
        text("bid_quantity", m.bid_quantity),
        text("ask", m.ask),
        text("ask_quantity", m.ask_quantity),
        number("event_ns", m.event_ns),
    ]
}

fn trade(m: &Trade) -> Vec<MessageField> {
    vec![
        number("symbol", m.symbol.0),
        text("price", m.price),
        text("quantity", m.quantity),
        code("aggressor", Side::from_code(m.aggressor), m.aggressor),
        number("trade_id", m.trade_id),
        number("event_ns", m.event_ns),
    ]
}

fn new_order(m: &NewOrder) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        code("side", Side::from_code(m.side), m.side),
        text("quantity", m.quantity),
        text("price", m.price),
        code("order_type", OrderType::from_code(m.order_type), m.order_type),
        code("time_in_force", TimeInForce::from_code(m.time_in_force), m.time_in_force),
        code("position_effect", PositionEffect::from_code(m.position_effect), m.position_effect),
        number("cause", m.cause),
    ]
}

fn cancel_order(m: &CancelOrder) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("original", m.original.0),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        number("cause", m.cause),
    ]
}

fn replace_order(m: &ReplaceOrder) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("original", m.original.0),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        text("quantity", m.quantity),
        text("price", m.price),
        number("cause", m.cause),
    ]
}

fn status_request(m: &StatusRequest) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("original", m.original.0),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        number("fills", m.fills),
    ]
}

fn mass_cancel(m: &MassCancel) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("account", m.account.0),
        code("cancel_type", MassCancelType::from_code(m.cancel_type), m.cancel_type),
        number("symbol", m.symbol.0),
        number("cause", m.cause),
    ]
}

fn conditional_order(m: &ConditionalOrder) -> Vec<MessageField> {
    [new_order(&m.order), vec![text("when", trigger::text(&m.trigger, number_of))]].concat()
}

fn replace_conditional(m: &ReplaceConditional) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        number("original", m.original.0),
        number("account", m.account.0),
        text("quantity", m.quantity),
        text("price", m.price),
        text("when", trigger::text(&m.trigger, number_of)),
        number("cause", m.cause),
    ]
}

fn fired(m: &TriggerFired) -> Vec<MessageField> {
    vec![
        order_id("order", m.order),
        number("symbol", m.symbol.0),
        code("price_type", TriggerPriceType::from_code(m.price_type), m.price_type),
        text("price", m.price),
        number("tick", m.tick),
        text("reference_price", m.reference_price),
        number("reference_age_ns", m.reference_age_ns),
    ]
}

fn reject_rule(m: &RejectRule) -> Vec<MessageField> {
    let action = match m.action {
        GIVE_UP => "give_up".to_owned(),
        RETRY => "retry".to_owned(),
        OTHER_LINE => "other_line".to_owned(),
        other => other.to_string(),
    };
    vec![number("venue", m.venue.0), number("code", m.code), text("action", action), number("times", m.times)]
}

/// Returns the number of an instrument, because a log holds no names.
fn number_of(symbol: SymbolId) -> String {
    symbol.0.to_string()
}

fn report_record(m: &ReportRecord) -> Vec<MessageField> {
    let lane = vec![number("source", m.source.0), number("lane_sequence", m.lane_sequence)];
    [lane, execution_report(&m.report)].concat()
}

fn execution_report(m: &ExecutionReport) -> Vec<MessageField> {
    vec![
        number("order_id", m.order_id.0),
        number("client_order_id", m.client_order_id.0),
        code("exec_type", ExecType::from_code(m.exec_type), m.exec_type),
        code("status", OrdStatus::from_code(m.status), m.status),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        code("side", Side::from_code(m.side), m.side),
        text("last_quantity", m.last_quantity),
        text("last_price", m.last_price),
        text("cumulative_quantity", m.cumulative_quantity),
        text("leaves_quantity", m.leaves_quantity),
        text("price", m.price),
        number("reason", m.reason),
        number("venue", m.venue.0),
        number("venue_order_id", m.venue_order_id.0),
        number("exec_id", m.exec_id.0),
        number("venue_sequence", m.venue_sequence),
        number("venue_stamp", m.venue_stamp),
        number("manual", m.manual),
    ]
}

fn order_denied(m: &OrderDenied) -> Vec<MessageField> {
    vec![
        number("order_id", m.order_id.0),
        number("client_order_id", m.client_order_id.0),
        number("account", m.account.0),
        code("code", Denial::from_code(m.code), m.code),
        number("limit", i128::from_le_bytes(m.limit)),
        number("value", i128::from_le_bytes(m.value)),
    ]
}

fn envelope(m: &Envelope) -> Vec<MessageField> {
    vec![
        number("session", m.session),
        number("sent", m.sent),
        text("reference_price", m.reference_price),
        number("reference_age_ns", m.reference_age_ns),
        number("released_before", m.released_before),
        number("queued_before", u8::from(m.departure_before().queued)),
        number("handed_over_before", u8::from(m.departure_before().handed_over)),
        number("lane_sequence", m.lane_sequence),
    ]
}

fn instrument(m: &Instrument) -> Vec<MessageField> {
    vec![
        number("symbol", m.symbol.0),
        number("venue", m.venue.0),
        text("name", m.name),
        number("multiplier", m.multiplier),
        text("tick_size", m.tick_size),
        text("lot", m.lot),
        text("lowest_price", m.lowest_price),
        text("highest_price", m.highest_price),
        text("hours", hours(&m.hours)),
        currency(&m.currency),
        number("rate_limit", m.rate_limit),
        number("rate_window_ns", m.rate_window_ns),
        number("restricted", m.restricted),
    ]
}

/// Formats the parts of the day in seconds since midnight UTC; empty for the whole day.
fn hours(hours: &[TradingHours]) -> String {
    let parts = hours.iter().filter(|part| !part.is_none());
    parts.map(|part| format!("{}-{}", part.opens_s, part.closes_s)).collect::<Vec<_>>().join(" ")
}

fn currency(code: &[u8]) -> MessageField {
    text("currency", String::from_utf8_lossy(code).trim_end_matches('\0'))
}

fn account_limits(m: &AccountLimits) -> Vec<MessageField> {
    let most = shared_limits(m.rate_limit, m.rate_window_ns, m.max_order_quantity, Some(m.max_notional()));
    let own = vec![
        number("credit", m.credit().unwrap_or(0)),
        number("collar", m.collar),
        number("max_open_orders", m.max_open_orders),
        number("max_reference_age_ns", m.max_reference_age_ns),
        number("max_request_age_ns", m.max_request_age_ns),
        text("max_position", m.max_position),
        currency(&m.currency),
        number("order_trade_free", m.order_trade_free),
        number("order_trade_ratio", m.order_trade_ratio),
        number("duplicate_window_ns", m.duplicate_window_ns),
        number("no_self_match", m.no_self_match),
        number("max_gross_value", m.max_gross_value().unwrap_or(0)),
        number("max_loss", m.max_loss().unwrap_or(0)),
    ];
    [vec![number("account", m.account.0)], most, own].concat()
}

/// Returns the limits that accounts, sessions and the firm share.
fn shared_limits(
    rate_limit: u32,
    rate_window_ns: u64,
    quantity: Quantity,
    notional: Option<i128>,
) -> Vec<MessageField> {
    vec![
        number("rate_limit", rate_limit),
        number("rate_window_ns", rate_window_ns),
        text("max_order_quantity", quantity),
        number("max_notional", notional.unwrap_or(0)),
    ]
}

fn symbol_limits(m: &SymbolLimits) -> Vec<MessageField> {
    vec![
        number("account", m.account.0),
        number("symbol", m.symbol.0),
        text("max_position", m.max_position),
        text("max_order_quantity", m.max_order_quantity),
        number("restricted", m.restricted),
        number("no_short", m.no_short),
    ]
}

fn firm_limits(m: &FirmLimits) -> Vec<MessageField> {
    let most = shared_limits(m.rate_limit, m.rate_window_ns, m.max_order_quantity, m.max_notional());
    let own = vec![number("credit", m.credit().unwrap_or(0)), number("max_open_orders", m.max_open_orders)];
    [most, own].concat()
}

fn kill(m: &KillSwitch) -> Vec<MessageField> {
    [vec![scope(m.scope)], vec![number("on", m.on), number("cancel", m.cancel), number("target", m.target)]].concat()
}

fn scope(scope: u8) -> MessageField {
    scope_name(scope).map_or_else(|| number("scope", scope), |name| text("scope", name))
}

fn boot(m: &Boot) -> Vec<MessageField> {
    let boot_id: String = m.boot_id.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        number("epoch", m.epoch),
        text("boot_id", boot_id),
        number("ticks_per_second", m.ticks_per_second),
        number("utc_ns", m.utc_ns),
    ]
}

fn venue_rules(m: &VenueRules) -> Vec<MessageField> {
    vec![
        number("venue", m.venue.0),
        number("numbered", m.numbered),
        number("answers_status", m.answers_status),
        number("max_queued", m.max_queued),
        number("max_gap_ns", m.max_gap_ns),
    ]
}

fn session_rules(m: &SessionRules) -> Vec<MessageField> {
    let most = shared_limits(m.rate_limit, m.rate_window_ns, m.max_order_quantity, m.max_notional());
    let own = vec![
        number("session", m.session),
        number("level", m.level),
        number("cancel_on_disconnect", m.cancel_on_disconnect),
        number("withheld", m.withheld),
    ];
    [own, most].concat()
}

fn ended(m: &DefinitionEnd) -> Vec<MessageField> {
    let what = code("what", RecordKind::from_code(m.kind), m.kind);
    vec![what, number("session", m.session), number("id", m.id)]
}

fn returned(m: &UnsentRequest) -> Vec<MessageField> {
    let request = m.request();
    vec![
        number("venue", m.venue.0),
        code("request", Kind::from_code(m.kind), m.kind),
        order_id("request_id", request.map_or(0, |request| request.client_order_id().0)),
        number("received", m.received),
    ]
}

fn release(m: &Release) -> Vec<MessageField> {
    vec![
        number("venue", m.venue.0),
        order_id("order", m.order),
        order_id("request_id", m.request),
        text("reference_price", m.reference_price),
        number("reference_age_ns", m.reference_age_ns),
    ]
}

fn doubt(m: &MessageLoss) -> Vec<MessageField> {
    let lost = match m.lost {
        LOST_REQUESTS => text("lost", "requests"),
        LOST_REPORTS => text("lost", "reports"),
        other => number("lost", other),
    };
    vec![number("venue", m.venue.0), lost, number("messages", m.messages)]
}

fn enter_order(m: &EnterOrder) -> Vec<MessageField> {
    vec![
        number("client_order_id", m.client_order_id.0),
        order_id("sent_as", m.sent_as.0),
        number("venue_order_id", m.venue_order_id.0),
        number("symbol", m.symbol.0),
        number("account", m.account.0),
        number("venue", m.venue.0),
        number("session", m.session),
        code("side", Side::from_code(m.side), m.side),
        text("quantity", m.quantity),
        text("price", m.price),
        code("order_type", OrderType::from_code(m.order_type), m.order_type),
        code("time_in_force", TimeInForce::from_code(m.time_in_force), m.time_in_force),
        reason(&m.reason),
    ]
}

fn enter_fill(m: &EnterFill) -> Vec<MessageField> {
    vec![
        order_id("order", m.order),
        number("exec_id", m.exec_id.0),
        number("venue_sequence", m.venue_sequence),
        text("price", m.price),
        text("quantity", m.quantity),
        reason(&m.reason),
    ]
}

fn enter_position(m: &EnterPosition) -> Vec<MessageField> {
    vec![
        number("account", m.account.0),
        number("symbol", m.symbol.0),
        text("quantity", m.quantity),
        text("price", m.price),
        number("adjusts", m.adjusts),
        reason(&m.reason),
    ]
}

fn reason(bytes: &[u8]) -> MessageField {
    let reason = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    text("reason", String::from_utf8_lossy(reason))
}

fn resolve(m: &Resolve) -> Vec<MessageField> {
    vec![
        order_id("order", m.order),
        code("status", OrdStatus::from_code(m.status), m.status),
        text("cumulative_quantity", m.cumulative_quantity),
        reason(&m.reason),
    ]
}

fn lane(m: &LaneRecord) -> Vec<MessageField> {
    let carries = match m.carries {
        1 => text("carries", "requests"),
        2 => text("carries", "reports"),
        3 => text("carries", "venue_requests"),
        4 => text("carries", "venue_reports"),
        5 => text("carries", "control"),
        other => number("carries", other),
    };
    vec![carries, number("index", m.index), number("incarnation", m.incarnation), number("base", m.base)]
}

fn name(m: &NameRecord) -> Vec<MessageField> {
    let of = match m.of {
        NAME_VENUE => text("of", "venue"),
        NAME_SESSION => text("of", "session"),
        other => number("of", other),
    };
    vec![of, number("number", m.number), text("name", m.text())]
}

/// Makes a field of an id as its epoch and its journal sequence.
fn order_id(name: &'static str, id: u64) -> MessageField {
    text(name, field::order_id(OrderId(id)))
}

fn start(m: &JournalStart) -> Vec<MessageField> {
    vec![number("core_version", m.core_version), number("ticks_per_second", m.ticks_per_second)]
}

fn stop(m: &JournalStop) -> Vec<MessageField> {
    let last = m.departure_before();
    vec![
        number("released_before", last.at),
        number("queued_before", u8::from(last.queued)),
        number("handed_over_before", u8::from(last.handed_over)),
    ]
}

fn digest(m: &Digest) -> Vec<MessageField> {
    vec![number("inputs", m.inputs), number("outputs", m.outputs), number("digest", m.digest)]
}

fn flat<T: FromBytes>(payload: &[u8]) -> Option<T> {
    T::read_from_bytes(payload).ok()
}
