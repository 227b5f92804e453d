//! The server that is measured, and the key that a run has on it.

use std::fs;

use super::command::{Command, LOAD_SCRIPT};
use super::control::{Control, Reply};
use super::usage::Usage;
use crate::address::Address;
use tickpath_harness::proxy::Proxy;
use tickpath_harness::{Lab, LabError};
use tickpath_result::Run;
use tickpath_scratch::redis::Server;

/// A server, looked at once.
#[derive(Debug, Clone)]
pub struct Target {
    name: String,
    /// Straight to the server.
    direct: Address,
    /// The way that the generator takes; through a proxy if the server is to seem far away.
    way: Address,
    rtt_ms: Option<f64>,
    version: String,
    /// Its process, if that is on this machine.
    pid: Option<u32>,
    /// Connections that others have to it.
    others: u64,
}

impl Target {
    /// Somebody's server.
    pub fn at(url: &str) -> Result<Self, LabError> {
        let address = Address::parse(url)?;
        Self::look(address.name(), address)
    }

    /// A scratch server; by its Unix socket if it has one.
    pub fn scratch(server: &Server) -> Result<Self, LabError> {
        let (name, url) = match server.unix_url() {
            Some(url) => ("redis+unix://", url),
            None => ("redis://", server.url()),
        };
        Self::look(name.to_owned(), Address::parse(&url)?)
    }

    /// The same server behind a proxy.
    pub fn through(&self, proxy: &Proxy) -> Self {
        Self { way: self.direct.through(proxy.address()), rtt_ms: Some(proxy.rtt_ms()), ..self.clone() }
    }

    /// `HOST:PORT`; none of a server that is reached by a Unix socket.
    pub fn endpoint(&self) -> Option<String> {
        self.direct.socket().is_none().then(|| self.direct.endpoint())
    }

    /// The way that the generator takes.
    pub(super) fn way(&self) -> &Address {
        &self.way
    }

    /// Its process, if that is on this machine.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What it has used of the machine so far.
    pub(super) fn usage(&self) -> Usage {
        self.pid.map(Usage::of).unwrap_or_default()
    }

    /// What a run should say of it.
    pub(super) fn describe(&self, run: &mut Run) {
        run.target = self.name.clone();
        run.software.server = Some("redis-server".to_owned());
        run.software.server_version = Some(self.version.clone());
        run.params.set("transport", if self.way.socket().is_some() { "unix" } else { "tcp" });
        if let Some(rtt_ms) = self.rtt_ms {
            run.params.set("rtt_ms", rtt_ms);
        }
        if self.others > 0 {
            run.notes.push(format!(
                "the server has {} other connections, which take turns with this bench on its one thread; use a server \
                 that serves nobody for figures of its own",
                self.others
            ));
        }
    }

    fn look(name: String, address: Address) -> Result<Self, LabError> {
        let mut control = Control::open(&address)?;
        let about = control.info("server")?;
        let clients = control.info("clients")?;
        let connected = clients.get("connected_clients").and_then(|number| number.parse::<u64>().ok());
        let pid = about.get("process_id").and_then(|pid| pid.parse::<u32>().ok());
        Ok(Self {
            name,
            direct: address.clone(),
            way: address,
            rtt_ms: None,
            version: about.get("redis_version").cloned().unwrap_or_else(|| "unknown".to_owned()),
            pid: pid.filter(|pid| is_a_server(*pid)),
            // One of them is this look.
            others: connected.unwrap_or(1).saturating_sub(1),
        })
    }
}

/// A process of the number that the server names may be another one, if the server is on another machine.
fn is_a_server(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["redis", "valkey", "keydb"].iter().any(|server| name.starts_with(server))
}

/// A key of ours, which is on the server only as long as this value.
pub(super) struct Key {
    name: String,
    control: Control,
}

impl Key {
    /// Refuses a key that is there, and makes it hold what a command needs.
    pub fn claim(lab: &Lab<'_>, target: &Target, command: Command) -> Result<Self, LabError> {
        let name = format!("tickpath:{}:pipeline", lab.name);
        let mut control = Control::open(&target.direct)?;
        if control.ask(&["EXISTS", &name])? != Reply::Number(0) {
            return Err(LabError::Failed(format!(
                "{} has the key {name} already, left by a bench that was killed; remove it with: redis-cli DEL {name}",
                target.direct.name()
            )));
        }
        let mut key = Self { name, control };
        if let Some(value) = command.before() {
            key.control.ask(&["SET", &key.name, value])?;
        }
        Ok(key)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection beside the generator's.
    pub fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    /// The number that it holds; none if it holds none, or the server is gone.
    pub fn number(&mut self) -> Option<i64> {
        self.control.ask(&["GET", &self.name]).ok()?.number()
    }

    /// Has the server keep the script, and gives its digest.
    pub fn load_script(&mut self) -> Result<String, LabError> {
        match self.control.ask(&LOAD_SCRIPT)? {
            Reply::Text(digest) => Ok(digest),
            other => Err(LabError::Failed(format!(
                "the server answered SCRIPT LOAD with {other:?}, and not with a digest; measure a Redis server"
            ))),
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // A server that has gone keeps what it has; the run's own error says so.
        let _ = self.control.ask(&["DEL", &self.name]);
    }
}
