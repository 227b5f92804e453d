//! Questions of REST about orders, fills and positions, with OKX's filters and pages.

use serde_json::Value;
use tickpath_venue_sim_web::SimInstrument;

use crate::codes::{NO_ORDER_ID, OkxRefusal, PARAMETER, UNKNOWN_INSTRUMENT, UNKNOWN_ORDER};
use crate::fields::text_field;
use crate::instruments::{instrument_family, instrument_named, instrument_type};
use crate::order_rows::{rest_fill_row, rest_row, state_text};
use crate::records::OrderRecord;
use crate::trading_desk::TradingDesk;

/// Max rows of a page.
const MAX_ROWS: usize = 100;
const NS_PER_MS: u64 = 1_000_000;

/// Returns the order that a query names.
pub(crate) fn order(desk: &TradingDesk, account: usize, query: &Value, now_ns: u64) -> Result<Vec<Value>, OkxRefusal> {
    let name = text_field(query, "instId").ok_or_else(|| PARAMETER.about("instId"))?;
    instrument_named(&desk.sim, &name).ok_or_else(|| UNKNOWN_INSTRUMENT.refusal())?;
    let id = match (text_field(query, "ordId"), text_field(query, "clOrdId")) {
        (Some(id), _) => Some(id.parse::<u64>().map_err(|_| PARAMETER.about("ordId"))?),
        (None, Some(client_id)) => desk.records.find_client_id(account, &client_id),
        (None, None) => return Err(NO_ORDER_ID.refusal()),
    };
    let found = id.and_then(|id| desk.records.get(id));
    let found = found.filter(|record| record.order.account == account && !record.is_forgotten(now_ns));
    let record = found.ok_or_else(|| UNKNOWN_ORDER.refusal())?;
    Ok(vec![row_of(desk, record)])
}

/// Returns the open orders of an account.
pub(crate) fn pending(desk: &TradingDesk, account: usize, query: &Value, now_ns: u64) -> Vec<Value> {
    orders(desk, account, query, now_ns, |record| record.order.is_open())
}

/// Returns the ended orders of an account.
pub(crate) fn history(desk: &TradingDesk, account: usize, query: &Value, now_ns: u64) -> Vec<Value> {
    orders(desk, account, query, now_ns, |record| !record.order.is_open())
}

/// Returns the fills of an account, the newest first.
pub(crate) fn fills(desk: &TradingDesk, account: usize, query: &Value) -> Vec<Value> {
    let order = text_field(query, "ordId");
    let newest_first = desk.sim.fills(account).iter().enumerate().rev();
    let wanted = newest_first.filter(|(_, fill)| {
        covers(query, &desk.sim.instruments()[fill.instrument])
            && is_within(query, fill.at_ns)
            && order.as_ref().is_none_or(|order| *order == fill.order.to_string())
    });
    let rows = wanted.map(|(index, fill)| {
        let (number, instrument) = (index as u64 + 1, &desk.sim.instruments()[fill.instrument]);
        (number, rest_fill_row(fill, desk.records.get(fill.order), instrument, number))
    });
    page(query, rows)
}

/// Returns the positions of an account: open ones, and closed ones that the query names.
pub(crate) fn positions(desk: &TradingDesk, account: usize, query: &Value, now_ns: u64) -> Vec<Value> {
    let named = text_field(query, "instId");
    let kind = text_field(query, "instType");
    desk.positions.rows(account, &desk.sim, now_ns, |index, is_open| {
        let instrument = &desk.sim.instruments()[index];
        let is_kind = kind.as_ref().is_none_or(|kind| kind == instrument_type(instrument));
        is_kind
            && match &named {
                Some(named) => named.split(',').any(|name| name == instrument.name),
                None => is_open,
            }
    })
}

/// Returns whether a query covers an instrument, by its type, its family or its name.
pub(crate) fn covers(query: &Value, instrument: &SimInstrument) -> bool {
    let is = |name: &str, own: &str| text_field(query, name).is_none_or(|wanted| wanted == own);
    let family = instrument_family(instrument);
    is("instType", instrument_type(instrument))
        && is("instId", &instrument.name)
        && is("instFamily", &family)
        && is("uly", &family)
}

fn orders(
    desk: &TradingDesk,
    account: usize,
    query: &Value,
    now_ns: u64,
    is_wanted: impl Fn(&OrderRecord) -> bool,
) -> Vec<Value> {
    let state = text_field(query, "state");
    let kinds = text_field(query, "ordType");
    let is_listed =
        |list: &Option<String>, own: &str| list.as_ref().is_none_or(|list| list.split(',').any(|listed| listed == own));
    let wanted = desk.records.of_account(account, now_ns).filter(|record| {
        is_wanted(record)
            && covers(query, &desk.sim.instruments()[record.order.instrument])
            && is_listed(&state, state_text(record.order.state))
            && is_listed(&kinds, &record.note.order_type)
            && is_within(query, record.order.created_ns)
    });
    page(query, wanted.map(|record| (record.order.id, row_of(desk, record))))
}

fn row_of(desk: &TradingDesk, record: &OrderRecord) -> Value {
    rest_row(record, &desk.sim.instruments()[record.order.instrument])
}

/// Returns whether a time is within the query's bounds.
fn is_within(query: &Value, at_ns: u64) -> bool {
    let bound = |name: &str| text_field(query, name).and_then(|text| text.parse::<u64>().ok());
    let at_ms = at_ns / NS_PER_MS;
    bound("begin").is_none_or(|begin| at_ms >= begin) && bound("end").is_none_or(|end| at_ms <= end)
}

/// Returns a page of rows, which come with their ids, the newest first.
fn page(query: &Value, rows: impl Iterator<Item = (u64, Value)>) -> Vec<Value> {
    let number = |name: &str| text_field(query, name).and_then(|text| text.parse::<u64>().ok());
    let (after, before) = (number("after"), number("before"));
    let max = number("limit").and_then(|max| usize::try_from(max).ok()).unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let is_on_page = |id: u64| after.is_none_or(|after| id < after) && before.is_none_or(|before| id > before);
    rows.filter(|(id, _)| is_on_page(*id)).map(|(_, row)| row).take(max).collect()
}
