//! `tickpath doctor`: settings of this host that cost latency or safety, their price, and the remedies.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tickpath_bus::{Transport, resolve_url, server_prefixes, suggest_url, transport_of};
use tickpath_clock::HostClock;
use tickpath_lab_doctor::{
    Finding, FindingState, HostFiles, broker, check_host, check_neighbours, check_wake_up, script,
};
use tickpath_lab_harness::targets;

use crate::bench_lock::BenchLock;
use tickpath_cli_terminal::args::{CliUsageError, bail_usage, bus_url};
use tickpath_cli_terminal::outcome::{CliOutcome, end_on_signals};
use tickpath_cli_terminal::print::{paragraph, print_text};

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Brokers to inspect: redis://, nats://, amqp:// or kafka://HOST:PORT; default: those that scripts/brokers has
    /// started
    #[arg(value_name = "URL", value_parser = bus_url)]
    pub brokers: Vec<String>,
    /// Print the remedies of this host as a script, with the GRUB line and a systemd unit; the command changes nothing
    #[arg(long, conflicts_with_all = ["brokers", "json"])]
    pub script: bool,
    /// Write the findings as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub fn run(args: &DoctorArgs) -> anyhow::Result<CliOutcome> {
    for url in &args.brokers {
        resolve_url(url).map_err(|e| CliUsageError(e.to_string()))?;
    }
    let is_server = |url: &str| transport_of(url).is_some_and(Transport::is_server);
    if let Some(url) = args.brokers.iter().find(|url| !is_server(url)) {
        let suggestion = suggest_url(url).map(|similar| format!("; did you mean {similar}?")).unwrap_or_default();
        bail_usage!("a broker's URL begins with {}{suggestion}", server_prefixes());
    }
    let host_files = HostFiles::here();
    if args.script {
        return print_text(&script(&host_files)).map(|()| CliOutcome::Success);
    }
    // Nothing needs saving: a signal ends the process at once.
    end_on_signals().context("cannot listen for Ctrl-C")?;
    let mut found = check_host(&host_files);
    {
        // Two measurements at once would disturb each other.
        let _turn = BenchLock::acquire()?;
        found.push(check_neighbours(&HostClock::get()?));
        found.push(check_wake_up(&host_files));
    }
    let brokers = if args.brokers.is_empty() { targets::brokers() } else { args.brokers.clone() };
    let findings: Vec<Vec<Finding>> = brokers.iter().map(|url| broker(url)).collect();
    let is_unknown = |found: &&Vec<Finding>| found.iter().all(|finding| finding.state == FindingState::Unknown);
    let reasons = findings.iter().filter(is_unknown).filter_map(|found| found.first());
    let silent: Vec<String> = reasons.map(|finding| finding.why.clone()).collect();
    found.extend(findings.into_iter().flatten());
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&found).context("this is a defect of Tickpath")?;
        std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    print_text(&text(&found))?;
    anyhow::ensure!(
        silent.is_empty(),
        "{} of {} brokers could not be inspected: {}",
        silent.len(),
        brokers.len(),
        silent.join("; ")
    );
    Ok(CliOutcome::Success)
}

/// Returns the findings as text: first those with a cost, then the good ones, then the unknown ones.
fn text(found: &[Finding]) -> String {
    let mut out = String::new();
    for state in [FindingState::RisksSafety, FindingState::CostsLatency, FindingState::Good, FindingState::Unknown] {
        let of_state: Vec<&Finding> = found.iter().filter(|finding| finding.state == state).collect();
        if of_state.is_empty() {
            continue;
        }
        out += &format!("\n{} ({})\n", state.name(), of_state.len());
        for finding in of_state {
            let name = format!("  {:<34}", finding.name);
            let parts = [(&*name, &finding.value), ("    why: ", &finding.why), ("    do:  ", &finding.remedy)];
            out.extend(parts.iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| paragraph(label, text)));
        }
    }
    out += "\nThe doctor has changed nothing. tickpath doctor --script prints the remedies of this host as a script.\n";
    out
}
