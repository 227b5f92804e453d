//! `path --via`: from the packet with a tick to the packet with an order, by the protocols of a real exchange.
//!
//! ```text
//!   exchange process              trader process, one thread                               exchange process
//!   tick ──TLS, WebSocket──> wire ─> read ─> framed ─> parsed ─> T0 ─> core ─> handed ─> encoded ─> ready ─> written ──> arrived
//!   intended                        kernel   TLS       feed      strategy                line       TLS      kernel
//!   generator's CPU                system's CPU
//! ```
//!
//! The exchange is `tickpath exchange --as okx|binance` on the loopback, which takes no more orders than the real one, so
//! that a run is slow and its path is cold. The strategy is that of `path`. A strategy in Python is two processes as
//! people have them: one watches the exchange by ccxt and publishes, the other subscribes and orders by ccxt.
//!
//! # Invariants
//!
//! * An order names its tick by its price, on every side and in every language, so that no message carries anything for
//!   the measurement.
//! * Both ends of `packet_to_packet` are stamps of the exchange's process, made alike for every client.

mod client;
mod demo;
mod exchange;
mod exchange_hops;
mod own_trader;
mod protocol;
mod settings;
mod stacks;
mod trader;

use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Priority, Wait};
use tickpath_lab_harness::{Lab, LabError, RoleEntry, StabilityCheck, ThreadConfig};
use tickpath_lab_result::Run;

pub use client::ExchangeClient;
pub use demo::{DEMO_SECONDS, demo_settings, demo_text};
pub use protocol::ViaExchange;
pub use settings::Settings;

use exchange::WebExchangeRole;
use settings::RunFiles;
use trader::WebTraderRole;

/// The process roles of the workload.
pub const ROLES: &[RoleEntry] = &[RoleEntry::of::<WebExchangeRole>(), RoleEntry::of::<WebTraderRole>()];

/// Runs once.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    settings.check()?;
    lab.step(&format!("path via {} by {}", settings.via, settings.client.name()), settings.seconds())?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let name = format!("{}.via{}", lab.name, RUN.fetch_add(1, Ordering::Relaxed));
    let files = RunFiles { name: name.clone(), folder: lab.folder().to_owned() };
    let exchange = WebExchangeRole {
        via: settings.via,
        rate: settings.rate,
        count: settings.count,
        orders: settings.orders(),
        ca: files.of("ca.pem"),
        thread: ThreadConfig::new(settings.cpus[0], Wait::Busy, Priority::Normal),
        out: files.of("exchange"),
    };
    let mut exchange = lab.spawn(&exchange)?;
    let address: String = exchange.result(10.0)?;
    let mut run = match &settings.client {
        ExchangeClient::Rust => own_trader::trade(lab, settings, &files, exchange, address)?,
        ExchangeClient::Scripts(scripts) => stacks::trade(lab, settings, scripts, &files, exchange, &address)?,
    };
    describe(&mut run, settings);
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

fn describe(run: &mut Run, settings: &Settings) {
    run.target = format!("{}+wss://", settings.via);
    run.repeat = settings.repeat;
    settings.client.describe(run);
    run.params.set("via", settings.via.name());
    run.params.set("rate_per_s", settings.rate);
    run.params.set("cpus", settings.cpus.to_vec());
    run.notes.push(format!(
        "The exchange is simulated, on this host's loopback, and takes orders as {} does, {} a second at most: one tick in {} \
         is answered",
        settings.via,
        settings.via.max_orders_per_s(),
        settings.ticks_per_order()
    ));
}
