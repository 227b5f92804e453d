//! Lies about T2: a stamp taken before the send, checked against the system calls of the sending thread.

use std::fs;

use tickpath_lab_harness::samples::load;
use tickpath_lab_harness::{Child, LabError};
use tickpath_lab_path::orders::{DepartureStamps, OrdersProcesses, Settings, VenueRoute, departures, run_with};
use tickpath_oms_runtime::Layout;

use crate::context::{CheckContext, FaultReport};
use crate::observer::ObserverRole;
use crate::orders::settings;

/// Number of orders, and orders a second: each is sent before the next one comes.
const COUNT: u64 = 200;
const RATE: f64 = 100.0;

/// Least number of a hundred hand-overs that must precede their send: the host may stop the core between the two.
const MIN_DETECTED_OF_100: usize = 90;

/// Plants the hand-over to a line's thread as T2.
pub(crate) fn early_stamp(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (split, inline) = (observe(stage, Layout::Split)?, observe(stage, Layout::Inline)?);
    let (split, inline) = match (split, inline) {
        (Ok(split), Ok(inline)) => (split, inline),
        (Err(why), _) | (_, Err(why)) => {
            return Ok(FaultReport {
                planted: format!("left out: {why}"),
                reported: "-".to_owned(),
                is_detected: true,
            });
        }
    };
    let early = split.count(|order| !split.has_send(order.received, order.handed));
    let [late, late_inline] =
        [&split, &inline].map(|seen| seen.count(|order| seen.has_send(order.received, order.released)));
    let all = COUNT as usize;
    Ok(FaultReport {
        planted: format!("{all} hand-overs for T2"),
        reported: format!(
            "{early} of {all} before their send has returned; of T2 {} in split, {} in inline",
            all - late.min(all),
            all - late_inline.min(all)
        ),
        is_detected: early * 100 >= MIN_DETECTED_OF_100 * all && late == all && late_inline == all,
    })
}

/// Stamps of the OMS, and the sends observed from outside.
struct SendObservation {
    orders: Vec<DepartureStamps>,
    sends: Vec<[u64; 2]>,
}

impl SendObservation {
    fn count(&self, is: impl Fn(&DepartureStamps) -> bool) -> usize {
        self.orders.iter().filter(|order| is(order)).count()
    }

    /// Returns whether a whole send lies between two stamps.
    fn has_send(&self, from: u64, to: u64) -> bool {
        self.sends.iter().any(|[begun, ended]| from <= *begun && *ended <= to)
    }
}

/// Runs over TCP in this layout. The inner error is the reason why the thread must not be traced.
fn observe(stage: &CheckContext<'_>, layout: Layout) -> Result<Result<SendObservation, String>, LabError> {
    let folder = stage.lab.folder();
    let (journal, out) = (folder.join(format!("early.{layout}")), folder.join(format!("early.{layout}.sends")));
    let settings = Settings {
        layout,
        venue: VenueRoute::Tcp,
        rate: Some(RATE),
        journal: Some(journal.clone()),
        ..settings(stage, COUNT)
    };
    let mut observer = None;
    run_with(stage.lab, &settings, |ends| {
        observer = Some(start_observer(stage, ends, layout, out.clone())?);
        Ok(())
    })?;
    let observer = match observer {
        Some(Ok(observer)) => observer,
        Some(Err(why)) => return Ok(Err(why)),
        None => return Err(LabError::Failed("no order was sent".to_owned())),
    };
    observer.stop::<()>()?;
    let orders = departures(stage.lab, &journal)?;
    let sends = load::<2>(&out)?;
    fs::remove_dir_all(journal).map_err(LabError::other)?;
    Ok(Ok(SendObservation { orders, sends }))
}

/// Begins to trace the sending thread.
fn start_observer(
    stage: &CheckContext<'_>,
    ends: &OrdersProcesses,
    layout: Layout,
    out: std::path::PathBuf,
) -> Result<Result<Child, String>, LabError> {
    let thread = if layout == Layout::Split { thread_of(ends.oms, "oms-line")? } else { ends.oms };
    let mut observer = stage.lab.spawn(&ObserverRole { thread, out })?;
    let why: Option<String> = observer.result(10.0)?;
    Ok(why.map_or(Ok(observer), Err))
}

/// Returns the id of the thread with this name.
fn thread_of(process: u32, name: &str) -> Result<u32, LabError> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(LabError::other)?;
    let is_it =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name);
    let task = tasks.filter_map(Result::ok).find(is_it);
    let id = task.and_then(|task| task.file_name().to_str()?.parse().ok());
    id.ok_or_else(|| LabError::Failed(format!("the OMS has no thread called {name}")))
}
