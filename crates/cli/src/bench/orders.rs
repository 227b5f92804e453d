//! `tickpath bench orders`: an OMS that the bench starts, or a running OMS of the user.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, builder::ArgPredicate};
use tickpath_clock::{Priority, Wait};
use tickpath_lab_compare::in_turn;
use tickpath_lab_harness::{Lab, host, keep_runs};
use tickpath_lab_path::TradingClient;
use tickpath_lab_path::orders::{
    self, BenchLogin, MAX_SESSIONS, OrderSpec, OrdersTarget, RunningOms, Settings, SideClient, VenueRoute, check_client,
};
use tickpath_lab_result::ResultFile;
use tickpath_oms_client::Since;
use tickpath_oms_runtime::{AckLevel, Layout};

use super::measure::as_usage_error;
use crate::instruments::Instruments;
use crate::order::LoginArgs;
use tickpath_cli_terminal::args::{CliUsageError, CpuArgs, OutputArgs, WarmUpArgs, bail_usage, one_of, positive};
use tickpath_cli_terminal::print::print_note;

/// Seconds to wait for the instruments of a running OMS.
const LOGON_S: u32 = 5;

#[derive(Debug, ClapArgs)]
pub struct OrdersArgs {
    /// Transport of the orders: shm:// (lanes, no logon), shm+unix:// (lanes by a logon), unix:// or tcp:// (sessions
    /// over sockets), to an OMS that the bench starts; or the oms.toml of a running OMS. May be repeated, and then the
    /// targets take turns
    #[arg(
        long,
        value_name = "URL|FILE",
        default_value = "shm://",
        default_value_if("preset", ArgPredicate::IsPresent, "tcp://")
    )]
    pub target: Vec<String>,
    /// Client that sends the orders: rust, or python with the package tickpath: one group, in one session of an OMS
    /// that the bench starts. May be a list, and then the clients take turns
    #[arg(long, value_name = "CLIENT", value_delimiter = ',', default_value = TradingClient::RUST_NAME, value_parser = TradingClient::NAMES, conflicts_with_all = ["resume", "restart", "preset"])]
    pub client: Vec<String>,
    /// Route from an OMS that the bench starts to its venue: lanes, or a line over TCP
    #[arg(long, value_name = "lanes|tcp", default_value = "lanes", default_value_if("preset", ArgPredicate::IsPresent, "tcp"), value_parser = venue)]
    pub venue: VenueRoute,
    /// Send real orders to the venues of the OMS that --target names by its file
    #[arg(long)]
    pub yes: bool,
    /// Name of the user at the running OMS
    #[arg(long, value_name = "NAME", default_value = "trader")]
    pub user: String,
    /// File whose first line is that user's password; default: NAME.password beside the OMS's file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Sessions over sockets, all logged in by the generator; may be a list, and then its numbers take turns
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_SESSIONS)))]
    pub sessions: Vec<u16>,
    /// Number of sessions that send, while the others are only connected; default: all
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    pub active: Option<u16>,
    /// Max orders in flight of a session, without a report yet; default: no limit
    #[arg(long, value_name = "N", requires = "count", value_parser = clap::value_parser!(u32).range(1..))]
    pub in_flight: Option<u32>,
    /// Durability level: the storage that must hold an order before any output of it leaves; may be a list, taken in
    /// turn
    #[arg(long, value_name = "os|disk", value_delimiter = ',', default_value = "os", value_parser = ack_level)]
    pub ack: Vec<AckLevel>,
    /// Measure in turn with and without another client, which requests its day of reports and never reads, reads
    /// slowly, or requests it again and again
    #[arg(long, value_name = "stuck|slow|day", requires = "count", value_parser = side_client)]
    pub beside: Option<SideClient>,
    /// Orders in the day of the other client; each has two reports
    #[arg(long, value_name = "N", default_value_t = 50_000, requires = "beside", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub day: u64,
    /// Measure only the catch-up of a client that lacks a day of this many reports
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000), conflicts_with_all = ["restart", "count", "rate", "full", "beside"])]
    pub resume: Option<u64>,
    /// Measure only the restart of a killed OMS with this many orders in its journal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000), conflicts_with_all = ["count", "rate", "full", "beside"])]
    pub restart: Option<u64>,
    /// Measure a single group, of this many orders
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub count: Option<u64>,
    /// Orders a second of that group; default: as fast as possible
    #[arg(long, value_name = "R", value_parser = positive, requires = "count")]
    pub rate: Option<f64>,
    /// Run the slow runs with 60 orders, and the memory runs with up to 5,000,000 orders
    #[arg(long)]
    pub full: bool,
    /// Settings of a published experiment: f9omstw (all groups in full, TCP in and TCP out, split, blocking and busy)
    #[arg(long, value_name = "NAME", value_parser = ["f9omstw"], conflicts_with_all = ["count", "rate", "full", "layout", "wait", "resume", "restart"])]
    pub preset: Option<String>,
    /// Fields of the order:
    /// symbol=…,side=buy|sell,qty=…,price=…,tif=rod|gtc|ioc|fok,position=open|close|default,account=…
    #[arg(long, value_name = "FIELDS", default_value_t = OrderSpec::default())]
    pub order: OrderSpec,
    /// Layout of the threads; may be a list
    #[arg(long, value_name = "inline|split|mutex", value_delimiter = ',', default_value = "inline")]
    pub layout: Vec<Layout>,
    /// Wait strategy of the core's thread; may be a list
    #[arg(long, value_name = "busy|yield|block|adaptive", value_delimiter = ',', default_value = "busy")]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// Keep the journal in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Number of repetitions, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub warm: WarmUpArgs,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub fn run(lab: &Lab<'_>, args: &OrdersArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let journal = args.journal.as_ref().map(std::path::absolute).transpose().context("--journal names no path")?;
    if let Some(journal) = journal.as_ref().filter(|journal| journal.exists()) {
        bail_usage!("--journal {}: it exists; name a new folder", journal.display());
    }
    let mut turns = args.prepared_runs(lab, args.runs_in_turn()?)?;
    if let [only] = &mut turns[..] {
        only.journal = journal;
    } else if let Some(journal) = journal {
        for (number, turn) in (1..).zip(&mut turns) {
            turn.journal = Some(journal.join(number.to_string()));
        }
    }
    result.host = host::measure_host_floor(lab, args.cpus.bench_cpus()?)?;
    let seconds = |settings: &Settings| match args.resume.map(|reports| reports.div_ceil(2)).or(args.restart) {
        Some(orders) => orders::day_seconds(orders),
        None => orders::seconds(settings),
    };
    lab.progress.plan(turns.len(), turns.iter().map(seconds).sum());
    for settings in &turns {
        if let (OrdersTarget::Running(running), Some(count), false) = (&settings.target, args.count, args.output.quiet)
        {
            let (name, url) = (&running.name, &running.login.url);
            print_note(&format!("tickpath: {count} real orders go to the OMS '{name}' at {url}"));
        }
        let runs = match (args.resume, args.restart) {
            (Some(reports), _) => orders::resume(lab, settings, reports).map(|run| vec![run]),
            (_, Some(count)) => orders::restart(lab, settings, count).map(|run| vec![run]),
            _ => orders::run(lab, settings),
        };
        let before = result.runs.len();
        let kept = keep_runs(result, runs);
        if let Some(name) = &args.preset {
            result.runs[before..].iter_mut().for_each(|run| run.params.set("preset", name.as_str()));
        }
        kept.map_err(as_usage_error)?;
    }
    result.comparisons.extend(orders::comparisons(&result.runs));
    Ok(())
}

