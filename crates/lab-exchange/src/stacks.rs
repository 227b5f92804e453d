//! A watcher and a strategy in Python: ccxt at both ends, and a bus between them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use tickpath_clock::{Calibration, Clock};
use tickpath_lab_harness::attribution::drop_attribution;
use tickpath_lab_harness::samples::{Samples, load};
use tickpath_lab_harness::targets::TopicGuard;
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::{Run, Stage};
use tickpath_market::Price;

use crate::client::{ScriptStack, is_redis};
use crate::exchange::ExchangeRow;
use crate::exchange_hops::{add_exchange_hops, count_orders, send_ticks};
use crate::protocol::{ExchangeAccount, ViaExchange, quotes, tick_of};
use crate::settings::{RunFiles, Settings};

/// The scripts, and a module for each bus.
const STACK: (&str, &str) = ("exchange_stack.py", include_str!("python/exchange_stack.py"));
const REDIS_PY_MODULE: (&str, &str) = ("stack_redis_py.py", include_str!("python/stack_redis_py.py"));
const TICKPATH_MODULE: (&str, &str) = ("stack_tickpath.py", include_str!("python/stack_tickpath.py"));

#[derive(Serialize)]
struct StackSettings<'a> {
    role: &'a str,
    library: &'a str,
    url: &'a str,
    topic: &'a str,
    via: ViaExchange,
    address: &'a str,
    ca: PathBuf,
    account: ExchangeAccount,
    ticks_per_order: u64,
    /// The bid of the first tick, and from one tick to the next, in units of 10⁻⁸.
    first_bid: i64,
    step: i64,
    out: PathBuf,
}

/// Runs the scripts, which end with the exchange's last tick.
pub(crate) fn trade(
    lab: &Lab<'_>,
    settings: &Settings,
    stack: &ScriptStack,
    files: &RunFiles,
    mut exchange: Child,
    address: &str,
) -> Result<Run, LabError> {
    let module = if is_redis(&stack.url) { REDIS_PY_MODULE } else { TICKPATH_MODULE };
    let topic = format!("tickpath:{}", files.name);
    let _removed = TopicGuard { target: &stack.url, topic: &topic };
    let spawn = |role: &'static str| {
        let part = StackSettings {
            role,
            library: module.0.trim_end_matches(".py"),
            url: &stack.url,
            topic: &topic,
            via: settings.via,
            address,
            ca: files.of("ca.pem"),
            account: settings.via.account(),
            ticks_per_order: settings.ticks_per_order(),
            first_bid: quotes(0).0.0,
            step: quotes(1).0.0 - quotes(0).0.0,
            out: files.of(role),
        };
        stack.python.spawn(lab, role, &[STACK, module], &part)
    };
    let mut watcher = spawn("watcher")?;
    let mut strategy = spawn("strategy")?;
    send_ticks(&mut exchange, settings)?;
    for script in [&mut strategy, &mut watcher] {
        let _ = script.send("end");
        script.result::<()>(15.0)?;
    }
    exchange.stop::<()>()?;
    assemble(lab, settings, files)
}

fn assemble(lab: &Lab<'_>, settings: &Settings, files: &RunFiles) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let ticks: Vec<ExchangeRow> = load(&files.of("exchange"))?;
    // A fill changes the quantity of a quote, which is then watched again.
    let watched: BTreeSet<u64> =
        load::<3>(&files.of("watcher"))?.into_iter().filter_map(|[bid, ..]| tick(bid)).collect();
    let ordered = load::<4>(&files.of("strategy"))?;
    let now = MonotonicTime::now(lab);
    let in_ticks = |ns: u64| now.ticks_of(calibration, ns);
    let mut run = Run { valid: true, ..Run::default() };
    // Exchange's send, received by the strategy, called, arrived, returned.
    let mut rows: Vec<[u64; 5]> = Vec::new();
    for [bid, received, called, returned] in ordered {
        let Some(row) = tick(bid).and_then(|tick| ticks.get(tick as usize)) else { continue };
        rows.push([row[2], in_ticks(received), in_ticks(called), row[3], in_ticks(returned)]);
    }
    const STEPS: [&str; 4] = ["packet_to_received", "received_to_called", "called_to_arrived", "arrived_to_returned"];
    for (at, name) in STEPS.into_iter().enumerate() {
        let all = rows.iter().filter(|row| row[at] != 0 && row[at + 1] != 0).map(|row| (row[at], row[at + 1]));
        let samples = Samples(all.collect());
        if samples.0.is_empty() {
            continue;
        }
        run.stages.push(Stage { name: name.to_owned(), p50_ns: Some(samples.p50_ns(calibration)), ..Stage::default() });
    }
    add_exchange_hops(&mut run, &ticks, calibration);
    count_orders(&mut run, settings, watched.len() as u64, &ticks);
    drop_attribution(&mut run);
    Ok(run)
}

/// Returns the tick of a bid in units of 10⁻⁸.
fn tick(bid: u64) -> Option<u64> {
    tick_of(Price(i64::try_from(bid).ok()?))
}

/// A moment on both clocks. The host's calibration is of the boot: over hours the two drift by milliseconds.
struct MonotonicTime {
    ticks: u64,
    ns: u64,
}

impl MonotonicTime {
    fn now(lab: &Lab<'_>) -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self { ticks: lab.clock.ticks(), ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 }
    }

    /// Returns an earlier time of the monotonic clock in ticks; zero stays zero.
    fn ticks_of(&self, calibration: &Calibration, ns: u64) -> u64 {
        match self.ns.checked_sub(ns) {
            Some(ago_ns) if ns != 0 => self.ticks.saturating_sub(calibration.ticks_of_ns(ago_ns)),
            _ => 0,
        }
    }
}
