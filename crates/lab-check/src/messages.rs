//! Lies about messages: lost, duplicated, swapped or late, and a carrier that stalls, breaks off or is gone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use tickpath_clock::sleep_ns;
use tickpath_lab_bus::pubsub::{PubsubProcesses, run, run_with};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::signals::{PauseCycle, kill};
use tickpath_lab_result::Run;

use crate::context::{COUNT, CheckContext, FaultReport, RATE, ms, retry_until_judgeable};
use crate::fault_relay::{FaultRelay, RelayFault};
use crate::tamper::{Fault, Tamper};

/// Delay of a late message, and length of a stall in each second, in nanoseconds.
const LATE_NS: u64 = 2_000_000;
const STALL_NS: u64 = 100_000_000;

/// Plants nothing: the result must be valid and report nothing.
pub(crate) fn no_fault(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    let server = (!on_log).then(|| stage.server()).transpose()?;
    let target = server.as_ref().map_or("shm://".to_owned(), |server| server.url());
    let settings = stage.settings(&target);
    judge_undisturbed(|| run(stage.lab, &settings))
}

/// Checks that an undisturbed run is valid. An invalid run whose notes report a disturbed machine is repeated.
pub(crate) fn judge_undisturbed(measure: impl FnMut() -> Result<Run, LabError>) -> Result<FaultReport, LabError> {
    let run = retry_until_judgeable(measure, |run| run.valid || !is_disturbed(run))?;
    let counts = &run.counts;
    let is_told = run.valid && counts.lost + counts.duplicated + counts.reordered + counts.left == 0;
    let notes = if is_told { "nothing".to_owned() } else { run.notes.join("; ") };
    Ok(FaultReport { planted: "nothing".to_owned(), reported: report_text(&run, &notes), is_detected: is_told })
}

pub(crate) fn dropped(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    count_tampered(stage, on_log, Fault::Drop, ["lost", "were lost"], |run| run.counts.lost)
}

pub(crate) fn duplicated(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    count_tampered(stage, on_log, Fault::Duplicate, ["doubled", "came twice"], |run| run.counts.duplicated)
}

pub(crate) fn swapped(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    count_tampered(stage, on_log, Fault::Swap, ["swapped", "came behind"], |run| run.counts.reordered)
}

/// Duplicates messages on the wire between a Redis server and its subscriber, which must hand each over once.
pub(crate) fn duplicated_on_wire(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    fault_on_wire(stage, RelayFault::Duplicate, ["doubled", "came twice"], |run| run.counts.duplicated)
}

/// Swaps messages on the wire: the subscriber must report a loss and not hand over the late ones. None is lost on the
/// wire.
pub(crate) fn swapped_on_wire(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let mut finding = fault_on_wire(stage, RelayFault::Swap, ["swapped", "came behind"], |run| {
        if run.counts.lost == 0 { run.counts.reordered } else { 0 }
    })?;
    finding.planted += ", none lost";
    Ok(finding)
}

fn fault_on_wire(
    stage: &CheckContext<'_>,
    spoils: RelayFault,
    [what, words]: [&str; 2],
    of: fn(&Run) -> u64,
) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let relay = FaultRelay::start(server.port, spoils)?;
    let run = run(stage.lab, &stage.settings(&relay.url()))?;
    Ok(judge_count(&run, relay.faults(), of(&run), what, words))
}

/// Spoils messages; `what` names the fault, and `words` is the text of the run's note.
fn count_tampered(
    stage: &CheckContext<'_>,
    on_log: bool,
    fault: Fault,
    [what, words]: [&str; 2],
    of: fn(&Run) -> u64,
) -> Result<FaultReport, LabError> {
    let (run, faults) = run_tampered(stage, on_log, fault)?;
    Ok(judge_count(&run, faults, of(&run), what, words))
}

/// Judges a counted fault: the run must report the same number, in a note too, and must not be valid.
pub(crate) fn judge_count(run: &Run, faults: u64, counted: u64, what: &str, words: &str) -> FaultReport {
    FaultReport {
        planted: format!("{faults} of {} {what}", run.counts.sent),
        reported: report_text(run, &format!("{counted} {what}")),
        is_detected: faults > 0 && counted == faults && is_noted(run, faults, words) && !run.valid,
    }
}

fn is_noted(run: &Run, count: u64, words: &str) -> bool {
    run.notes.iter().any(|note| note.starts_with(&format!("{count} ")) && note.contains(words))
}

