//! The measured server, and the key of a run on it.

use std::fs;

use super::command::{LOAD_SCRIPT, RedisCommand};
use super::control::{ControlConnection, ServerReply};
use super::usage::ResourceUsage;
use crate::address::BenchAddress;
use tickpath_lab_harness::proxy::Proxy;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::redis::ScratchServer;

/// A server, inspected once.
#[derive(Debug, Clone)]
pub struct PipelineTarget {
    name: String,
    /// The direct address of the server.
    direct: BenchAddress,
    /// The address that the generator uses; a proxy's if the server is to seem far away.
    pub(super) generator_address: BenchAddress,
    rtt_ms: Option<f64>,
    version: String,
    /// The server's process id, if the process is on this machine.
    pub(super) pid: Option<u32>,
    /// The number of other clients' connections to it.
    other_clients: u64,
}

impl PipelineTarget {
    /// Inspects a user's server.
    pub fn inspect_url(url: &str) -> Result<Self, LabError> {
        let address = BenchAddress::parse(url)?;
        Self::inspect(address.name(), address)
    }

    /// Inspects a scratch server, by its Unix socket if it has one.
    pub fn inspect_scratch(server: &ScratchServer) -> Result<Self, LabError> {
        let (name, url) = match server.unix_url() {
            Some(url) => ("redis+unix://", url),
            None => ("redis://", server.url()),
        };
        Self::inspect(name.to_owned(), BenchAddress::parse(&url)?)
    }

    /// Returns the same server behind a proxy.
    pub fn via_proxy(&self, proxy: &Proxy) -> Self {
        Self { generator_address: self.direct.via_proxy(proxy.address()), rtt_ms: Some(proxy.rtt_ms()), ..self.clone() }
    }

    /// Returns `HOST:PORT`; `None` for a server that is reached by a Unix socket.
    pub fn endpoint(&self) -> Option<String> {
        self.direct.socket().is_none().then(|| self.direct.endpoint())
    }

    pub(super) fn usage(&self) -> ResourceUsage {
        self.pid.map(ResourceUsage::of).unwrap_or_default()
    }

    pub(super) fn describe(&self, run: &mut Run) {
        run.target = self.name.clone();
        run.software.server = Some("redis-server".to_owned());
        run.software.server_version = Some(self.version.clone());
        run.params.set("transport", if self.generator_address.socket().is_some() { "unix" } else { "tcp" });
        if let Some(rtt_ms) = self.rtt_ms {
            run.params.set("rtt_ms", rtt_ms);
        }
        if self.other_clients > 0 {
            run.notes.push(format!(
                "the server has {} other connections, which take turns with this bench on its one thread; use a server \
                 that serves nobody for figures of its own",
                self.other_clients
            ));
        }
    }

    fn inspect(name: String, address: BenchAddress) -> Result<Self, LabError> {
        let mut control = ControlConnection::open(&address)?;
        let about = control.info("server")?;
        let clients = control.info("clients")?;
        let connected = clients.get("connected_clients").and_then(|number| number.parse::<u64>().ok());
        let pid = about.get("process_id").and_then(|pid| pid.parse::<u32>().ok());
        Ok(Self {
            name,
            direct: address.clone(),
            generator_address: address,
            rtt_ms: None,
            version: about.get("redis_version").cloned().unwrap_or_else(|| "unknown".to_owned()),
            pid: pid.filter(|pid| is_a_server(*pid)),
            // This inspection's own connection does not count.
            other_clients: connected.unwrap_or(1).saturating_sub(1),
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
pub(super) struct ClaimedKey {
    pub name: String,
    /// The connection beside the generator's.
    pub control: ControlConnection,
}

impl ClaimedKey {
    /// Refuses an existing key, and sets the initial value that a command needs.
    pub fn claim(lab: &Lab<'_>, target: &PipelineTarget, command: RedisCommand) -> Result<Self, LabError> {
        let name = format!("tickpath:{}:pipeline", lab.name);
        let mut control = ControlConnection::open(&target.direct)?;
        if control.execute(&["EXISTS", &name])? != ServerReply::Number(0) {
            return Err(LabError::Failed(format!(
                "{} has the key {name} already, left by a bench that was killed; remove it with: redis-cli DEL {name}",
                target.direct.name()
            )));
        }
        let mut key = Self { name, control };
        if let Some(value) = command.initial_value() {
            key.control.execute(&["SET", &key.name, value])?;
        }
        Ok(key)
    }

    /// Returns the number that the key holds; `None` without a number, or if the server is gone.
    pub fn number(&mut self) -> Option<i64> {
        self.control.execute(&["GET", &self.name]).ok()?.number()
    }

    /// Loads the script into the server, and returns its digest.
    pub fn load_script(&mut self) -> Result<String, LabError> {
        match self.control.execute(&LOAD_SCRIPT)? {
            ServerReply::Text(digest) => Ok(digest),
            other => Err(LabError::Failed(format!(
                "the server answered SCRIPT LOAD with {other:?}, and not with a digest; measure a Redis server"
            ))),
        }
    }
}

impl Drop for ClaimedKey {
    fn drop(&mut self) {
        // A server that is gone keeps its key; the run's own error reports that.
        let _ = self.control.execute(&["DEL", &self.name]);
    }
}
