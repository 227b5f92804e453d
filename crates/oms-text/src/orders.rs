//! The orders of a core, as the tables of `tickpath orders`.
//!
//! ```text
//!   order       since                 …   symbol  side  …  status            when
//!   3474042.12  2026-11-22T18:03:46Z  …  BTCUSDT   buy  …  partially_filled
//!   3474042.14  2026-11-22T18:03:51Z  …  BTCUSDT   buy  …  armed             BTCUSDT last >= 65000
//! ```

use tickpath_clock::rfc3339;
use tickpath_market::{ExecType, OrdStatus, OrderId, Side, SymbolId};
use tickpath_oms_core::{Core, OrderView, UnknownOrderReport};

use crate::field::{code_name, order_id};
use crate::trigger;

/// Formats the table of open orders, oldest first, and below it the number of other orders. `since` returns the time of
/// an order in nanoseconds since the Unix epoch, if it is known.
pub fn open_orders(core: &Core, since: impl Fn(OrderId) -> Option<u64>) -> String {
    let mut open: Vec<OrderView> = core.open_orders().collect();
    open.sort_by_key(|order| order.id.0);
    let fields: Vec<[(&str, String); 16]> = open.iter().map(|order| row(order, core, since(order.id))).collect();
    let heads = fields.first().map(|row| row.each_ref().map(|(name, _)| name.to_string()));
    let cells = fields.into_iter().map(|row| row.map(|(_, cell)| cell));
    let rows: Vec<[String; 16]> = heads.into_iter().chain(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 16] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let counts = core.counts();
    text.push_str(&format!(
        "{} open ({} waiting, {} in flight, {} unknown), {} done, {} rejected; {} requests were denied\n",
        open.len(),
        counts.queued,
        counts.sending,
        counts.unknown,
        counts.done,
        counts.rejected,
        counts.denied_requests
    ));
    text
}

/// Formats the reports on orders that the core does not know, oldest first, and their number.
pub fn foreign_reports(core: &Core) -> String {
    let mut text = String::new();
    for UnknownOrderReport { sequence, record } in core.unknown_order_reports() {
        let report = &record.report;
        let name = core.instrument(report.symbol).map_or_else(|| report.symbol.0.to_string(), |i| i.name().to_string());
        text.push_str(&format!(
            "record {sequence}: venue {} sent_as {} venue_order_id {} account {} {name} {} {} {} filled {} leaves {} \
             last {}@{} exec_id {} number {}\n",
            record.source,
            order_id(report.order_id),
            report.venue_order_id.0,
            report.account.0,
            Side::from_code(report.side).map_or_else(String::new, code_name),
            ExecType::from_code(report.exec_type).map_or_else(String::new, code_name),
            OrdStatus::from_code(report.status).map_or_else(String::new, code_name),
            report.cumulative_quantity,
            report.leaves_quantity,
            report.last_quantity,
            report.last_price,
            report.exec_id.0,
            report.venue_sequence,
        ));
    }
    let count = core.unknown_order_report_count();
    text.push_str(&format!("{count} reports of unknown orders\n"));
    text
}

/// Returns the name of an instrument, if the journal has defined one.
pub fn symbol_name(core: &Core, symbol: SymbolId) -> Option<String> {
    core.instrument(symbol).map(|instrument| instrument.name().to_string()).filter(|name| !name.is_empty())
}

fn row(order: &OrderView, core: &Core, since: Option<u64>) -> [(&'static str, String); 16] {
    let name = |symbol: SymbolId| symbol_name(core, symbol).unwrap_or_else(|| symbol.0.to_string());
    let armed = core.armed_order(order.id);
    let expire_ns = core.extension(order.id).map_or(0, |extension| extension.expire_ns);
    let when = armed.map_or_else(String::new, |armed| trigger::text(&armed.trigger, name));
    [
        ("order", order_id(order.id)),
        ("since", since.map_or_else(String::new, rfc3339)),
        ("client_order_id", order.client_order_id.0.to_string()),
        ("session", order.session.to_string()),
        ("account", order.account.0.to_string()),
        ("symbol", name(order.symbol)),
        ("venue", order.venue.to_string()),
        ("side", code_name(order.side)),
        ("quantity", order.quantity.to_string()),
        ("filled", order.cumulative.to_string()),
        ("leaves", order.leaves.to_string()),
        ("price", order.price.to_string()),
        ("status", code_name(order.status)),
        ("when", when),
        ("expires", if expire_ns == 0 { String::new() } else { rfc3339(expire_ns) }),
        ("client_id", core.text_id(order.id).map_or_else(String::new, |text_id| text_id.to_string())),
    ]
}
