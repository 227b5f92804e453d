//! Roles of the processes of a run. A role is plain data; its process plays it and ends.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::LabError;
use crate::parent::Parent;

/// Work of a spawned process.
pub trait ProcessRole: Serialize + DeserializeOwned {
    /// Name of the role in errors. It must be unique, because a process finds its role by it.
    const NAME: &'static str;

    /// Does the whole work of the process.
    fn play(&self, parent: &Parent) -> Result<(), LabError>;
}

/// Role that this program can play.
#[derive(Debug, Clone, Copy)]
pub struct RoleEntry {
    name: &'static str,
    play: fn(Value, &Parent) -> Result<(), LabError>,
}

impl RoleEntry {
    /// Returns the entry of this role.
    pub const fn of<R: ProcessRole>() -> Self {
        Self { name: R::NAME, play: play::<R> }
    }

    /// Returns the name of the role.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

fn play<R: ProcessRole>(role: Value, parent: &Parent) -> Result<(), LabError> {
    let role: R = serde_json::from_value(role).map_err(|e| LabError::Setting(format!("no {}: {e}", R::NAME)))?;
    role.play(parent)
}

/// Name and data of a role, as its process reads them.
#[derive(Serialize, Deserialize)]
struct RoleMessage {
    name: String,
    role: Value,
}

/// Environment variable with a child's role. It is no argument, because every user can read those, and a URL may hold a
/// password.
pub(crate) const VARIABLE: &str = "TICKPATH_ROLE";

/// Returns the text with a role for its process.
pub(crate) fn role_message<R: ProcessRole>(role: &R) -> String {
    let role = serde_json::to_value(role).expect("roles are plain data");
    serde_json::to_string(&RoleMessage { name: R::NAME.to_owned(), role }).expect("roles are plain data")
}

/// Plays the role in the environment, which must be in `roles`, as this whole process.
pub fn run<'a>(roles: impl IntoIterator<Item = &'a RoleEntry>) -> Result<(), LabError> {
    tickpath_clock::track_stops();
    let parent = Parent::listen();
    let text = std::env::var(VARIABLE).unwrap_or_default();
    run_role(&text, roles, &parent)
}

/// Plays the role in `text`, which must be in `roles`. Reports an error to the parent as well.
pub(crate) fn run_role<'a>(
    text: &str,
    roles: impl IntoIterator<Item = &'a RoleEntry>,
    parent: &Parent,
) -> Result<(), LabError> {
    let given = serde_json::from_str::<RoleMessage>(text).map_err(|e| LabError::Setting(format!("no role: {e}")));
    let done = given.and_then(|given| {
        let playable = roles.into_iter().find(|playable| playable.name == given.name);
        let playable = playable.ok_or_else(|| LabError::Setting(format!("no role is called '{}'", given.name)))?;
        (playable.play)(given.role, parent)
    });
    if let Err(error) = &done {
        parent.error(&error.to_string());
    }
    done
}

/// CPU, wait strategy and priority of a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadConfig {
    /// CPU of the thread; any CPU if absent.
    pub cpu: Option<usize>,
    /// Wait strategy: `busy`, `yield`, `block` or `adaptive`.
    pub wait: String,
    /// Priority: `normal` or `fifo:N`.
    pub priority: String,
    /// Whether the thread runs the warm-up for the next message while it spins.
    pub warm: bool,
}

impl ThreadConfig {
    /// Describes a thread with this CPU, wait strategy and priority, which runs the warm-up.
    pub fn new(cpu: usize, wait: tickpath_clock::Wait, priority: tickpath_clock::Priority) -> Self {
        Self { cpu: Some(cpu), wait: wait.to_string(), priority: priority.to_string(), warm: true }
    }

    /// Sets whether the thread runs the warm-up.
    pub fn with_warm_up(self, warm: bool) -> Self {
        Self { warm, ..self }
    }

    /// Returns the wait strategy.
    pub fn wait(&self) -> Result<tickpath_clock::Wait, LabError> {
        self.wait.parse().map_err(|e: tickpath_clock::ParseWaitError| LabError::Setting(e.to_string()))
    }

    /// Pins and prioritises the calling thread as described.
    pub fn apply(&self) -> Result<(), LabError> {
        Ok(tickpath_clock::apply_schedule(self.cpu, self.priority()?)?)
    }

    /// Returns the priority.
    pub fn priority(&self) -> Result<tickpath_clock::Priority, LabError> {
        self.priority.parse().map_err(|e: tickpath_clock::ParsePriorityError| LabError::Setting(e.to_string()))
    }
}
