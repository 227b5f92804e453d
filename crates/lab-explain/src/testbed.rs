//! Open parts of the trials: scratch servers, pairs that stay connected, and one batch of each.

use tickpath_clock::Wait;

use super::bench::ExplainBench;
use super::pair::{BatchPlan, MessagePath, PairConfig, ProcessPair, ReceiveMode};
use super::server::ExplainedServer;
use super::trial::{CorePlacement, Interpreter, PairSetup, ServerPlacement, Trial, TrialSide};
use super::{rust, scripts};
use tickpath_lab_bus::pubsub;
use tickpath_lab_compare::value;
use tickpath_lab_harness::LabError;
use tickpath_lab_result::{MessageCounts, Run, RunPhase};
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::redis::Persistence;
use tickpath_lab_tools::scripts::another_version;

/// Number of processes of a cold batch.
const COLD_PROCESSES: u32 = 5;

/// Seconds of a batch beside its messages: for an open pair, and for our own bus, which is started.
pub(super) const BATCH_SETUP_S: f64 = 0.1;
const BUS_S: f64 = 0.8;

/// URL of logs in shared memory.
const LOG: &str = "shm://";

/// Open scratch servers, and pairs that stay connected.
pub(super) struct Testbed {
    pub batch: BatchPlan,
    servers: Vec<(ServerPlacement, ExplainedServer)>,
    pairs: Vec<(PairSetup, ProcessPair)>,
    /// Number of pairs ever opened, because each has its own channel.
    opened: usize,
    /// Our lists on the server under test.
    lists: Vec<String>,
    /// The Python that has the package `tickpath` beside redis-py, once it was needed.
    combined_python: Option<Python>,
}

impl Testbed {
    pub fn new(batch: BatchPlan) -> Self {
        Self { batch, servers: Vec::new(), pairs: Vec::new(), opened: 0, lists: Vec::new(), combined_python: None }
    }

    /// Opens everything that both sides need.
    pub fn prepare(&mut self, bench: &ExplainBench<'_>, trial: &Trial) -> Result<(), LabError> {
        for side in [&trial.base, &trial.change] {
            match side {
                TrialSide::Pair(setup) => self.open_pair(bench, *setup)?,
                TrialSide::Bus(placement) => self.open_server(bench, *placement)?,
                TrialSide::Other(url, wait) => {
                    let [first, second] = bench.settings.cpus;
                    if *wait == Wait::Busy && first == second {
                        let why = "a reader that spins needs a CPU of its own; name two with --cpus";
                        return Err(LabError::Setting(why.to_owned()));
                    }
                    tickpath_bus::connect(url)?;
                }
                TrialSide::Cold(_) => {}
            }
        }
        Ok(())
    }

    fn open_pair(&mut self, bench: &ExplainBench<'_>, setup: PairSetup) -> Result<(), LabError> {
        if self.pairs.iter().any(|(known, _)| *known == setup) {
            return Ok(());
        }
        if setup.interpreter == Interpreter::WithBoth && self.combined_python.is_none() {
            let of_script = bench.traffic.as_ref().and_then(|traffic| traffic.program.as_deref());
            self.combined_python = Some(Python::with_both(of_script)?);
        }
        self.open_server(bench, setup.placement)?;
        let [first, second] = bench.settings.cpus;
        let cpus = match setup.cores {
            CorePlacement::Any => None,
            CorePlacement::One => Some([first, first]),
            CorePlacement::Apart => Some([first, second]),
        };
        let url = self.url(bench, setup.placement, ExplainedServer::python_url);
        let PairSetup { library, flavour, path: message_path, receive, size, hiredis, .. } = setup;
        let config = PairConfig { url, library, flavour, path: message_path, receive, size, hiredis, cpus };
        self.opened += 1;
        let channel = match setup.placement {
            // The lab removes logs whose name begins with its own.
            ServerPlacement::SharedMemory => format!("{}.gain-{}", bench.lab.name, self.opened),
            _ => bench.channel(&format!("gain-{}", self.opened)),
        };
        if (setup.placement, message_path) == (ServerPlacement::Target, MessagePath::Queue) {
            self.lists.push(channel.clone());
        }
        let python = match setup.interpreter {
            Interpreter::Prepared => bench.python(),
            Interpreter::WithBoth => self.combined_python.as_ref().expect("it was asked for just now"),
        };
        self.pairs.push((setup, ProcessPair::open(bench.lab, python, &config, &channel, None)?));
        Ok(())
    }

    fn open_server(&mut self, bench: &ExplainBench<'_>, placement: ServerPlacement) -> Result<(), LabError> {
        let is_open = self.servers.iter().any(|(known, _)| *known == placement);
        let server = match placement {
            ServerPlacement::Target | ServerPlacement::SharedMemory => return Ok(()),
            _ if is_open => return Ok(()),
            ServerPlacement::Scratch(persistence) => ExplainedServer::scratch(bench.lab, persistence, None)?,
            ServerPlacement::UnixSocket => ExplainedServer::scratch(bench.lab, Persistence::Rdb, None)?,
            ServerPlacement::FirstCore => {
                ExplainedServer::scratch(bench.lab, Persistence::Rdb, Some(bench.settings.cpus[0]))?
            }
        };
        self.servers.push((placement, server));
        Ok(())
    }

