//! The measured server, and the key of a run on it.

use std::fs;

use super::command::{Command, LOAD_SCRIPT};
use super::control::{Control, Reply};
use super::usage::Usage;
use crate::address::Address;
use tickpath_lab_harness::proxy::Proxy;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::redis::Server;

/// A server, inspected once.
#[derive(Debug, Clone)]
pub struct Target {
    name: String,
    /// The direct address of the server.
    direct: Address,
    /// The address that the generator uses; a proxy's if the server is to seem far away.
    way: Address,
    rtt_ms: Option<f64>,
    version: String,
    /// The server's process id, if the process is on this machine.
    pid: Option<u32>,
    /// The number of other clients' connections to it.
    others: u64,
}

impl Target {
    /// Inspects a user's server.
    pub fn at(url: &str) -> Result<Self, LabError> {
        let address = Address::parse(url)?;
        Self::look(address.name(), address)
    }

    /// Inspects a scratch server, by its Unix socket if it has one.
    pub fn scratch(server: &Server) -> Result<Self, LabError> {
        let (name, url) = match server.unix_url() {
            Some(url) => ("redis+unix://", url),
            None => ("redis://", server.url()),
        };
        Self::look(name.to_owned(), Address::parse(&url)?)
    }

    /// Returns the same server behind a proxy.
    pub fn through(&self, proxy: &Proxy) -> Self {
        Self { way: self.direct.through(proxy.address()), rtt_ms: Some(proxy.rtt_ms()), ..self.clone() }
    }

    /// Returns `HOST:PORT`; `None` for a server that is reached by a Unix socket.
    pub fn endpoint(&self) -> Option<String> {
        self.direct.socket().is_none().then(|| self.direct.endpoint())
    }

    /// Returns the address that the generator uses.
    pub(super) fn way(&self) -> &Address {
        &self.way
    }

    /// Returns the server's process id, if the process is on this machine.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns the server's resource usage so far.
    pub(super) fn usage(&self) -> Usage {
        self.pid.map(Usage::of).unwrap_or_default()
    }

    /// Adds the server's description to a run.
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
            // This inspection's own connection does not count.
            others: connected.unwrap_or(1).saturating_sub(1),
        })
    }
}

/// Returns whether a process is a Redis server: on another machine the server's process id may belong to another
/// process here.
fn is_a_server(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["redis", "valkey", "keydb"].iter().any(|server| name.starts_with(server))
}

/// A key of ours, which exists on the server only as long as this value.
pub(super) struct Key {
    name: String,
    control: Control,
}

impl Key {
    /// Refuses an existing key, and sets the initial value that a command needs.
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

    /// Returns the key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the connection beside the generator's.
    pub fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    /// Returns the number that the key holds; `None` without a number, or if the server is gone.
    pub fn number(&mut self) -> Option<i64> {
        self.control.ask(&["GET", &self.name]).ok()?.number()
    }

    /// Loads the script into the server, and returns its digest.
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
        // A server that is gone keeps its key; the run's own error reports that.
        let _ = self.control.ask(&["DEL", &self.name]);
    }
}