/// Returns whether the run itself reports that other work disturbed the machine.
fn is_disturbed(run: &Run) -> bool {
    const SIGNS: [&str; 3] = ["the host has moved its CPUs", "host gaps came", "of a CPU"];
    /// Largest share of time that a hypervisor may give to other machines, in percent.
    const MAX_STEAL_PERCENT: f64 = 1.0;
    let is_stolen = run.floor.and_then(|floor| floor.steal_percent).is_some_and(|percent| percent > MAX_STEAL_PERCENT);
    is_stolen || run.notes.iter().any(|note| SIGNS.iter().any(|sign| note.contains(sign)))
}

pub(crate) fn delayed(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    let (run, _) = run_tampered(stage, on_log, Fault::Delay(LATE_NS))?;
    let p50 = |hop: &str| run.hops.get(hop).and_then(|hop| hop.p50_ns);
    let is_told = ["one_way", "service"].iter().all(|hop| p50(hop).is_some_and(|ns| ns >= LATE_NS));
    Ok(FaultReport {
        planted: format!("each {} late, in order", ms(Some(LATE_NS))),
        reported: format!("one_way p50 {}, service p50 {}", ms(p50("one_way")), ms(p50("service"))),
        is_detected: is_told,
    })
}

pub(crate) fn stalled(stage: &CheckContext<'_>, on_log: bool) -> Result<FaultReport, LabError> {
    let (run, stalls) = run_tampered(stage, on_log, Fault::Stall(STALL_NS))?;
    Ok(judge_stalls(&run, stalls))
}

/// Stalls the server. The publisher waits for replies, so it sends nothing meanwhile.
pub(crate) fn server_stalled(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let stopping = PauseCycle::start(&[server.pid()], STALL_NS, 1_000_000_000 - STALL_NS)?;
    let run = run(stage.lab, &stage.settings(&server.url()))?;
    Ok(judge_stalls(&run, stopping.end()))
}

/// Judges a stalled run: a tenth of all messages meets a stall, spread evenly over its length, so the 99th percentile
/// is nine tenths of the stall.
fn judge_stalls(run: &Run, stalls: u64) -> FaultReport {
    let one_way = run.hops.get("one_way");
    let raw = one_way.and_then(|hop| hop.p99_ns);
    let rest = one_way.and_then(|hop| hop.unstalled.as_ref());
    let least = STALL_NS * 7 / 10;
    let is_kept = rest.is_none_or(|rest| rest.p99_ns.is_some_and(|ns| ns >= least));
    let rest = rest.map_or_else(String::new, |rest| format!(", {} of it not the host's", ms(rest.p99_ns)));
    FaultReport {
        planted: format!("{stalls} stalls of {}", ms(Some(STALL_NS))),
        reported: format!("one_way p99 {}{rest}", ms(raw)),
        is_detected: stalls > 0 && raw.is_some_and(|ns| ns >= least) && is_kept,
    }
}

/// Makes the server close the subscriber's connection in the middle of the run.
pub(crate) fn connection_closed(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let port = server.port;
    let (run, cut) = run_with_action(stage, &server.url(), move |_| {
        let failed = |e: std::io::Error| LabError::Failed(format!("the connection cannot be cut: {e}"));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
        stream.write_all(b"CLIENT KILL TYPE pubsub\r\n").map_err(failed)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).map_err(failed)?;
        Ok(answer.trim().trim_start_matches(':').to_owned())
    })?;
    let run = run?;
    let reconnects = run.figures.get("reconnects").copied().unwrap_or(0.0);
    let is_noted = run.notes.iter().any(|note| note.contains("connection was lost"));
    Ok(FaultReport {
        planted: format!("{cut} connection cut"),
        reported: report_text(&run, &format!("reconnected: {reconnects}, lost: {}", run.counts.lost)),
        is_detected: cut == "1" && reconnects == 1.0 && is_noted && (run.counts.lost == 0 || !run.valid),
    })
}

/// Kills the server half-way, for good.
pub(crate) fn server_killed(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let victim = server.pid();
    let (run, ()) = run_with_action(stage, &server.url(), move |_| kill(victim))?;
    Ok(judge_broken_run(run, "the server killed half-way", &["publishing failed", server.url().as_str()]))
}

/// Kills a process of the run half-way.
pub(crate) fn process_killed(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let (run, ()) = run_with_action(stage, "shm://", |ends| kill(ends.1))?;
    Ok(judge_broken_run(run, "the subscriber killed half-way", &["subscriber process failed", "signal: 9"]))
}

