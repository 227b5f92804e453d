//! `tickpath drop-copy`: every report, detail and denial that an OMS sends, one a line, over a session of a user with
//! `drop_copy = true`.
//!
//! Each line begins with the report's number among all reports of the OMS. Numbers continue over days and restarts:
//! another call resumes behind the last number seen, by `--from`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::SymbolId;
use tickpath_oms_client::{Client, ClientEvent, CopiedReport, Since};
use tickpath_oms_server::settings::Users;
use tickpath_oms_text::{ReportOrDenial, SentReport};

use crate::follower_output::{FollowerOutput, OutputChunk};
use crate::oms_files::PartialSettings;
use crate::order::LoginArgs;
use tickpath_cli_terminal::args::CliUsageError;
use tickpath_cli_terminal::outcome::CliOutcome;

/// Max sleep between two polls of the session, in nanoseconds.
const WAIT_NS: u64 = 50_000_000;
/// Sleep while the output is blocked: well below half of the shortest heartbeat time, which is 100 ms.
const BLOCKED_SLEEP_NS: u64 = 5_000_000;

#[derive(Debug, Clone, Args)]
pub struct DropCopyArgs {
    #[command(flatten)]
    pub login: LoginArgs,
    /// Begin with the first report of the day
    #[arg(long)]
    pub all: bool,
    /// Resume behind this report, the number at the beginning of the last line received; 0 for all that the OMS keeps.
    /// Days that have ended are read too
    #[arg(long, value_name = "N", conflicts_with = "all")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=u64::MAX - 2))]
    pub from: Option<u64>,
    /// Journal that the number of --from belongs to, as --json prints it: an OMS with another journal is refused
    #[arg(long, value_name = "N", requires = "from")]
    pub journal: Option<u64>,
    /// End after this many reports
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &DropCopyArgs) -> anyhow::Result<CliOutcome> {
    let settings = args.login.read_settings();
    let users_file = settings.users_file.display();
    // Without the right to a drop copy the session would receive no reports of others and wait for ever.
    if let Ok(users) = Users::read(&settings.users_file)
        && users.find(&args.login.user).is_some_and(|user| user.drop_copy.is_none())
    {
        bail!(no_drop_copy_error(&args.login.user, &users_file.to_string()));
    }
    let mut client = connect(args, &settings)?;
    let mut outlet = FollowerOutput::start()?;
    let listed = settings.instruments().unwrap_or_default();
    let names = listed.into_iter().map(|listed| (listed.symbol, listed.name));
    let mut follower =
        DropCopyPrinter { args, names: names.collect(), remaining: args.count.unwrap_or(u64::MAX), is_lost: false };
    let followed = follower.follow(&mut client, &mut outlet);
    // The output may take long for the rest; the session ends first.
    client.disconnect();
    outlet.finish()?;
    if followed? {
        Ok(CliOutcome::Success)
    } else {
        bail!(no_drop_copy_error(&args.login.user, &format!("{users_file} where the OMS is")))
    }
}

/// Logs in, to resume where `--from` or `--all` requires.
fn connect(args: &DropCopyArgs, settings: &PartialSettings) -> anyhow::Result<Client> {
    let Some(from) = args.from else {
        return args.login.connect_drop_copy(settings, if args.all { Since::Start } else { Since::Now });
    };
    // A number is valid in its own journal only. Without `--journal`, a first logon shows the journal of the OMS.
    let journal = match args.journal {
        Some(journal) => journal,
        None => {
            let asking = args.login.connect_drop_copy(settings, Since::Now)?;
            let journal = asking.welcome().journal;
            asking.close();
            journal
        }
    };
    let since = Since::Report { journal, number: from + 1, last_sum: 0 };
    let client = args.login.connect_drop_copy(settings, since)?;
    let now = client.welcome().journal;
    if now != journal {
        client.close();
        bail!(
            "number {from} belongs to journal {journal}, and the OMS has journal {now}, with its own numbers; begin \
             with --all"
        );
    }
    Ok(client)
}

struct DropCopyPrinter<'a> {
    args: &'a DropCopyArgs,
    names: BTreeMap<SymbolId, String>,
    /// Number of reports that are still to be printed.
    remaining: u64,
    /// Set while the connection is lost.
    is_lost: bool,
}

