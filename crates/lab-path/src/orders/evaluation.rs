//! From the records of the journal, the client and the OMS to runs.

use std::path::Path;

use tickpath_clock::{Clock, SchedulingGap, Wait};
use tickpath_oms_runtime::AckLevel;

use super::client::{BatchAnswers, DENIED};
use super::plan::OrderBatch;
use super::settings::{OrdersTarget, Settings, VenueRoute};
use super::system::gaps_file;
use crate::analyse::{self, DepartureStamps, JournalContents, RequestGroup};
use crate::clients::TradingClient;
use crate::send_log::SendLog;
use tickpath_lab_harness::attribution::{clip_gaps, drop_attribution, note_stalls, void_attribution};
use tickpath_lab_harness::memory::{self, ResidentMemory};
use tickpath_lab_harness::rules::{add_receiver_cpu, refuse_loss, refuse_starved};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::{MessageCounts, Run};

/// Min orders of a burst for a rate.
const MIN_RATED_ORDERS: u64 = 100;

pub(super) struct MeasuredGroup {
    pub batch: OrderBatch,
    pub answers: BatchAnswers,
    pub before: ResidentMemory,
    pub after: ResidentMemory,
    /// The wait of the core's thread for its CPU, the OMS's CPU time, and the duration.
    pub waited_ns: u64,
    pub cpu_ns: u64,
    pub took_ns: u64,
}

/// Makes runs from the records of the journal, the client and the OMS.
pub(super) fn evaluate(
    lab: &Lab<'_>,
    settings: &Settings,
    measured: &[MeasuredGroup],
    idle: &[SchedulingGap],
) -> Result<Vec<Run>, LabError> {
    let is_ours = !matches!(settings.target, OrdersTarget::Running(_));
    let gaps = if is_ours { load_gaps(&gaps_file(lab))? } else { Vec::new() };
    let journal = settings.journal_in(lab);
    // An OMS that is not ours does not stamp its sends.
    let read = if is_ours { Ok(read(lab, &journal)?) } else { analyse::read(&journal) };
    let mut runs = Vec::new();
    for one in measured {
        let MeasuredGroup { batch, answers: answered, before, after, waited_ns, cpu_ns, took_ns } = one;
        let group = read.as_ref().ok().and_then(|read| read.groups.get(&batch.number));
        let Some(group) = group else {
            let why =
                read.as_ref().err().map_or_else(|| "it holds nothing of this run".to_owned(), LabError::to_string);
            if is_ours {
                return Err(LabError::Failed(format!("the journal holds nothing of {}", batch.name())));
            }
            let mut run = run_of_settings(settings, batch);
            run.notes.push(format!("T1 and T2 are not known: the OMS's journal cannot be read here ({why})"));
            client_hops(&mut run, lab, settings, one, None, &[])?;
            runs.push(run);
            continue;
        };
        let window = (group.first_sent(), answered.last_report.max(group.last_done()));
        let own = clip_gaps(&gaps, window.0, window.1);
        let mut run = group.run(lab.clock.calibration(), &own);
        describe(&mut run, settings, batch);
        run.figures.insert("journal_bytes_per_order".to_owned(), group.bytes as f64 / group.len() as f64);
        client_hops(&mut run, lab, settings, one, Some(group), &own)?;
        if settings.level == AckLevel::Disk {
            without_release(&mut run);
        }
        if is_ours {
            memory_of(&mut run, batch, *before, *after);
        }
        // A burst is too short for waiting.
        if batch.interval_ns.is_some() {
            add_receiver_cpu(&mut run, *cpu_ns);
        }
        let lasted_ns = lab.clock.ns_between(window.0, window.1);
        // The evictor's walks would pass for the host's gaps; the gaps of another's OMS are unknown, as are those of an
        // OMS that does not spin.
        let has_own_cpu = is_ours && settings.wait == Wait::Busy && !batch.evict;
        match has_own_cpu {
            true => void_attribution(&mut run, idle, &own, lasted_ns as f64 / 1e9),
            false => drop_attribution(&mut run),
        }
        note_stalls(&mut run, "OMS", &own, lasted_ns.unsigned_abs(), lab.clock.calibration());
        // A thread that finds orders right after its wait shows no gap, but the kernel counts that wait. The kernel's
        // own work for a disk, or during the moment of a burst, is no neighbour's.
        if has_own_cpu && batch.interval_ns.is_some() && settings.level == AckLevel::Os {
            refuse_starved(&mut run, "OMS", *waited_ns, *took_ns);
        }
        runs.push(run);
    }
    if let Some(last) = runs.last_mut().filter(|_| is_ours) {
        let expected = measured.iter().map(|measured| measured.batch.count as usize).sum();
        last.figures.insert("replay_inputs_per_s".to_owned(), replay_rate(lab, &journal, expected)?);
    }
    if is_ours && settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(&journal);
    }
    Ok(runs)
}

/// Returns the stamps of each request in the journal of a run that has ended in this lab.
pub fn departures(lab: &Lab<'_>, journal: &Path) -> Result<Vec<DepartureStamps>, LabError> {
    Ok(read(lab, journal)?.groups.into_values().flat_map(RequestGroup::into_departures).collect())
}

