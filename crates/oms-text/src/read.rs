//! The name of a message of a known kind, and its named fields: messages of `market`, and records of an order journal,
//! which are messages too, with the sequencer's fields in front.

use tickpath_market::{
    BookLevel, CancelOrder, ConditionalOrder, ExecType, ExecutionReport, ExtendedOrder, FeedCondition, FeedStatus,
    Kind, Liquidity, MassCancel, MassCancelType, NewOrder, Notional, OrdStatus, OrderDenied, OrderExtension, OrderId,
    OrderType, PositionEffect, ReplaceConditional, ReplaceOrder, ReportDetail, Request, SelfTradeMode, Side,
    StatusRequest, SymbolId, TextIdAction, TextIdRequest, TimeInForce, TopOfBook, Trade, TradeMode, TriggerPriceType,
    decimal_text,
};
use tickpath_oms_core::{
    AccountLimits, Boot, DefinitionEnd, Denial, DetailRecord, Digest, EnterFill, EnterOrder, EnterPosition, Envelope,
    FirmLimits, GIVE_UP, Input, Instrument, JournalStart, JournalStop, KillSwitch, LOST_REPORTS, LOST_REQUESTS,
    LaneRecord, MessageLoss, NAME_SESSION, NAME_VENUE, NameRecord, OTHER_LINE, RETRY, RecordKind, RejectRule, Release,
    ReportRecord, Resolve, SessionRules, SymbolLimits, TradingHours, TriggerFired, UnsentRequest, VenueRules,
    scope_name,
};
use zerocopy::FromBytes;

use crate::field::{self, MessageField, MessageFieldValue, code, text};
use crate::trigger;

/// Makes the fields of a message: a struct field under its name, a code by the name of its value (`as`), or a value of
/// another form (`=`).
macro_rules! fields {
    ($m:ident: $($name:ident $(as $code:ident)? $(= $value:expr)?),+ $(,)?) => {
        vec![$(field!($m.$name $(as $code)? $(= $value)?)),+]
    };
}

macro_rules! field {
    ($m:ident.$name:ident) => {
        (stringify!($name), MessageFieldValue::from($m.$name))
    };
    ($m:ident.$name:ident as $code:ident) => {
        code(stringify!($name), $code::from_code($m.$name), $m.$name)
    };
    ($m:ident.$name:ident = $value:expr) => {
        (stringify!($name), MessageFieldValue::from($value))
    };
}

/// Reads a message or a record of an order journal; returns none if its kind or length is unknown.
pub fn read(kind: u8, payload: &[u8]) -> Option<(&'static str, Vec<MessageField>)> {
    Some(match Kind::from_code(kind) {
        Some(Kind::TopOfBook) => ("tick", top_of_book(&flat(payload)?)),
        Some(Kind::Trade) => ("trade", trade(&flat(payload)?)),
        Some(Kind::BookLevel) => ("book_level", book_level(&flat(payload)?)),
        Some(Kind::FeedStatus) => ("feed_status", feed_status(&flat(payload)?)),
        Some(Kind::NewOrder) => ("new_order", new_order(&flat(payload)?)),
        Some(Kind::CancelOrder) => ("cancel_order", cancel_order(&flat(payload)?)),
        Some(Kind::ReplaceOrder) => ("replace_order", replace_order(&flat(payload)?)),
        Some(Kind::StatusRequest) => ("status_request", status_request(&flat(payload)?)),
        Some(Kind::MassCancel) => ("mass_cancel", mass_cancel(&flat(payload)?)),
        Some(Kind::ConditionalOrder) => ("conditional_order", conditional_order(&flat(payload)?)),
        Some(Kind::ReplaceConditional) => ("replace_conditional", replace_conditional(&flat(payload)?)),
        Some(Kind::ExtendedOrder) => ("extended_order", extended_order(&flat(payload)?)),
        Some(Kind::TextIdRequest) => ("text_id_request", text_id_request(&flat(payload)?)),
        Some(Kind::ExecutionReport) => ("execution_report", execution_report(&flat(payload)?)),
        Some(Kind::OrderDenied) => ("order_denied", order_denied(&flat(payload)?)),
        Some(Kind::ReportDetail) => ("report_detail", report_detail(&flat(payload)?)),
        Some(Kind::OrderExtension) => ("order_extension", order_extension(&flat(payload)?)),
        None => return record(kind, payload),
    })
}

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
                Request::Extended(order) => ("journal_extended_order", extended_order(&order)),
                Request::ByTextId(named) => ("journal_text_id_request", text_id_request(&named)),
            };
            (name, [envelope(&around), fields].concat())
        }
        Some(Input::Boot(found)) => ("boot", boot(&found)),
        Some(Input::Venue(found)) => ("venue_rules", venue_rules(&found)),
        Some(Input::Session(found)) => ("session_rules", session_rules(&found)),
        Some(Input::Grant(found)) => ("grant", fields!(found: session, account)),
        Some(Input::SymbolLimits(found)) => ("symbol_limits", symbol_limits(&found)),
        Some(Input::Firm(found)) => ("firm_limits", firm_limits(&found)),
        Some(Input::DefinitionEnd(found)) => ("ended", ended(&found)),
        Some(Input::VenueConnection(found)) => ("line", fields!(found: venue, up)),
        Some(Input::SessionConnection(found)) => ("login", fields!(found: session, up)),
        Some(Input::UnsentRequest(found)) => ("returned", returned(&found)),
        Some(Input::Release(found)) => ("release", release(&found)),
        Some(Input::MessageLoss(found)) => ("doubt", doubt(&found)),
        Some(Input::Resolve(found)) => ("resolve", resolve(&found)),
        Some(Input::QueryStatus(found)) => ("inquire", fields!(found: order = order_id(found.order))),
        Some(Input::Reconcile(found)) => ("reconcile", fields!(found: venue, reason = reason(&found.reason))),
        Some(Input::CancelScope(found)) => ("cancel_scope", fields!(found: scope = scope(found.scope), target)),
        Some(Input::EnterOrder(found)) => ("enter_order", enter_order(&found)),
        Some(Input::EnterFill(found)) => ("enter_fill", enter_fill(&found)),
        Some(Input::EnterPosition(found)) => ("enter_position", enter_position(&found)),
        Some(Input::GapTimer(_)) => ("timer", Vec::new()),
        Some(Input::ExpiryTimer(_)) => ("expiry_timer", Vec::new()),
        Some(Input::DayEnd(found)) => ("day_end", fields!(found: day)),
        Some(Input::ReportDetail(found)) => ("journal_report_detail", detail_record(&found)),
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
    fields!(m: symbol, bid, bid_quantity, ask, ask_quantity, event_ns, wire_age_ns)
}

