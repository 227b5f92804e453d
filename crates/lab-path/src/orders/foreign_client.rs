//! A client in another language, which speaks the protocol of `docs/clients.md`, and its settings.

use std::path::PathBuf;

use serde::Serialize;
use tickpath_clock::Clock;
use tickpath_market::NewOrder;

use super::login::BenchLogin;
use super::plan::plan;
use super::settings::Settings;
use crate::clients::spawn_script;
use tickpath_lab_harness::{Child, Lab, LabError, ThreadConfig};
use tickpath_lab_tools::python::Python;

const SCRIPT: (&str, &str) = ("bench_orders.py", include_str!("../python/bench_orders.py"));

#[derive(Debug, Serialize)]
struct OrdersScriptSettings<'a> {
    login: &'a BenchLogin,
    symbol: u32,
    account: u32,
    side: u8,
    /// In units of 10⁻⁸, like the quantity.
    price: i64,
    quantity: i64,
    time_in_force: &'a str,
    /// The id of its first order; ids count up from it.
    first_id: u64,
    count: u64,
    /// The time from an order's intended time to the next one's; full speed if there is none.
    interval_ticks: Option<u64>,
    /// Lateness above which a paced order counts as late.
    late_ticks: u64,
    thread: &'a ThreadConfig,
    out: PathBuf,
}

/// Starts the client, which is then logged in. The command `go` makes it send its group.
pub(super) fn spawn(
    python: &Python,
    lab: &Lab<'_>,
    settings: &Settings,
    login: &BenchLogin,
    thread: &ThreadConfig,
) -> Result<Child, LabError> {
    let NewOrder { price, quantity, account, side, .. } = settings.order.order().map_err(LabError::Setting)?;
    let batch = plan(settings)[0];
    let ticks = |ns| lab.clock.calibration().ticks_of_ns(ns);
    let script_settings = OrdersScriptSettings {
        login,
        symbol: settings.target.symbol(),
        account: account.0,
        side,
        price: price.0,
        quantity: quantity.0,
        // The time in force of a day has two names.
        time_in_force: if settings.order.tif == "rod" { "day" } else { settings.order.tif.as_str() },
        first_id: u64::from(batch.number) << 32,
        count: batch.count,
        interval_ticks: batch.interval_ns.map(ticks),
        late_ticks: ticks(batch.late_ns()),
        thread,
        out: lab.folder().join(format!("client.{}", batch.number)),
    };
    spawn_script(python, lab, "client", SCRIPT, &script_settings)
}