    /// Returns the URL of an open place, in one of two forms.
    fn url(
        &self,
        bench: &ExplainBench<'_>,
        placement: ServerPlacement,
        form: fn(&ExplainedServer) -> String,
    ) -> String {
        let server = match placement {
            ServerPlacement::SharedMemory => return LOG.to_owned(),
            ServerPlacement::Target => bench.target.as_ref(),
            _ => self.servers.iter().find(|(known, _)| *known == placement).map(|(_, server)| server),
        };
        let server = server.expect("it was opened before it is used");
        match (placement, server.python_unix_url()) {
            (ServerPlacement::UnixSocket, Some(url)) => url,
            _ => form(server),
        }
    }

    /// Measures one batch: returns the median from the intended time until the script has the message; none if it is
    /// not valid.
    pub fn measure(
        &mut self,
        bench: &mut ExplainBench<'_>,
        side: &TrialSide,
        counts: &mut MessageCounts,
    ) -> Result<Option<f64>, LabError> {
        match side {
            TrialSide::Cold(flavour) => {
                let ns = scripts::cold_message_ns(bench, *flavour, COLD_PROCESSES)?;
                Ok(Some(ns).filter(|ns| ns.is_finite()))
            }
            TrialSide::Pair(setup) => {
                let pair = self.pairs.iter_mut().find(|(known, _)| known == setup);
                let (_, pair) = pair.expect("it was opened before it is used");
                let batch = pair.run(self.batch)?;
                add(counts, &batch.counts());
                Ok(batch.one_way_p50_ns().filter(|_| batch.broken_rules(&self.batch).is_empty()))
            }
            TrialSide::Bus(placement) => {
                let url = self.url(bench, *placement, |server| server.url.clone());
                // The bus names the protocol in the URL of a Unix socket.
                let url = url.strip_prefix("unix:").map_or(url.clone(), |rest| format!("redis+unix:{rest}"));
                self.bus(bench, &url, Wait::Block, counts)
            }
            TrialSide::Other(url, wait) => self.bus(bench, url, *wait, counts),
        }
    }

    fn bus(
        &self,
        bench: &ExplainBench<'_>,
        url: &str,
        wait: Wait,
        counts: &mut MessageCounts,
    ) -> Result<Option<f64>, LabError> {
        let settings =
            rust::settings(url, bench.settings.cpus, RunPhase::Steady, self.batch.rate(), self.batch.count, wait);
        let run = pubsub::run(bench.lab, &settings)?;
        add(counts, &run.counts);
        Ok(value(&run, "one_way.p50_ns").filter(|_| run.valid))
    }

    /// Ends the pairs that only this trial needed; the common base of most changes stays open.
    pub fn close(&mut self, trial: &Trial) {
        for side in [&trial.base, &trial.change] {
            let TrialSide::Pair(setup) = side else { continue };
            let is_usual = setup.receive == ReceiveMode::Listen
                && !setup.hiredis
                && setup.cores == CorePlacement::Any
                && setup.interpreter == Interpreter::Prepared;
            if !is_usual
                || !matches!(setup.placement, ServerPlacement::Target | ServerPlacement::Scratch(Persistence::Rdb))
            {
                self.pairs.retain(|(known, _)| known != setup);
            }
        }
    }

    /// Notes in the run the software of both sides of the import change.
    pub fn note_both(&self, setup: &PairSetup, run: &mut Run) {
        let Some(python) = &self.combined_python else { return };
        let version = |package: &str| python.version_of(package).unwrap_or("of no known version").to_owned();
        let parser = if setup.hiredis { "with hiredis" } else { "without hiredis" };
        run.software.client = Some("redis-py".to_owned());
        run.software.client_version = Some(format!("{} {parser}", version("redis")));
        run.software.runtime = Some(python.runtime.clone());
        run.params.set("size_bytes", setup.size as u64);
        run.notes.push(format!(
            "both sides of the import ran in one {}: redis-py {}, tickpath {}",
            python.runtime,
            version("redis"),
            version("tickpath")
        ));
        run.notes.extend(another_version(python));
    }

    /// Ends everything, and removes lists that a failed pair may have left on the server under test.
    pub fn end(mut self, target: Option<&mut ExplainedServer>) {
        self.pairs.clear();
        let Some(target) = target else { return };
        self.lists.iter().for_each(|list| target.remove(list));
    }
}

/// Returns the approximate duration of a side's batch, in seconds.
pub(super) fn seconds(side: &TrialSide, batch: &BatchPlan) -> f64 {
    match side {
        TrialSide::Cold(_) => scripts::seconds(COLD_PROCESSES),
        TrialSide::Pair(_) => batch.seconds() + BATCH_SETUP_S,
        TrialSide::Bus(_) | TrialSide::Other(..) => batch.seconds() + BUS_S,
    }
}

fn add(counts: &mut MessageCounts, more: &MessageCounts) {
    counts.sent += more.sent;
    counts.received += more.received;
    counts.lost += more.lost;
    counts.duplicated += more.duplicated;
    counts.reordered += more.reordered;
}