fn trade(m: &Trade) -> Vec<MessageField> {
    fields!(m: symbol, price, quantity, aggressor as Side, trade_id, event_ns)
}

fn book_level(m: &BookLevel) -> Vec<MessageField> {
    let has = |flag| u8::from(m.flags & flag != 0);
    fields!(
        m: symbol, side as Side, price, quantity, snapshot = has(BookLevel::SNAPSHOT), last = has(BookLevel::LAST),
        sequence, event_ns, wire_age_ns
    )
}

fn feed_status(m: &FeedStatus) -> Vec<MessageField> {
    let symbol: MessageFieldValue = match m.symbol {
        FeedStatus::ALL_SYMBOLS => "all".into(),
        symbol => symbol.into(),
    };
    fields!(m: condition as FeedCondition, symbol = symbol, connection, value, expected, found, event_ns)
}

fn new_order(m: &NewOrder) -> Vec<MessageField> {
    fields!(
        m: client_order_id, symbol, account, side as Side, quantity, price, order_type as OrderType,
        time_in_force as TimeInForce, position_effect as PositionEffect, instructions = instructions(m.instructions),
        self_trade_mode as SelfTradeMode, trade_mode as TradeMode, cause
    )
}

/// Returns the names of an order's instructions.
fn instructions(flags: u8) -> String {
    let names = [(NewOrder::POST_ONLY, "post_only"), (NewOrder::REDUCE_ONLY, "reduce_only")];
    let given = names.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name);
    given.collect::<Vec<_>>().join(" ")
}

fn cancel_order(m: &CancelOrder) -> Vec<MessageField> {
    fields!(m: client_order_id, original, symbol, account, cause)
}

fn replace_order(m: &ReplaceOrder) -> Vec<MessageField> {
    fields!(m: client_order_id, original, symbol, account, quantity, price, cause)
}

fn status_request(m: &StatusRequest) -> Vec<MessageField> {
    fields!(m: client_order_id, original, symbol, account, fills)
}

fn mass_cancel(m: &MassCancel) -> Vec<MessageField> {
    fields!(m: client_order_id, account, cancel_type as MassCancelType, symbol, cause)
}

fn conditional_order(m: &ConditionalOrder) -> Vec<MessageField> {
    [new_order(&m.order), vec![text("when", trigger::text(&m.trigger, number_of))]].concat()
}

fn replace_conditional(m: &ReplaceConditional) -> Vec<MessageField> {
    let when = trigger::text(&m.trigger, number_of);
    fields!(m: client_order_id, original, account, quantity, price, when = when, cause)
}

