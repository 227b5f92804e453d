//! The clients in other languages by name, and which of them takes which target.

use std::rc::Rc;

use super::client::{ForeignClient, Listed};
use super::go_redis::GO_REDIS;
use super::python::{PYTHON, REDIS_PY};
use tickpath_harness::{Lab, LabError};
use tickpath_result::without_login;

/// Whoever adds one adds its file, and a line here.
pub const CLIENTS: &[Listed] = &[PYTHON, REDIS_PY, GO_REDIS];

/// Who publishes and subscribes, and where; our own bus if there is no client.
pub type Pair = (Option<Rc<dyn ForeignClient>>, String);

/// Each of these clients, ready, with each of the targets that it has. Any other word than a name is our own bus, which has
/// all. A client alone has to have all of them, and one beside others at least one.
pub fn pairs(lab: &Lab<'_>, names: &[String], targets: &[String]) -> Result<Vec<Pair>, LabError> {
    let mut taken = Vec::new();
    for name in names {
        let client = CLIENTS.iter().find(|client| client.name == name);
        let refused = |target: &&String| client.and_then(|client| (client.has)(target).err());
        let theirs: Vec<&String> = targets.iter().filter(|target| refused(target).is_none()).collect();
        match targets.iter().find_map(|target| refused(&target)) {
            Some(error) if names.len() == 1 || theirs.is_empty() => return Err(error),
            _ => taken.push((client, theirs)),
        }
    }
    if let Some(target) = targets.iter().find(|target| taken.iter().all(|(_, theirs)| !theirs.contains(target))) {
        return Err(LabError::Setting(format!(
            "none of --client {} has {}; leave it out",
            names.join(","),
            without_login(target)
        )));
    }
    let mut pairs = Vec::new();
    for (client, theirs) in taken {
        let ready = client.map(|client| (client.prepare)(lab)).transpose()?;
        pairs.extend(theirs.into_iter().map(|target| (ready.clone(), target.clone())));
    }
    Ok(pairs)
}