impl OrdersArgs {
    /// Returns the runs with their clients, which are prepared only once all of them are known to be possible.
    fn prepared_runs(&self, lab: &Lab<'_>, turns: Vec<(&str, Settings)>) -> anyhow::Result<Vec<Settings>> {
        let clients: Result<Vec<_>, _> = self.client.iter().map(|name| TradingClient::of(name, lab)).collect();
        let clients = clients.map_err(as_usage_error)?;
        let of =
            |name: &str| clients.iter().find(|client| client.name() == name).cloned().unwrap_or(TradingClient::Rust);
        Ok(turns.into_iter().map(|(name, turn)| Settings { client: of(name), ..turn }).collect())
    }

    /// Returns all runs in their order, each with the name of its client; compared runs take turns.
    fn runs_in_turn(&self) -> anyhow::Result<Vec<(&str, Settings)>> {
        let targets: Vec<OrdersTarget> =
            self.target.iter().map(|target| self.target(target)).collect::<Result<_, _>>()?;
        let published = self.preset.is_some();
        let layouts = if published { &vec![Layout::Split] } else { &self.layout };
        let waits = if published { &vec![Wait::Block, Wait::Busy] } else { &self.wait };
        let besides = self.beside.map_or(vec![None], |kind| vec![Some(SideClient::Idle), Some(kind)]);
        let max_sessions = self.sessions.iter().copied().max().unwrap_or(1);
        if let Some(active) = self.active.filter(|active| *active > max_sessions) {
            bail_usage!("--active {active}: there are only {max_sessions} sessions; name more by --sessions");
        }
        let cpus = self.cpus.bench_cpus()?;
        let order = self.order();
        let sides: Vec<(&str, &OrdersTarget)> =
            self.client.iter().flat_map(|client| targets.iter().map(move |target| (client.as_str(), target))).collect();
        let mut turns = Vec::new();
        for repeat in 1..=self.repeat {
            let mut round = Vec::new();
            for (&layout, &wait) in layouts.iter().flat_map(|layout| waits.iter().map(move |wait| (layout, wait))) {
                for (&level, &beside) in self.ack.iter().flat_map(|ack| besides.iter().map(move |beside| (ack, beside)))
                {
                    for (&sessions, &(client, target)) in
                        self.sessions.iter().flat_map(|count| sides.iter().map(move |side| (count, side)))
                    {
                        let settings = Settings {
                            target: target.clone(),
                            client: TradingClient::Rust,
                            venue: self.venue,
                            sessions,
                            active: self.active.map_or(sessions, |active| active.min(sessions)),
                            in_flight: self.in_flight,
                            level,
                            side_client: beside,
                            day: self.day,
                            layout,
                            wait,
                            cpus,
                            venue_cpu: self.cpus.venue_cpu(),
                            priority: self.priority,
                            order: order.clone(),
                            count: self.count,
                            rate: self.rate,
                            full: self.full || published,
                            journal: None,
                            repeat,
                        };
                        round.push((client, settings));
                    }
                }
            }
            turns.extend(in_turn(repeat, round));
        }
        for (client, turn) in &turns {
            self.check(turn)?;
            if *client != TradingClient::RUST_NAME {
                check_client(client, turn).map_err(as_usage_error)?;
            }
        }
        Ok(turns)
    }