fn extended_order(m: &ExtendedOrder) -> Vec<MessageField> {
    [new_order(&m.order), fields!(m: expire_ns, text_id = m.text_id.as_str())].concat()
}

fn text_id_request(m: &TextIdRequest) -> Vec<MessageField> {
    fields!(m: client_order_id, account, text_id = m.text_id.as_str(), action as TextIdAction, cause)
}

fn order_extension(m: &OrderExtension) -> Vec<MessageField> {
    fields!(m: order_id, client_order_id, account, expire_ns, text_id = m.text_id.as_str())
}

fn fired(m: &TriggerFired) -> Vec<MessageField> {
    fields!(
        m: order = order_id(m.order), symbol, price_type as TriggerPriceType, price, tick, reference_price,
        reference_age_ns
    )
}

fn reject_rule(m: &RejectRule) -> Vec<MessageField> {
    let action = match m.action {
        GIVE_UP => "give_up".to_owned(),
        RETRY => "retry".to_owned(),
        OTHER_LINE => "other_line".to_owned(),
        other => other.to_string(),
    };
    fields!(m: venue, code, action = action, times)
}

/// Returns the number of an instrument, because a log holds no names.
fn number_of(symbol: SymbolId) -> String {
    symbol.0.to_string()
}

fn report_record(m: &ReportRecord) -> Vec<MessageField> {
    [fields!(m: source, lane_sequence), execution_report(&m.report)].concat()
}

fn execution_report(m: &ExecutionReport) -> Vec<MessageField> {
    fields!(
        m: order_id, client_order_id, exec_type as ExecType, status as OrdStatus, symbol, account, side as Side,
        last_quantity, last_price, cumulative_quantity, leaves_quantity, price, reason, venue, venue_order_id, exec_id,
        venue_sequence, venue_stamp, manual
    )
}

fn order_denied(m: &OrderDenied) -> Vec<MessageField> {
    let (limit, value) = (i128::from_le_bytes(m.limit), i128::from_le_bytes(m.value));
    fields!(m: order_id, client_order_id, account, code as Denial, limit = limit, value = value)
}

fn detail_record(m: &DetailRecord) -> Vec<MessageField> {
    [fields!(m: source, lane_sequence), report_detail(&m.detail)].concat()
}

fn report_detail(m: &ReportDetail) -> Vec<MessageField> {
    fields!(
        m: order_id, exec_id, fee = Notional(m.fee()).to_string(), fee_currency = m.fee_currency.as_str(),
        liquidity as Liquidity, venue_received_ns, venue_sent_ns, text = &*m.text()
    )
}

fn envelope(m: &Envelope) -> Vec<MessageField> {
    let before = m.departure_before();
    fields!(
        m: session, sent, reference_price, reference_age_ns, released_before,
        queued_before = u8::from(before.queued), handed_over_before = u8::from(before.handed_over), lane_sequence
    )
}

fn instrument(m: &Instrument) -> Vec<MessageField> {
    fields!(
        m: symbol, venue, name = m.name(), multiplier = decimal_text(m.multiplier.into(), m.multiplier_decimals), tick_size,
        lot, minimum_quantity, minimum_notional = m.minimum_notional().unwrap_or(0), lowest_price, highest_price,
        hours = hours(&m.hours), currency = m.currency().as_str(), rate_limit, rate_window_ns, restricted
    )
}

/// Formats the parts of the day in seconds since midnight UTC; empty for the whole day.
fn hours(hours: &[TradingHours]) -> String {
    let parts = hours.iter().filter(|part| !part.is_none());
    parts.map(|part| format!("{}-{}", part.opens_s, part.closes_s)).collect::<Vec<_>>().join(" ")
}

fn account_limits(m: &AccountLimits) -> Vec<MessageField> {
    fields!(
        m: account, rate_limit, rate_window_ns, max_order_quantity, max_notional = m.max_notional(),
        credit = m.credit().unwrap_or(0), collar, max_open_orders, max_reference_age_ns, max_request_age_ns,
        max_position, currency = m.currency().as_str(), order_trade_free, order_trade_ratio, duplicate_window_ns,
        no_self_match, max_gross_value = m.max_gross_value().unwrap_or(0), max_loss = m.max_loss().unwrap_or(0)
    )
}

fn symbol_limits(m: &SymbolLimits) -> Vec<MessageField> {
    fields!(m: account, symbol, max_position, max_order_quantity, restricted, no_short)
}

