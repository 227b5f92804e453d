//! The list of clients in other languages, and the pairing of clients with the targets that they support.

use std::rc::Rc;

use super::client::{ClientEntry, ForeignClient};
use super::go_redis::GO_REDIS;
use super::python::{PYTHON, REDIS_PY};
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::{Lab, LabError};

/// All clients in other languages. A new client adds its file and its entry here.
pub const CLIENTS: &[ClientEntry] = &[PYTHON, REDIS_PY, GO_REDIS];

/// A client and a target; `None` is our own bus.
pub type ClientTarget = (Option<Rc<dyn ForeignClient>>, String);

/// Prepares each named client and pairs it with each target that it supports; any other name is our own bus, which
/// supports all. A single client has to support all targets, and a client among others at least one of them.
pub fn pairs(lab: &Lab<'_>, names: &[String], targets: &[String]) -> Result<Vec<ClientTarget>, LabError> {
    let mut chosen = Vec::new();
    for name in names {
        let client = CLIENTS.iter().find(|client| client.name == name);
        let refused = |target: &&String| client.and_then(|client| (client.check_target)(target).err());
        let supported: Vec<&String> = targets.iter().filter(|target| refused(target).is_none()).collect();
        match targets.iter().find_map(|target| refused(&target)) {
            Some(error) if names.len() == 1 || supported.is_empty() => return Err(error),
            _ => chosen.push((client, supported)),
        }
    }
    if let Some(target) = targets.iter().find(|target| chosen.iter().all(|(_, supported)| !supported.contains(target)))
    {
        return Err(LabError::Setting(format!(
            "none of --client {} has {}; leave it out",
            names.join(","),
            redact_logins(target)
        )));
    }
    let mut pairs = Vec::new();
    for (client, supported) in chosen {
        let ready = client.map(|client| (client.prepare)(lab)).transpose()?;
        pairs.extend(supported.into_iter().map(|target| (ready.clone(), target.clone())));
    }
    Ok(pairs)
}
