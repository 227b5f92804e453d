//! What all parts share: the settings, the server under test, Python, and what bare sockets need.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::command;
use super::floor::{self, Floor, Sides};
use super::server::Target;
use super::settings::{Client, Settings, Subject};
use super::stages::Between;
use super::traffic::Traffic;
use tickpath_harness::{Lab, LabError};
use tickpath_result::Run;
use tickpath_scratch::python::Python;
use tickpath_scratch::redis::Persistence;

/// What all parts share.
pub(super) struct Bench<'a> {
    pub lab: &'a Lab<'a>,
    pub settings: &'a Settings,
    /// None where nothing of Python takes part.
    python: Option<Python>,
    /// The hook's folder.
    pub hook: PathBuf,
    /// The Redis server that is named, or a scratch one; none if scripts bring their own, or the bus goes elsewhere.
    pub target: Option<Target>,
    /// What the user's scripts send, once that was seen.
    pub traffic: Option<Traffic>,
    /// What bare sockets need, by whether the subscriber spins, and by the pause before each message.
    floors: BTreeMap<(bool, u64), Floor>,
}

impl<'a> Bench<'a> {
    /// Opens what the subject needs: a server, redis-py, the hook.
    pub fn open(lab: &'a Lab<'a>, settings: &'a Settings) -> Result<Self, LabError> {
        let target = match (&settings.subject, &settings.url) {
            (Subject::Bus(_), _) | (Subject::Scripts { .. }, None) => None,
            (_, Some(url)) => Some(Target::named(lab, url)?),
            // As a server is that nobody has set up otherwise.
            (_, None) => Some(Target::scratch(lab, Persistence::Rdb, None)?),
        };
        let needs_python = !matches!(settings.subject, Subject::Client(Client::Rust) | Subject::Bus(_));
        let python = needs_python.then(|| Python::prepare(lab.progress)).transpose()?;
        let (hook, floors) = (command::hook(lab)?, BTreeMap::new());
        Ok(Self { lab, settings, python, hook, target, traffic: None, floors })
    }

    /// The Python that has redis-py.
    pub fn python(&self) -> &Python {
        self.python.as_ref().expect("prepared for every subject but our own bus")
    }

    /// The server's URL for our own bus.
    pub fn url(&self) -> String {
        match (&self.settings.subject, &self.target) {
            (Subject::Bus(url), _) => url.clone(),
            (_, target) => target.as_ref().map(|target| target.url.clone()).unwrap_or_default(),
        }
    }

    /// A channel of ours, which nobody else has.
    pub fn channel(&self, what: &str) -> String {
        format!("tickpath:{}:{what}", self.lab.name)
    }

    /// What is known of the way between publisher and subscriber, but for the server's own time.
    pub fn between(&mut self, spins: bool, pause_ns: u64) -> Result<Between, LabError> {
        let Some(target) = &self.target else { return Ok(Between::default()) };
        let known = match self.floors.get(&(spins, pause_ns)) {
            Some(known) => *known,
            None => {
                self.lab.step("explain: the same message over bare sockets", 0.5)?;
                let sides = Sides { spins, cpus: None, pause_ns };
                floor::measure(target.info(), &self.channel("floor"), sides, self.lab.clock)?
            }
        };
        self.floors.insert((spins, pause_ns), known);
        Ok(Between { wire_ns: Some(known.wire_ns), round_trip_ns: Some(known.round_trip_ns), ..Between::default() })
    }

    /// A run that says what it ran on.
    pub fn describe(&self, run: Run) -> Run {
        let mut run = Run { repeat: 1, valid: true, ..run };
        // Whoever is not subscribed misses a message: Redis promises no more. Our own bus has said what it promises.
        if run.params.text("policy").is_none() {
            run.params.set("policy", "overwrite");
        }
        let Some(target) = &self.target else { return run };
        run.target = target.name.clone();
        let told = (run.software.client.take(), run.software.client_version.take(), run.software.runtime.take());
        run.software = target.software.clone();
        (run.software.client, run.software.client_version, run.software.runtime) = told;
        run.notes.extend(target.notes.iter().cloned());
        run
    }
}
