//! From the reports of a generator and the kernel to a run.

use std::path::Path;

use tickpath_clock::{Calibration, Clock};

use super::command::VALUE;
use super::load::LoadReport;
use super::usage::ResourceUsage;
use super::{PipelineClient, Settings};
use tickpath_lab_harness::attribution::drop_attribution;
use tickpath_lab_harness::samples::{Samples, load};
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::{MessageCounts, Run};

/// Costs of a command for the server and for the client, in the order of [`ResourceUsage`].
pub(super) const OF_SERVER: [&str; 3] =
    ["server_cpu_per_command_ns", "context_switches_per_command", "syscalls_per_command"];
pub(super) const OF_CLIENT: [&str; 3] =
    ["client_cpu_per_command_ns", "client_context_switches_per_command", "client_syscalls_per_command"];

pub(super) fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    report: &LoadReport,
    served: ResourceUsage,
    out: &Path,
) -> Result<Run, LabError> {
    let mut run = Run {
        client: settings.client.name().to_owned(),
        repeat: settings.repeat,
        valid: true,
        counts: MessageCounts {
            sent: report.sent,
            received: report.received,
            lost: report.sent.saturating_sub(report.received),
            reordered: report.disordered,
            errors: report.errors,
            ..MessageCounts::default()
        },
        elapsed_ns: Some(report.elapsed_ns),
        throughput_per_s: (report.elapsed_ns > 0).then(|| report.received as f64 * 1e9 / report.elapsed_ns as f64),
        ..Run::default()
    };
    describe(&mut run, settings);
    // A script's stamps are nanoseconds of a different clock.
    let scripts = Calibration::nanoseconds();
    let calibration = if settings.client == PipelineClient::RedisPy { &scripts } else { lab.clock.calibration() };
    let rows = load::<3>(out)?;
    times(&mut run, settings, calibration, &rows);
    per_command(&mut run, served, OF_SERVER);
    per_command(&mut run, report.used, OF_CLIENT);
    if served.is_unknown() {
        run.notes.push("the server's process is not on this machine, so its resource usage is unknown".to_owned());
    }
    judge(&mut run, settings, report);
    if settings.rate.is_some() {
        judge_rate(&mut run, report, calibration, &rows);
    }
    Ok(run)
}

pub(super) fn describe(run: &mut Run, settings: &Settings) {
    settings.target.describe(run);
    let params = &mut run.params;
    params.set("part", settings.part.name());
    params.set("command", settings.command.name());
    params.set("depth", settings.depth);
    params.set("connections", settings.connections as u64);
    params.set("value_bytes", VALUE.len() as u64);
    params.set("cpus", settings.cpus.to_vec());
    if let Some(count) = settings.count {
        params.set("count", count);
    }
    match settings.rate {
        Some(rate) => {
            params.set("loop", "open");
            params.set("rate_per_s", rate);
            run.notes.push(
                "open loop: round_trip counts from the intended time, service from the send; between batches the \
                 generator looks for replies without a pause, and that is in its figures"
                    .to_owned(),
            );
        }
        None => {
            params.set("loop", "closed");
            run.notes.push(
                "closed loop: service time, for each connection waits for all replies before it sends again".to_owned(),
            );
        }
    }
    let (client, version) = match (settings.client, &settings.python) {
        (PipelineClient::RedisPy, Some(python)) => {
            run.software.runtime = Some(python.runtime.clone());
            ("redis-py", python.version_of("redis"))
        }
        _ => ("tickpath", Some(env!("CARGO_PKG_VERSION"))),
    };
    run.software.client = Some(client.to_owned());
    run.software.client_version = version.map(str::to_owned);
}

pub(super) fn per_command(run: &mut Run, used: ResourceUsage, names: [&str; 3]) {
    let commands = run.counts.received;
    if commands == 0 {
        return;
    }
    let amounts = [used.cpu_ns, used.switches, used.calls];
    let known = names.into_iter().zip(amounts).filter_map(|(name, amount)| Some((name, amount?)));
    run.figures.extend(known.map(|(name, amount)| (name.to_owned(), amount as f64 / commands as f64)));
}

/// Checks the key's final number, which has to equal the number of additions.
pub(super) fn check_number(run: &mut Run, number: Option<i64>) {
    let expected = run.counts.received;
    if run.counts.lost == 0 && number.and_then(|number| u64::try_from(number).ok()) != Some(expected) {
        let found = number.map_or("nothing".to_owned(), |number| number.to_string());
        run.refuse(format!(
            "the number ended as {found} after {expected} additions; look whether another client writes the key"
        ));
    }
}

fn times(run: &mut Run, settings: &Settings, calibration: &Calibration, rows: &[[u64; 3]]) {
    if rows.is_empty() {
        return;
    }
    let round_trip = Samples(rows.iter().map(|&[intended, _, answered]| (intended, answered)).collect());
    let batch = settings.count.map_or(settings.depth, |count| count.min(settings.depth));
    let p50 = round_trip.p50_ns(calibration);
    run.figures.insert("latency_per_command_ns".to_owned(), p50 / batch as f64);
    run.hops.insert("round_trip".to_owned(), round_trip.hop(calibration, &[]));
    if settings.rate.is_some() {
        let service = Samples(rows.iter().map(|&[_, sent, answered]| (sent, answered)).collect());
        run.hops.insert("service".to_owned(), service.hop(calibration, &[]));
    }
    // A thread that waits in the kernel does not notice when the host takes its CPU away.
    drop_attribution(run);
}

/// Applies the rules of every run.
fn judge(run: &mut Run, settings: &Settings, report: &LoadReport) {
    let mut broken = Vec::new();
    if let Some(failed) = &report.failed {
        broken.push(format!("ended after {} of {} replies: {failed}", report.received, report.sent));
    }
    if report.errors > 0 {
        let first = report.first_error.as_deref().unwrap_or("null, or a reply that was not expected");
        broken.push(format!(
            "{} replies were errors, the first: {first}; look whether the server allows {}, and which other client \
             uses the key",
            report.errors, settings.command
        ));
    }
    if report.disordered > 0 {
        broken.push(format!(
            "{} answers were not the previous number plus 1; look whether another client writes the key",
            report.disordered
        ));
    }
    run.valid = broken.is_empty();
    run.notes.extend(broken);
    let until = settings.run_limit();
    let meant = until.count.unwrap_or(until.least);
    if report.failed.is_none() && report.sent < meant {
        run.notes.push(format!("{} commands instead of {meant}: more would have taken too long", report.sent));
    }
}

fn judge_rate(run: &mut Run, report: &LoadReport, calibration: &Calibration, rows: &[[u64; 3]]) {
    let first = rows.iter().map(|row| row[0]).min();
    let last = rows.iter().max_by_key(|row| row[0]);
    let mut broken = Vec::new();
    if let Some((first, &[intended, sent, _])) = first.zip(last).filter(|_| rows.len() > 1) {
        let planned = calibration.ns_between(first, intended) as f64;
        let took = calibration.ns_between(first, sent) as f64;
        if took > 0.0 && planned / took < 0.99 {
            broken.push(format!(
                "the generator reached {:.1} % of its rate; use a lower --rate, or a larger --depth",
                100.0 * planned / took
            ));
        }
    }
    if report.late_share > 0.01 {
        broken.push(format!(
            "{:.1} % of batches left late by more than the interval or 10 µs; use a lower --rate",
            100.0 * report.late_share
        ));
    }
    run.valid &= broken.is_empty();
    run.notes.extend(broken);
}
