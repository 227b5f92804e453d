//! `orders`: batches of orders through an OMS to a venue, in the form of the f9omstw benchmark.
//!
//! ```text
//!   client process ──lane or sockets──> OMS process ──lane──> venue process
//!   T0 before the send                  T1 seen  T2 released
//!   generator's CPU                     system's CPU          shares the generator's
//! ```
//! Groups g1 … g6 are 1 to 100,000 new orders at full speed, d1 … d6 as many cancels, s1 … s3 new orders 1 s, 0.5 s and
//! 0.1 s apart, and e1 … e3 the same with the system's caches evicted before each. A run is valid only if the OMS has a
//! CPU of its own.
//!
//! | file            | contents                                                                    |
//! |-----------------|-----------------------------------------------------------------------------|
//! | `login.rs`      | logging a client in                                                         |
//! | `users.rs`      | the file of users that may log in                                           |
//! | `settings.rs`   | settings, and the rules that refuse impossible ones                         |
//! | `group.rs`      | groups by number and by name                                                |
//! | `plan.rs`       | the groups, with their sizes and pauses                                     |
//! | `route.rs`      | a lane or a socket                                                          |
//! | `client.rs`     | the client's process, with one session or a thousand                        |
//! | `foreign_client.rs`     | a client in another language                                                |
//! | `side_client.rs`     | the process of a client beside                                              |
//! | `system.rs`     | the processes of a run                                                      |
//! | `floor.rs`      | the cost of one `send`                                                      |
//! | `evaluation.rs` | from the recorded rows of all processes to runs                             |
//! | `day.rs`        | whole days: a day that a client requests, a day after which an OMS is killed |
//! | `compare.rs`    | the comparisons                                                             |

mod client;
mod compare;
mod day;
mod evaluation;
mod floor;
mod foreign_client;
pub mod group;
mod login;
mod plan;
mod route;
mod settings;
mod side_client;
mod system;
mod users;

pub use client::ClientRole;
pub use compare::comparisons;
pub use day::{day_seconds, restart, resume};
pub use evaluation::departures;
pub use floor::SenderRole;
pub use login::BenchLogin;
pub(crate) use login::log_in;
pub use route::is_from_venue;
pub(crate) use route::{ClientReportKind, receive_socket};
pub use settings::{MAX_SESSIONS, OrdersTarget, RunningOms, Settings, SideClient, VenueRoute, check_client};
pub use side_client::SideClientRole;
pub use system::OrdersProcesses;
pub(crate) use users::{LANES_SCHEME, USER, login_at, write_users};

use std::sync::atomic::Ordering;

use tickpath_clock::Clock;

pub use crate::analyse::DepartureStamps;
pub use crate::trade::OrderSpec;
use client::BENCH_STOPPED;
use evaluation::{MeasuredGroup, evaluate};
use plan::{OrderBatch, plan};
use settings::check;
use system::{OrdersSystem, SystemLoad};
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::{Lab, LabError, StabilityCheck, interruption, memory};
use tickpath_lab_result::Run;

/// Runs all groups with one target, one layout and one wait mode.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Vec<Run>, LabError> {
    run_with(lab, settings, |_| Ok(()))
}

