//! Lies about messages: lost, doubled, swapped, late, and whoever carries them stands still, breaks or goes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};
use tickpath_clock::sleep_ns;
use tickpath_harness::LabError;
use tickpath_lab::pubsub::{Ends, run, run_with};
use tickpath_result::Run;

use crate::signals::{Stopping, pid};
use crate::stage::{COUNT, RATE, Stage, Told, ms};
use crate::tamper::{Fault, Tamper};

/// How late a message that is late is, and how long what stalls stands still in each second.
const LATE_NS: u64 = 2_000_000;
const STALL_NS: u64 = 100_000_000;

/// No lie: nothing is to be told.
pub(crate) fn nothing(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    let server = (!on_log).then(|| stage.server()).transpose()?;
    let target = server.as_ref().map_or("shm://".to_owned(), |server| server.url());
    let run = run(stage.lab, &stage.settings(&target))?;
    let counts = &run.counts;
    let is_told = run.valid && counts.lost + counts.duplicated + counts.reordered == 0;
    Ok(Told { planted: "nothing".to_owned(), reported: said(&run, "nothing"), is_told })
}

pub(crate) fn dropped(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    counted(stage, on_log, Fault::Drop, "lost", |run| run.counts.lost)
}

pub(crate) fn doubled(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    counted(stage, on_log, Fault::Double, "doubled", |run| run.counts.duplicated)
}

pub(crate) fn swapped(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    counted(stage, on_log, Fault::Swap, "swapped", |run| run.counts.reordered)
}

/// What is spoiled by number is reported by the same number, and a run with it is not valid.
fn counted(stage: &Stage<'_>, on_log: bool, fault: Fault, what: &str, of: fn(&Run) -> u64) -> Result<Told, LabError> {
    let (run, faults) = tampered(stage, on_log, fault)?;
    let is_told = faults > 0 && of(&run) == faults && !run.valid;
    Ok(Told {
        planted: format!("{faults} of {COUNT} {what}"),
        reported: said(&run, &format!("{} {what}", of(&run))),
        is_told,
    })
}

pub(crate) fn late(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    let (run, _) = tampered(stage, on_log, Fault::Late(LATE_NS))?;
    let p50 = |hop: &str| run.hops.get(hop).and_then(|hop| hop.p50_ns);
    let is_told = ["one_way", "service"].iter().all(|hop| p50(hop).is_some_and(|ns| ns >= LATE_NS));
    Ok(Told {
        planted: format!("each {} late, in order", ms(Some(LATE_NS))),
        reported: format!("one_way p50 {}, service p50 {}", ms(p50("one_way")), ms(p50("service"))),
        is_told,
    })
}

pub(crate) fn stalled(stage: &Stage<'_>, on_log: bool) -> Result<Told, LabError> {
    let (run, stalls) = tampered(stage, on_log, Fault::Stall(STALL_NS))?;
    Ok(stalls_told(&run, stalls))
}

/// The publisher waits for replies: it sends nothing while the server stands still.
pub(crate) fn server_stalled(stage: &Stage<'_>) -> Result<Told, LabError> {
    let server = stage.server()?;
    let stopping = Stopping::of(vec![pid(server.pid())?], STALL_NS, 1_000_000_000 - STALL_NS);
    let run = run(stage.lab, &stage.settings(&server.url()))?;
    Ok(stalls_told(&run, stopping.end()))
}

/// A tenth of all messages meets a stall, evenly from its beginning to its end: the 99th percentile is nine tenths of it.
fn stalls_told(run: &Run, stalls: u64) -> Told {
    let one_way = run.hops.get("one_way");
    let raw = one_way.and_then(|hop| hop.p99_ns);
    let rest = one_way.and_then(|hop| hop.unstalled.as_ref());
    let least = STALL_NS * 7 / 10;
    let is_kept = rest.is_none_or(|rest| rest.p99_ns.is_some_and(|ns| ns >= least));
    let rest = rest.map_or_else(String::new, |rest| format!(", {} of it not the host's", ms(rest.p99_ns)));
    Told {
        planted: format!("{stalls} stalls of {}", ms(Some(STALL_NS))),
        reported: format!("one_way p99 {}{rest}", ms(raw)),
        is_told: stalls > 0 && raw.is_some_and(|ns| ns >= least) && is_kept,
    }
}

/// The server closes the subscriber's connection in the middle of the run.
pub(crate) fn cut(stage: &Stage<'_>) -> Result<Told, LabError> {
    let server = stage.server()?;
    let port = server.port;
    let (run, cut) = half_way(stage, &server.url(), move |_| {
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
    Ok(Told {
        planted: format!("{cut} connection cut"),
        reported: said(&run, &format!("reconnected: {reconnects}, lost: {}", run.counts.lost)),
        is_told: cut == "1" && reconnects == 1.0 && is_noted && (run.counts.lost == 0 || !run.valid),
    })
}

/// The server is gone half-way, and does not come back.
pub(crate) fn gone(stage: &Stage<'_>) -> Result<Told, LabError> {
    let server = stage.server()?;
    let victim = pid(server.pid())?;
    let (run, _) = half_way(stage, &server.url(), move |_| kill(victim))?;
    Ok(broken(run, "the server killed half-way"))
}

/// A process of the run is killed half-way.
pub(crate) fn killed(stage: &Stage<'_>) -> Result<Told, LabError> {
    let (run, _) = half_way(stage, "shm://", |ends| kill(pid(ends.1)?))?;
    Ok(broken(run, "the subscriber killed half-way"))
}

fn kill(victim: Pid) -> Result<String, LabError> {
    kill_process(victim, Signal::KILL).map_err(|e| LabError::Failed(format!("it cannot be killed: {e}")))?;
    Ok(String::new())
}

fn broken(run: Result<Run, LabError>, planted: &str) -> Told {
    let (reported, is_told) = match run {
        Ok(run) => (said(&run, &format!("{} lost", run.counts.lost)), !run.valid && run.counts.lost > 0),
        Err(error) => (error.to_string(), true),
    };
    Told { planted: planted.to_owned(), reported, is_told }
}

/// A run with somebody in the middle, and how many faults he made.
fn tampered(stage: &Stage<'_>, on_log: bool, fault: Fault) -> Result<(Run, u64), LabError> {
    let server = (!on_log).then(|| stage.server()).transpose()?;
    let target = server.as_ref().map_or("shm://".to_owned(), |server| server.url());
    let mut tamper = None;
    let run = run_with(stage.lab, &stage.settings(&target), true, |ends: &Ends<'_>| {
        tamper = Some(Tamper::start(&target, ends.published, ends.heard, fault)?);
        Ok(())
    })?;
    let faults = tamper.map_or(Ok(0), Tamper::end)?;
    Ok((run, faults))
}

/// A run, and what `act` says, who is called in its middle with the publisher's and the subscriber's process id.
fn half_way(
    stage: &Stage<'_>,
    target: &str,
    act: impl FnOnce((u32, u32)) -> Result<String, LabError> + Send + 'static,
) -> Result<(Result<Run, LabError>, String), LabError> {
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

/// What a run says of itself: a count, and whether it is valid.
pub(crate) fn said(run: &Run, count: &str) -> String {
    format!("{count}, {}", if run.valid { "valid" } else { "not valid" })
}
