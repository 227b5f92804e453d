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
//! | `others.rs`     | a client in another language                                                |
//! | `beside.rs`     | the process of a client beside                                              |
//! | `system.rs`     | the processes of a run                                                      |
//! | `floor.rs`      | the cost of one `send`                                                      |
//! | `evaluation.rs` | from the recorded rows of all processes to runs                             |
//! | `day.rs`        | whole days: a day that a client requests, a day after which an OMS is killed |
//! | `compare.rs`    | the comparisons                                                             |

mod beside;
mod client;
mod compare;
mod day;
mod evaluation;
mod floor;
pub(crate) mod group;
mod login;
mod others;
mod plan;
mod route;
mod settings;
mod system;
mod users;

pub use beside::BesideRole;
pub use client::ClientRole;
pub use compare::comparisons;
pub use day::{day_seconds, restart, resume};
pub use evaluation::departed;
pub use floor::SenderRole;
pub use login::Login;
pub(crate) use login::log_in;
pub(crate) use route::{ReportKind, hear_socket, is_of_venue};
pub use settings::{Beside, MOST_SESSIONS, Running, Settings, Target, VenueRoute, check_other};
pub use system::Ends;
pub(crate) use users::{LANES_SCHEME, USER, login_at, write_users};

use std::sync::atomic::Ordering;

use tickpath_clock::Clock;

pub use crate::analyse::Departed;
pub use crate::trade::OrderSpec;
use client::STOPPED;
use evaluation::{Measured, evaluate};
use plan::{Batch, plan};
use settings::check;
use system::{Load, System};
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::{Around, Lab, LabError, interruption, memory};
use tickpath_lab_result::Run;

/// Runs all groups with one target, one layout and one wait mode.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Vec<Run>, LabError> {
    run_with(lab, settings, |_| Ok(()))
}

/// Runs like [`run`], but calls `begin` when all is ready, and sends the first order when it returns.
pub fn run_with(
    lab: &Lab<'_>,
    settings: &Settings,
    begin: impl FnOnce(&Ends) -> Result<(), LabError>,
) -> Result<Vec<Run>, LabError> {
    check(settings)?;
    let plan = plan(settings);
    lab.step(&settings.title(), seconds(settings))?;
    let around = Around::begin(lab, settings.cpus)?;
    let idle = tickpath_lab_harness::host::idle_gaps(&lab.clock, settings.cpus[1])?;
    let mut floor = Samples::default();
    let mut measure_floor = || match settings.target {
        Target::LogonLanes | Target::Unix | Target::Tcp => {
            floor.0.extend(floor::sends(lab, settings, settings.shared_wait())?.0);
            Ok::<_, LabError>(())
        }
        Target::Lanes | Target::Running(_) => Ok(()),
    };
    measure_floor()?;
    let expected = plan.iter().map(|batch| batch.count as usize).sum();
    let load = Load { expected, evicts: plan.iter().any(|batch| batch.evict), snapshot_every: 0 };
    let mut system = System::start(lab, settings, load)?;
    let (ends, mut measured) = (system.ends(), Vec::new());
    begin(&ends)?;
    let mut broke_off = None;
    for &batch in &plan {
        let before = memory::of(ends.oms);
        let (from, waited_ns, cpu_ns) =
            (lab.clock.ticks(), memory::waited_ns(ends.oms), tickpath_clock::cpu_ns(ends.oms));
        let is_stopped = || !measured.is_empty() && interruption().load(Ordering::Relaxed);
        if is_stopped() {
            broke_off = Some((batch.count, (0, STOPPED.to_owned())));
            break;
        }
        let answered = match system.batch(&batch) {
            // The groups before are kept.
            Err(_) if is_stopped() => {
                broke_off = Some((batch.count, (0, STOPPED.to_owned())));
                break;
            }
            answered => answered.map_err(|e| settings.may_be_open(e))?,
        };
        let waited_ns = memory::waited_ns(ends.oms).saturating_sub(waited_ns);
        let cpu_ns = tickpath_clock::cpu_ns(ends.oms).saturating_sub(cpu_ns);
        let took_ns = lab.clock.ns_between(from, lab.clock.ticks()).unsigned_abs();
        broke_off = answered.broke_off.clone().map(|broke_off| (batch.count, broke_off));
        match &broke_off {
            Some((_, (0, why))) if measured.is_empty() => {
                return Err(settings.may_be_open(LabError::Failed(why.clone())));
            }
            Some((_, (0, _))) => break,
            _ => {}
        }
        measured.push(Measured { batch, answered, before, after: memory::of(ends.oms), waited_ns, cpu_ns, took_ns });
        if broke_off.is_some() {
            break;
        }
    }
    let connected = std::mem::take(&mut system.connected);
    let (told, heard_beside) = system.stop()?;
    measure_floor()?;
    let mut runs = evaluate(lab, settings, &measured, &idle)?;
    if let Some(first) = runs.first_mut() {
        first.figures.extend(connected.into_iter().map(|(name, value)| (name.to_owned(), value)));
        first.figures.extend(heard_beside.map(|heard| ("beside_reports".to_owned(), heard as f64)));
    }
    if !floor.0.is_empty() {
        let send_ns = floor.p50_ns(lab.clock.calibration());
        runs.iter_mut().for_each(|run| run.figures.extend([("send_ns".to_owned(), send_ns)]));
    }
    if let Some(last) = runs.last_mut() {
        last.notes.extend(told);
    }
    around.end(lab, &mut runs)?;
    let Some((count, (sent, why))) = broke_off else { return Ok(runs) };
    if let (Some(may_be_open), Some(last)) = (settings.open_orders(), runs.last_mut()) {
        last.notes.push(may_be_open.to_owned());
    }
    match sent {
        // The runs so far were complete.
        0 => Err(LabError::BrokeOff { runs, why }),
        _ => Err(LabError::broke_off(runs, sent, count, "orders", why)),
    }
}

/// Estimates the duration of [`run`].
pub fn seconds(settings: &Settings) -> f64 {
    /// Seconds to start and end the processes, without and with measuring the cost of a send through a socket.
    const AROUND: [f64; 2] = [3.0, 6.0];
    AROUND[usize::from(settings.target.has_socket())] + plan(settings).iter().map(Batch::seconds).sum::<f64>()
}