/// Runs like [`run`], but calls `begin` when all is ready, and sends the first order when it returns.
pub fn run_with(
    lab: &Lab<'_>,
    settings: &Settings,
    begin: impl FnOnce(&OrdersProcesses) -> Result<(), LabError>,
) -> Result<Vec<Run>, LabError> {
    check(settings)?;
    let plan = plan(settings);
    lab.step(&settings.title(), seconds(settings))?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let idle = tickpath_lab_harness::host::idle_gaps(&lab.clock, settings.cpus[1])?;
    let mut floor = Samples::default();
    let mut measure_floor = || match settings.target {
        OrdersTarget::LogonLanes | OrdersTarget::Unix | OrdersTarget::Tcp => {
            floor.0.extend(floor::measure_sends(lab, settings, settings.shared_wait())?.0);
            Ok::<_, LabError>(())
        }
        OrdersTarget::Lanes | OrdersTarget::Running(_) => Ok(()),
    };
    measure_floor()?;
    let expected = plan.iter().map(|batch| batch.count as usize).sum();
    let load = SystemLoad { expected, evicts_caches: plan.iter().any(|batch| batch.evict), snapshot_every: 0 };
    let mut system = OrdersSystem::start(lab, settings, load)?;
    let (ends, mut measured) = (system.processes(), Vec::new());
    begin(&ends)?;
    let mut broke_off = None;
    for &batch in &plan {
        let before = memory::resident(ends.oms);
        let (from, waited_ns, cpu_ns) =
            (lab.clock.ticks(), memory::waited_ns(ends.oms), tickpath_clock::cpu_ns(ends.oms));
        let is_stopped = || !measured.is_empty() && interruption().load(Ordering::Relaxed);
        if is_stopped() {
            broke_off = Some((batch.count, (0, BENCH_STOPPED.to_owned())));
            break;
        }
        let answered = match system.run_batch(&batch) {
            // The groups before are kept.
            Err(_) if is_stopped() => {
                broke_off = Some((batch.count, (0, BENCH_STOPPED.to_owned())));
                break;
            }
            answered => answered.map_err(|e| settings.with_open_orders(e))?,
        };
        let waited_ns = memory::waited_ns(ends.oms).saturating_sub(waited_ns);
        let cpu_ns = tickpath_clock::cpu_ns(ends.oms).saturating_sub(cpu_ns);
        let took_ns = lab.clock.ns_between(from, lab.clock.ticks()).unsigned_abs();
        broke_off = answered.broke_off.clone().map(|broke_off| (batch.count, broke_off));
        match &broke_off {
            Some((_, (0, why))) if measured.is_empty() => {
                return Err(settings.with_open_orders(LabError::Failed(why.clone())));
            }
            Some((_, (0, _))) => break,
            _ => {}
        }
        measured.push(MeasuredGroup {
            batch,
            answers: answered,
            before,
            after: memory::resident(ends.oms),
            waited_ns,
            cpu_ns,
            took_ns,
        });
        if broke_off.is_some() {
            break;
        }
    }
    let connected = std::mem::take(&mut system.connect_costs);
    let (oms_messages, side_reports) = system.stop()?;
    measure_floor()?;
    let mut runs = evaluate(lab, settings, &measured, &idle)?;
    if let Some(first) = runs.first_mut() {
        first.figures.extend(connected.into_iter().map(|(name, value)| (name.to_owned(), value)));
        first.figures.extend(side_reports.map(|reports| ("beside_reports".to_owned(), reports as f64)));
    }
    if !floor.0.is_empty() {
        let send_ns = floor.p50_ns(lab.clock.calibration());
        runs.iter_mut().for_each(|run| run.figures.extend([("send_ns".to_owned(), send_ns)]));
    }
    if let Some(last) = runs.last_mut() {
        last.notes.extend(oms_messages);
    }
    around.end(lab, &mut runs)?;
    let Some((count, (sent, why))) = broke_off else { return Ok(runs) };
    if let (Some(may_be_open), Some(last)) = (settings.open_orders_warning(), runs.last_mut()) {
        last.notes.push(may_be_open.to_owned());
    }
    match sent {
        // The runs so far were complete.
        0 => Err(LabError::Aborted { runs, why }),
        _ => Err(LabError::aborted(runs, sent, count, "orders", why)),
    }
}

/// Estimates the duration of [`run`].
pub fn seconds(settings: &Settings) -> f64 {
    /// Seconds to start and end the processes, without and with measuring the cost of a send through a socket.
    const SETUP_S: [f64; 2] = [3.0, 6.0];
    SETUP_S[usize::from(settings.target.has_socket())] + plan(settings).iter().map(OrderBatch::seconds).sum::<f64>()
}