    /// Returns the order. The default order has a position effect, which only the Rust client sends.
    fn order(&self) -> OrderSpec {
        let usual = OrderSpec::default();
        match self.order == usual && self.client.iter().any(|client| client != TradingClient::RUST_NAME) {
            true => OrderSpec { position: "default".to_owned(), ..usual },
            false => self.order.clone(),
        }
    }

    fn target(&self, target: &str) -> anyhow::Result<OrdersTarget> {
        match target {
            "shm://" => Ok(OrdersTarget::Lanes),
            "shm+unix://" => Ok(OrdersTarget::LogonLanes),
            "unix://" => Ok(OrdersTarget::Unix),
            "tcp://" => Ok(OrdersTarget::Tcp),
            file if !file.contains("://") => self.running(Path::new(file)).map(OrdersTarget::Running),
            other => bail_usage!(
                "--target {other}: use shm://, shm+unix://, unix:// or tcp:// for an OMS that the bench starts, or the \
                 oms.toml of a running OMS"
            ),
        }
    }

    /// Returns the facts about a user's own OMS that its file holds.
    fn running(&self, file: &Path) -> anyhow::Result<RunningOms> {
        if !file.is_file() {
            let remedy = "name the oms.toml of a running OMS, or shm://, unix:// or tcp://";
            bail_usage!("--target {}: no such file; {remedy}", file.display());
        }
        let (config, user, password_file) = (file.to_owned(), self.user.clone(), self.password_file.clone());
        let login_args = LoginArgs { config, oms: None, user, password_file, session: None };
        let settings = login_args.read_settings();
        let password_file = std::path::absolute(login_args.password_file())?;
        crate::order::read_password(&password_file)?;
        let instruments = match self.yes {
            true => {
                let mut client = login_args.connect(&settings, Since::Now)?;
                let instruments = Instruments::request(&mut client, &settings, LOGON_S)?;
                client.close();
                instruments
            }
            // Without `--yes` no order is sent: the instruments' names from the table suffice for the refusal.
            false => Instruments::from_table(&settings),
        };
        let symbol = instruments.number(&self.order.symbol)?.0;
        let login =
            BenchLogin { url: login_args.url(&settings)?, user: self.user.clone(), password_file, session: None };
        Ok(RunningOms { journal: settings.journal("it as DIR")?, name: settings.name, login, symbol })
    }

    /// Rejects contradictory settings, above all for a user's own OMS.
    fn check(&self, turn: &Settings) -> Result<(), CliUsageError> {
        let days = self.resume.is_some() || self.restart.is_some();
        let OrdersTarget::Running(running) = &turn.target else {
            if matches!(turn.target, OrdersTarget::Lanes) && self.resume.is_some() {
                bail_usage!("--resume needs a session over a socket; use --target unix:// or tcp://");
            }
            return Ok(());
        };
        let file = self.target.iter().find(|target| !target.contains("://")).map_or("", String::as_str);
        if days || self.beside.is_some() || self.journal.is_some() || turn.level == AckLevel::Disk {
            bail_usage!(
                "{file} belongs to a running OMS: --resume, --restart, --beside, --journal and --ack need an OMS that \
                 the bench starts; use --target tcp://"
            );
        }
        let Some(count) = self.count else {
            bail_usage!("{file} belongs to a running OMS; give the number of orders to send with --count");
        };
        if !self.yes {
            bail_usage!(
                "{file} belongs to a running OMS: the bench would send {count} real orders ({}) to its venues as user \
                 '{}', at {}, and cancel those that stay open; add --yes to do so",
                self.order,
                running.login.user,
                running.login.url
            );
        }
        Ok(())
    }
}

fn ack_level(text: &str) -> Result<AckLevel, String> {
    one_of(text, &[("os", AckLevel::Os), ("disk", AckLevel::Disk)])
}

fn venue(text: &str) -> Result<VenueRoute, String> {
    one_of(text, &[("lanes", VenueRoute::Lanes), ("tcp", VenueRoute::Tcp)])
}

fn side_client(text: &str) -> Result<SideClient, String> {
    let kinds = SideClient::ALL.into_iter().filter(|kind| *kind != SideClient::Idle);
    one_of(text, &kinds.map(|kind| (kind.name(), kind)).collect::<Vec<_>>())
}
