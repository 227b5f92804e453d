//! The orders of a core, as the tables of `tickpath orders`.
//!
//! ```text
//!   order       since                 client_order_id  session  account   symbol  side  …  status            when
//!   3474042.12  2026-11-22T18:03:46Z               12        0        1  BTCUSDT   buy  …  partially_filled
//!   3474042.14  2026-11-22T18:03:51Z               13        0        1  BTCUSDT   buy  …  armed             BTCUSDT last >= 65000
//! ```

use tickpath_clock::rfc3339;
use tickpath_market::{ExecType, OrdStatus, OrderId, Side, SymbolId};
use tickpath_oms_core::{Core, OrderView, UnknownOrderReport};

use crate::field::{code_name, order_id};
use crate::trigger;

const HEADS: [&str; 14] = [
    "order",
    "since",
    "client_order_id",
    "session",
    "account",
    "symbol",
    "venue",
    "side",
    "quantity",
    "filled",
    "leaves",
    "price",
    "status",
    "when",
];

/// Formats the table of open orders, oldest first, and below it the number of other orders. `since` returns the time of
/// an order in nanoseconds since the Unix epoch, if it is known.
pub fn open_orders(core: &Core, since: impl Fn(OrderId) -> Option<u64>) -> String {
    let mut open: Vec<OrderView> = core.open_orders().collect();
    open.sort_by_key(|order| order.id.0);
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(open.iter().map(|order| row(order, core, since(order.id))));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut text = String::new();
    for row in if open.is_empty() { &rows[..0] } else { &rows[..] } {
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
        let name = core.instrument(report.symbol).map_or_else(|| report.symbol.0.to_string(), |i| i.name.to_string());
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
    core.instrument(symbol).map(|instrument| instrument.name.to_string()).filter(|name| !name.is_empty())
}

fn row(order: &OrderView, core: &Core, since: Option<u64>) -> [String; 14] {
    let name = |symbol: SymbolId| symbol_name(core, symbol).unwrap_or_else(|| symbol.0.to_string());
    [
        order_id(order.id),
        since.map_or_else(String::new, rfc3339),
        order.client_order_id.0.to_string(),
        order.session.to_string(),
        order.account.0.to_string(),
        name(order.symbol),
        order.venue.to_string(),
        code_name(order.side),
        order.quantity.to_string(),
        order.cumulative.to_string(),
        order.leaves.to_string(),
        order.price.to_string(),
        code_name(order.status),
        core.armed_order(order.id).map_or_else(String::new, |armed| trigger::text(&armed.trigger, name)),
    ]
}