fn firm_limits(m: &FirmLimits) -> Vec<MessageField> {
    fields!(
        m: rate_limit, rate_window_ns, max_order_quantity, max_notional = m.max_notional().unwrap_or(0),
        credit = m.credit().unwrap_or(0), max_open_orders
    )
}

fn kill(m: &KillSwitch) -> Vec<MessageField> {
    fields!(m: scope = scope(m.scope), on, cancel, target)
}

fn scope(scope: u8) -> MessageFieldValue {
    scope_name(scope).map_or_else(|| scope.into(), MessageFieldValue::from)
}

fn boot(m: &Boot) -> Vec<MessageField> {
    let boot_id: String = m.boot_id.iter().map(|byte| format!("{byte:02x}")).collect();
    fields!(m: epoch, boot_id = boot_id, ticks_per_second, utc_ns)
}

fn venue_rules(m: &VenueRules) -> Vec<MessageField> {
    fields!(m: venue, numbered, answers_status, max_queued, max_gap_ns)
}

fn session_rules(m: &SessionRules) -> Vec<MessageField> {
    fields!(
        m: session, level, cancel_on_disconnect, withheld, rate_limit, rate_window_ns, max_order_quantity,
        max_notional = m.max_notional().unwrap_or(0)
    )
}

fn ended(m: &DefinitionEnd) -> Vec<MessageField> {
    let what = code("what", RecordKind::from_code(m.kind), m.kind);
    [vec![what], fields!(m: session, id)].concat()
}

fn returned(m: &UnsentRequest) -> Vec<MessageField> {
    let request_id = m.request().map_or(0, |request| request.client_order_id().0);
    let request = code("request", Kind::from_code(m.kind), m.kind);
    [fields!(m: venue), vec![request], fields!(m: request_id = order_id(request_id), received)].concat()
}

fn release(m: &Release) -> Vec<MessageField> {
    fields!(
        m: venue, order = order_id(m.order), request_id = order_id(m.request), reference_price, reference_age_ns
    )
}

fn doubt(m: &MessageLoss) -> Vec<MessageField> {
    let lost: MessageFieldValue = match m.lost {
        LOST_REQUESTS => "requests".into(),
        LOST_REPORTS => "reports".into(),
        other => other.into(),
    };
    fields!(m: venue, lost = lost, messages)
}

fn enter_order(m: &EnterOrder) -> Vec<MessageField> {
    fields!(
        m: client_order_id, sent_as = order_id(m.sent_as.0), venue_order_id, symbol, account, venue, session,
        side as Side, quantity, price, order_type as OrderType, time_in_force as TimeInForce,
        reason = reason(&m.reason)
    )
}

fn enter_fill(m: &EnterFill) -> Vec<MessageField> {
    fields!(
        m: order = order_id(m.order), exec_id, venue_sequence, price, quantity, reason = reason(&m.reason)
    )
}

fn enter_position(m: &EnterPosition) -> Vec<MessageField> {
    fields!(m: account, symbol, quantity, price, adjusts, reason = reason(&m.reason))
}

fn reason(bytes: &[u8]) -> String {
    let reason = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(reason).into_owned()
}

fn resolve(m: &Resolve) -> Vec<MessageField> {
    fields!(
        m: order = order_id(m.order), status as OrdStatus, cumulative_quantity, reason = reason(&m.reason)
    )
}

fn lane(m: &LaneRecord) -> Vec<MessageField> {
    let carries: MessageFieldValue = match m.carries {
        1 => "requests".into(),
        2 => "reports".into(),
        3 => "venue_requests".into(),
        4 => "venue_reports".into(),
        5 => "control".into(),
        other => other.into(),
    };
    fields!(m: carries = carries, index, incarnation, base)
}

fn name(m: &NameRecord) -> Vec<MessageField> {
    let of: MessageFieldValue = match m.of {
        NAME_VENUE => "venue".into(),
        NAME_SESSION => "session".into(),
        other => other.into(),
    };
    fields!(m: of = of, number, name = m.text())
}

/// Formats an id as its epoch and its journal sequence.
fn order_id(id: u64) -> String {
    field::order_id(OrderId(id))
}

fn start(m: &JournalStart) -> Vec<MessageField> {
    fields!(m: core_version, ticks_per_second)
}

fn stop(m: &JournalStop) -> Vec<MessageField> {
    let last = m.departure_before();
    fields!(
        m: released_before, queued_before = u8::from(last.queued), handed_over_before = u8::from(last.handed_over)
    )
}

fn digest(m: &Digest) -> Vec<MessageField> {
    fields!(m: inputs, outputs, digest)
}

fn flat<T: FromBytes>(payload: &[u8]) -> Option<T> {
    T::read_from_bytes(payload).ok()
}