impl DropCopyPrinter<'_> {
    /// Follows until the requested number is printed or the output is closed. Returns false if the OMS grants the user
    /// no drop copy.
    fn follow(&mut self, client: &mut Client, outlet: &mut FollowerOutput) -> anyhow::Result<bool> {
        let clock = HostClock::get()?;
        let journal = client.welcome().journal;
        outlet.queue([OutputChunk::Sentence(format!(
            "reports to other sessions, each behind its number in journal {journal}, until Ctrl-C:"
        ))]);
        while self.remaining > 0 && !outlet.is_closed() {
            // An OMS of an older version grants a session to a user without the right to a drop copy.
            if client.welcome().has_drop_copy() == Some(false) {
                return Ok(false);
            }
            if !outlet.has_room() {
                client.keep_alive();
                sleep_ns(BLOCKED_SLEEP_NS);
                continue;
            }
            client.wait(WAIT_NS);
            let mut events = Vec::new();
            let polled = client.poll(|event| events.push(event));
            outlet.queue(self.chunks(events, client, &clock));
            polled?;
        }
        Ok(true)
    }

    /// Returns the output for the events of one poll of this client.
    fn chunks(&mut self, events: Vec<ClientEvent>, client: &Client, clock: &HostClock) -> Vec<OutputChunk> {
        let (mut lines, mut sentences) = (String::new(), Vec::new());
        let json = self.args.json;
        for event in events {
            match event {
                ClientEvent::Copied { number, stamp, utc_ns, session, session_number, report }
                    if self.remaining > 0 =>
                {
                    self.remaining -= 1;
                    // A stamp from an earlier boot may lie ahead of the counter.
                    let is_known = client.shares_clock() && stamp <= clock.ticks();
                    let answer = match report {
                        CopiedReport::Report(report) => ReportOrDenial::Report(report),
                        CopiedReport::Denied(denied) => ReportOrDenial::Denied(denied),
                        CopiedReport::Detail(detail) => ReportOrDenial::Detail(detail),
                    };
                    let utc_ns = utc_ns.or_else(|| is_known.then(|| clock.calibration().utc_ns_of(stamp)));
                    let (journal, session_number) = (Some(client.welcome().journal), Some(session_number));
                    let sent = SentReport { number, journal, session, session_number, stamp, utc_ns, answer };
                    lines.push_str(&sent.line(json, |symbol| self.names.get(&symbol).cloned()));
                }
                ClientEvent::Gap { from, to } => {
                    let what = format!("reports {from} to {} are lost", to - 1);
                    lines.push_str(&notice(json, "gap", [("from", from), ("to", to)], &what));
                }
                ClientEvent::Resent { from, to } => {
                    let what = format!("the OMS has lost the reports before {to}, and sends all from {from} on again");
                    lines.push_str(&notice(json, "said_again", [("from", from), ("to", to)], &what));
                }
                ClientEvent::OtherJournal { before, now } => {
                    let what = format!("the OMS has journal {now} instead of {before}: the numbers begin anew");
                    lines.push_str(&notice(json, "other_journal", [("before", before), ("journal", now)], &what));
                }
                ClientEvent::Disconnected { why } => {
                    self.is_lost = true;
                    sentences.push(format!("the connection was lost: {why}"));
                }
                ClientEvent::Failed { why } => {
                    sentences.push(format!("the OMS cannot be reached, and the command tries again: {why}"));
                }
                ClientEvent::Connected(welcome) if std::mem::take(&mut self.is_lost) => {
                    sentences.push(format!("reconnected; reports continue with number {}", welcome.next_report));
                }
                _ => {}
            }
        }
        let lines = Some(lines).filter(|lines| !lines.is_empty()).map(OutputChunk::Lines);
        lines.into_iter().chain(sentences.into_iter().map(OutputChunk::Sentence)).collect()
    }
}

/// Returns a line without a report, with the numbers of the reports around it.
fn notice(json: bool, name: &str, [(first, one), (second, other)]: [(&str, u64); 2], what: &str) -> String {
    match json {
        true => format!("{{\"name\":\"{name}\",\"{first}\":{one},\"{second}\":{other}}}\n"),
        false => format!("-- {what}\n"),
    }
}

fn no_drop_copy_error(user: &str, file: &str) -> CliUsageError {
    CliUsageError(format!(
        "user '{user}' has no drop copy; name a user with --user that has drop_copy = true in {file}"
    ))
}