/// Reads the journal of a run of this lab, with the sends that its line has stamped.
fn read(lab: &Lab<'_>, journal: &Path) -> Result<JournalContents, LabError> {
    let mut read = analyse::read(journal)?;
    let sends = SendLog::load(&SendLog::file(&gaps_file(lab)))?;
    read.groups.values_mut().for_each(|group| group.apply_sends(&sends));
    Ok(read)
}

/// Removes the hops of T2 where T2 is stamped before the disk has an order: it is not the order's departure, and every
/// order had to wait.
fn without_release(run: &mut Run) {
    for hop in [
        "t1_handed",
        "t0_handed",
        "handed_t2",
        "t1_t2",
        "t0_t2",
        "t2_gap",
        "tick_to_order",
        "t0_t2_denied",
        "t0_t2_kept",
    ] {
        run.hops.remove(hop);
    }
    let of_release = ["first_t0_to_last_t2_ns", "last_order_t2_ns", "last_t2_to_last_report_ns"];
    for figure in of_release.into_iter().chain(["orders_sending", "orders_queued"]) {
        run.figures.remove(figure);
    }
}

fn memory_of(run: &mut Run, batch: &OrderBatch, before: ResidentMemory, after: ResidentMemory) {
    run.memory = Some(memory::memory_use(before, after));
    let growth = after.orders_bytes.saturating_sub(before.orders_bytes) as f64;
    // Memory comes in pages: a few orders would be charged with a whole page.
    if batch.cancels.is_none() && batch.count >= 100_000 {
        run.figures.insert("bytes_per_order".to_owned(), growth / batch.count as f64);
    }
}

/// Returns a run without the journal's figures.
pub(super) fn run_of_settings(settings: &Settings, batch: &OrderBatch) -> Run {
    let mut run = Run { valid: true, ..Run::default() };
    describe(&mut run, settings, batch);
    run
}

fn describe(run: &mut Run, settings: &Settings, batch: &OrderBatch) {
    run.target = settings.target.url().to_owned();
    settings.client.describe_client(run);
    run.repeat = settings.repeat;
    run.batch = Some(group_name(&settings.target, batch).into());
    run.phase = batch.phase();
    run.params.set("orders", batch.count);
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("order", settings.order.to_string());
    if let OrdersTarget::Running(running) = &settings.target {
        // Only that OMS knows its own settings.
        run.params.set("oms", running.name.as_str());
    } else {
        run.layout = Some(settings.layout.to_string());
        run.params.set("wait", settings.wait.name());
        run.params.set("priority", settings.priority.to_string());
        if settings.venue == VenueRoute::Tcp {
            run.params.set("venue", "tcp");
        }
        run.params.set("caches", if batch.evict { "evicted" } else { "warm" });
    }
    if settings.target.has_socket() {
        run.params.set("sessions", u64::from(settings.sessions));
        run.params.set("active", u64::from(settings.active));
    }
    if settings.level == AckLevel::Disk {
        run.params.set("ack", "disk");
    }
    if let Some(max) = batch.in_flight {
        run.params.set("in_flight", u64::from(max));
    }
    if let Some(beside) = settings.side_client {
        run.params.set("beside", beside.name());
        run.params.set("day_orders", settings.day);
    }
    if let Some(ns) = batch.interval_ns {
        run.params.set("interval_ns", ns);
        // Evicting the caches comes on top of the pause.
        if !batch.evict {
            run.params.set("rate_per_s", 1e9 / ns as f64);
        }
    }
}

/// Returns a group's name; groups of a user's own OMS have numbers made from the time of day.
fn group_name(target: &OrdersTarget, batch: &OrderBatch) -> String {
    match (target, batch.cancels) {
        (OrdersTarget::Running(_), Some(_)) => "cancels".to_owned(),
        (OrdersTarget::Running(_), None) => "orders".to_owned(),
        _ => batch.name(),
    }
}

/// Returns T0, first report and first report of the venue of each request. The T0 of a client in another language is in
/// the journal.
fn rows(
    lab: &Lab<'_>,
    client: &TradingClient,
    batch: &OrderBatch,
    group: Option<&RequestGroup>,
) -> Result<Vec<[u64; 3]>, LabError> {
    let file = lab.folder().join(format!("client.{}", batch.number));
    if matches!(client, TradingClient::Rust) {
        return load::<3>(&file);
    }
    let answers = load::<2>(&file)?;
    let mut rows: Vec<[u64; 3]> = answers.into_iter().map(|[acked, accepted]| [0, acked, accepted]).collect();
    for (number, sent) in group.into_iter().flat_map(|group| group.sent()) {
        if let Some(row) = rows.get_mut(number as usize) {
            row[0] = sent;
        }
    }
    Ok(rows)
}