/// Judges a broken run: if it broke off, its error must contain these words; otherwise it must report its losses.
pub(crate) fn judge_broken_run(run: Result<Run, LabError>, planted: &str, words: &[&str]) -> FaultReport {
    let (reported, is_told) = match run {
        Ok(run) => {
            let lost = run.counts.lost;
            (report_text(&run, &format!("{lost} lost")), !run.valid && lost > 0 && is_noted(&run, lost, "were lost"))
        }
        Err(error) => {
            let error = error.to_string();
            let is_told = words.iter().all(|word| error.contains(word));
            (error, is_told)
        }
    };
    FaultReport { planted: planted.to_owned(), reported, is_detected: is_told }
}

/// Runs with a tamper between the ends; returns the run and the number of faults planted.
fn run_tampered(stage: &CheckContext<'_>, on_log: bool, fault: Fault) -> Result<(Run, u64), LabError> {
    let server = (!on_log).then(|| stage.server()).transpose()?;
    let target = server.as_ref().map_or("shm://".to_owned(), |server| server.url());
    let mut tamper = None;
    let run = run_with(stage.lab, &stage.settings(&target), true, |ends: &PubsubProcesses<'_>| {
        tamper = Some(Tamper::start(&target, ends.published, ends.received, fault)?);
        Ok(())
    })?;
    let faults = tamper.map_or(Ok(0), Tamper::end)?;
    Ok((run, faults))
}

/// Runs, and calls `act` half-way with the process ids of publisher and subscriber; returns the run and the result of
/// `act`.
fn run_with_action<T: Send + 'static>(
    stage: &CheckContext<'_>,
    target: &str,
    act: impl FnOnce((u32, u32)) -> Result<T, LabError> + Send + 'static,
) -> Result<(Result<Run, LabError>, T), LabError> {
    let mut acting = None;
    let run = run_with(stage.lab, &stage.settings(target), false, |ends| {
        let pids = (ends.publisher, ends.subscriber);
        acting = Some(std::thread::spawn(move || {
            sleep_ns((COUNT as f64 / RATE / 2.0 * 1e9) as u64);
            act(pids)
        }));
        Ok(())
    });
    let acted = acting.and_then(|acting| acting.join().ok());
    let acted = acted.unwrap_or_else(|| Err(LabError::Failed("nothing was planted".to_owned())));
    acted.map(|acted| (run, acted))
}

/// Returns a run's report as text: a count, and whether the run is valid.
pub(crate) fn report_text(run: &Run, count: &str) -> String {
    format!("{count}, {}", if run.valid { "valid" } else { "not valid" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run that counts 40 of 4,000 messages as lost.
    fn lossy(valid: bool, notes: &[&str]) -> Run {
        let mut run = Run { valid, notes: notes.iter().map(|note| (*note).to_owned()).collect(), ..Run::default() };
        (run.counts.sent, run.counts.lost) = (4_000, 40);
        run
    }

    #[test]
    fn a_fault_is_reported_by_count_name_and_invalid_run() {
        let is_detected =
            |run: &Run, faults: u64| judge_count(run, faults, run.counts.lost, "lost", "were lost").is_detected;
        let note = "40 of 4000 messages were lost";
        assert!(is_detected(&lossy(false, &[note]), 40));
        assert!(!is_detected(&lossy(false, &[note]), 41));
        assert!(!is_detected(&lossy(true, &[note]), 40));
        assert!(!is_detected(&lossy(false, &["11 % of sends came late"]), 40));
        assert!(!is_detected(&lossy(false, &["140 of 4000 messages were lost"]), 40));
    }

    #[test]
    fn a_run_aborted_by_another_cause_reports_no_fault() {
        let words = ["subscriber", "signal: 9"];
        let failed = |why: &str| judge_broken_run(Err(LabError::Failed(why.to_owned())), "", &words).is_detected;
        assert!(failed("the subscriber process failed: it ended without a result (signal: 9 (SIGKILL))"));
        assert!(!failed("the subscriber process failed: no memory is left"));
        assert!(!judge_broken_run(Ok(lossy(false, &["another note"])), "", &[]).is_detected);
    }

    #[test]
    fn a_run_is_disturbed_if_its_notes_report_it() {
        assert!(is_disturbed(&lossy(false, &["process 7 (make) took 90 % of a CPU meanwhile"])));
        assert!(!is_disturbed(&lossy(false, &["11 % of sends came late"])));
    }
}
