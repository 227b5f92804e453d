//! Shared parts of a run: the settings, the server under test, Python, and the floor of bare sockets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::command;
use super::server::ExplainedServer;
use super::settings::{ExplainSubject, ExplainedClient, Settings};
use super::socket_floor::{self, FloorSettings, SocketFloor};
use super::stages::PathFacts;
use super::traffic::ScriptTraffic;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::redis::Persistence;

pub(super) struct ExplainBench<'a> {
    pub lab: &'a Lab<'a>,
    pub settings: &'a Settings,
    /// None if the subject needs no Python.
    python: Option<Python>,
    pub hook: PathBuf,
    /// The named Redis server, or a scratch one; none if scripts connect to their own, or the bus uses another
    /// transport.
    pub target: Option<ExplainedServer>,
    pub traffic: Option<ScriptTraffic>,
    /// Floors of bare sockets, by whether the subscriber spins, and by the pause before each message.
    floors: BTreeMap<(bool, u64), SocketFloor>,
}

impl<'a> ExplainBench<'a> {
    /// Opens everything that the subject needs: a server, redis-py, the hook.
    pub fn open(lab: &'a Lab<'a>, settings: &'a Settings) -> Result<Self, LabError> {
        let target = match (&settings.subject, &settings.url) {
            (ExplainSubject::Bus(_), _) | (ExplainSubject::Scripts { .. }, None) => None,
            (_, Some(url)) => Some(ExplainedServer::named(lab, url)?),
            // RDB snapshots, as on a server with default settings.
            (_, None) => Some(ExplainedServer::scratch(lab, Persistence::Rdb, None)?),
        };
        let needs_python =
            !matches!(settings.subject, ExplainSubject::Client(ExplainedClient::Rust) | ExplainSubject::Bus(_));
        let python = needs_python.then(|| Python::prepare(lab.progress)).transpose()?;
        let (hook, floors) = (lab.write_files("hook", &command::HOOK)?, BTreeMap::new());
        Ok(Self { lab, settings, python, hook, target, traffic: None, floors })
    }

    /// Returns the Python that has redis-py.
    pub fn python(&self) -> &Python {
        self.python.as_ref().expect("prepared for every subject but our own bus")
    }

    /// Returns the server's URL for our own bus.
    pub fn url(&self) -> String {
        match (&self.settings.subject, &self.target) {
            (ExplainSubject::Bus(url), _) => url.clone(),
            (_, target) => target.as_ref().map(|target| target.url.clone()).unwrap_or_default(),
        }
    }

    /// Returns a channel name that no other program uses.
    pub fn channel(&self, what: &str) -> String {
        format!("tickpath:{}:{what}", self.lab.name)
    }

    /// Returns the known facts about the path between publisher and subscriber, without the server's own time.
    pub fn path_facts(&mut self, spins: bool, pause_ns: u64) -> Result<PathFacts, LabError> {
        let Some(target) = &self.target else { return Ok(PathFacts::default()) };
        let known = match self.floors.get(&(spins, pause_ns)) {
            Some(known) => *known,
            None => {
                self.lab.step("explain: the same message over bare sockets", 0.5)?;
                let sides = FloorSettings { spins, cpus: None, pause_ns };
                socket_floor::measure(&target.info, &self.channel("floor"), sides, self.lab.clock)?
            }
        };
        self.floors.insert((spins, pause_ns), known);
        Ok(PathFacts { wire_ns: Some(known.wire_ns), round_trip_ns: Some(known.round_trip_ns), ..PathFacts::default() })
    }

    /// Adds the software and the host settings to a run.
    pub fn describe(&self, run: Run) -> Run {
        let mut run = Run { repeat: 1, valid: true, ..run };
        // In Redis an unsubscribed client misses messages; our own bus has set its policy already.
        if run.params.text("policy").is_none() {
            run.params.set("policy", "overwrite");
        }
        let Some(target) = &self.target else { return run };
        run.target = target.name.clone();
        let client = (run.software.client.take(), run.software.client_version.take(), run.software.runtime.take());
        run.software = target.software.clone();
        (run.software.client, run.software.client_version, run.software.runtime) = client;
        run.notes.extend(target.notes.iter().cloned());
        run
    }
}