fn client_hops(
    run: &mut Run,
    lab: &Lab<'_>,
    settings: &Settings,
    MeasuredGroup { batch, answers: answered, .. }: &MeasuredGroup,
    group: Option<&RequestGroup>,
    gaps: &[SchedulingGap],
) -> Result<(), LabError> {
    let calibration = lab.clock.calibration();
    let rows = rows(lab, &settings.client, batch, group)?;
    for (name, column) in [("order_ack", 1), ("order_round_trip", 2)] {
        let answered_rows = rows.iter().filter(|row| row[0] != 0 && row[column] != 0 && row[column] != DENIED);
        let samples = Samples(answered_rows.map(|row| (row[0], row[column])).collect());
        if !samples.0.is_empty() {
            run.hops.insert(name.to_owned(), samples.hop(calibration, gaps));
        }
    }
    let acked = rows.iter().filter(|row| row[1] != 0);
    let received = match group {
        Some(group) => group.len() as u64,
        None => acked.clone().count() as u64,
    };
    let sent = answered.broke_off.as_ref().map_or(batch.count, |(sent, _)| *sent);
    run.counts = MessageCounts { sent, received, lost: sent.saturating_sub(received), ..run.counts };
    if let Some(group) = group.filter(|group| group.last_released() != 0) {
        let after = calibration.ns_between(group.last_released(), answered.last_report).max(0);
        run.figures.insert("last_t2_to_last_report_ns".to_owned(), after as f64);
    }
    if !run.figures.contains_key("last_order_t2_ns") {
        // The journal of a running OMS holds the T2 of its last request only with the next request.
        for figure in ["first_t0_to_last_t2_ns", "last_t2_to_last_report_ns"] {
            run.figures.remove(figure);
        }
    }
    let sent = rows.iter().map(|row| row[0]).filter(|sent| *sent != 0);
    let (first, last) = (sent.min(), acked.map(|row| row[1]).max());
    let is_burst = batch.interval_ns.is_none() && batch.count >= MIN_RATED_ORDERS;
    if let (true, Some((first, last))) = (is_burst, first.zip(last)) {
        let ns = calibration.ns_between(first, last).max(1) as f64;
        run.figures.insert("acked_per_s".to_owned(), received as f64 * 1e9 / ns);
    }
    note_irregularities(run, batch, answered);
    Ok(())
}

fn note_irregularities(run: &mut Run, batch: &OrderBatch, answered: &BatchAnswers) {
    refuse_loss(run);
    if answered.missed > 0 {
        let missed = answered.missed;
        run.refuse(format!("the client was lapped and missed {missed} reports: order_round_trip lacks them"));
    }
    if answered.restamped > 0 {
        let times = answered.restamped;
        run.refuse(format!("the session was full {times} times, and T0 is not the first attempt of those orders"));
    }
    if batch.interval_ns.is_some() && answered.late * 100 > batch.count {
        let late_us = batch.late_ns() / 1_000;
        run.refuse(format!("{} of {} orders went out more than {late_us} µs late", answered.late, batch.count));
    }
    if answered.denied > 0 {
        run.notes.push(format!("{} orders were denied by the risk checks", answered.denied));
    }
    if answered.unanswered > 0 {
        run.refuse(format!("{} orders had no answer of the venue in time", answered.unanswered));
    }
}

fn replay_rate(lab: &Lab<'_>, journal: &std::path::Path, expected: usize) -> Result<f64, LabError> {
    let folder = tickpath_log::LogPath::folder(journal);
    let mut core = tickpath_oms_core::Core::new(tickpath_oms_core::Config { expected_orders: expected, key: 0 });
    let from = lab.clock.ticks();
    let replayed = tickpath_oms_runtime::journal::replay(&folder, &mut core, |_, _| {}).map_err(LabError::other)?;
    let ns = lab.clock.ns_between(from, lab.clock.ticks());
    Ok(replayed.inputs as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted_run(lost: u64, answered: &BatchAnswers) -> Run {
        let mut run = Run { valid: true, ..Run::default() };
        (run.counts.sent, run.counts.lost) = (100, lost);
        note_irregularities(
            &mut run,
            &OrderBatch { interval_ns: Some(1_000_000), ..OrderBatch::burst(40, 100) },
            answered,
        );
        run
    }

    #[test]
    fn irregularities_are_noted_and_invalidate_the_run() {
        let good = BatchAnswers::default;
        for (lost, answered, words) in [
            (0, good(), None),
            (0, BatchAnswers { late: 1, ..good() }, None),
            (0, BatchAnswers { late: 2, ..good() }, Some("2 of 100 orders went out more than 1000 µs late")),
            (3, good(), Some("3 of 100 messages were lost")),
            (0, BatchAnswers { unanswered: 3, ..good() }, Some("3 orders had no answer")),
            (0, BatchAnswers { missed: 7, ..good() }, Some("missed 7 reports")),
            (0, BatchAnswers { restamped: 2, ..good() }, Some("full 2 times")),
        ] {
            let run = noted_run(lost, &answered);
            assert_eq!((run.valid, run.notes.len()), (words.is_none(), usize::from(words.is_some())), "{run:?}");
            assert!(words.is_none_or(|words| run.notes[0].contains(words)), "{words:?}: {:?}", run.notes);
        }
    }
}
