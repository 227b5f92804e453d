//! What the processes of a run do. A role is plain data; playing it is the whole life of its process.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::LabError;
use crate::parent::Parent;

/// What a spawned process is for.
pub trait Role: Serialize + DeserializeOwned {
    /// What it is called in errors. No two roles have the same name: by it the process knows what it is.
    const NAME: &'static str;

    /// The whole life of the process.
    fn play(&self, parent: &Parent) -> Result<(), LabError>;
}

/// A role that this program can play.
#[derive(Debug, Clone, Copy)]
pub struct Playable {
    name: &'static str,
    play: fn(Value, &Parent) -> Result<(), LabError>,
}

impl Playable {
    /// A role of this kind.
    pub const fn of<R: Role>() -> Self {
        Self { name: R::NAME, play: play::<R> }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

fn play<R: Role>(role: Value, parent: &Parent) -> Result<(), LabError> {
    let role: R = serde_json::from_value(role).map_err(|e| LabError::Setting(format!("no {}: {e}", R::NAME)))?;
    role.play(parent)
}

/// A role as its process finds it.
#[derive(Serialize, Deserialize)]
struct Given {
    name: String,
    role: Value,
}

/// Where a child finds its role. Not an argument: those everybody can read, and a URL may hold a password.
pub(crate) const VARIABLE: &str = "TICKPATH_ROLE";

/// The text that a process finds its role in.
pub(crate) fn given<R: Role>(role: &R) -> String {
    let role = serde_json::to_value(role).expect("roles are plain data");
    serde_json::to_string(&Given { name: R::NAME.to_owned(), role }).expect("roles are plain data")
}

/// Plays the role that the environment holds, one of these, as this whole process.
pub fn run<'a>(roles: impl IntoIterator<Item = &'a Playable>) -> Result<(), LabError> {
    tickpath_clock::notice_stops();
    let parent = Parent::listen();
    let text = std::env::var(VARIABLE).unwrap_or_default();
    play_given(&text, roles, &parent)
}

/// Plays the role that this text holds, one of these; its error is told to the parent too.
pub(crate) fn play_given<'a>(
    text: &str,
    roles: impl IntoIterator<Item = &'a Playable>,
    parent: &Parent,
) -> Result<(), LabError> {
    let given = serde_json::from_str::<Given>(text).map_err(|e| LabError::Setting(format!("no role: {e}")));
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

/// Where a thread runs and how it waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// Its CPU.
    pub cpu: Option<usize>,
    /// `busy`, `yield`, `block` or `adaptive`.
    pub wait: String,
    /// `normal` or `fifo:N`.
    pub priority: String,
    /// Whether it keeps the next message's way warm while it spins.
    pub warm: bool,
}

impl Thread {
    /// A thread with this CPU and wait strategy, which keeps warm.
    pub fn new(cpu: usize, wait: tickpath_clock::Wait, priority: tickpath_clock::Priority) -> Self {
        Self { cpu: Some(cpu), wait: wait.to_string(), priority: priority.to_string(), warm: true }
    }

    /// The same, warm or not.
    pub fn warm(self, warm: bool) -> Self {
        Self { warm, ..self }
    }

    /// The wait strategy.
    pub fn wait(&self) -> Result<tickpath_clock::Wait, LabError> {
        self.wait.parse().map_err(|e: tickpath_clock::ParseWaitError| LabError::Setting(e.to_string()))
    }

    /// Pins and prioritises the calling thread.
    pub fn settle(&self) -> Result<(), LabError> {
        Ok(tickpath_clock::settle(self.cpu, self.priority()?)?)
    }

    /// The priority.
    pub fn priority(&self) -> Result<tickpath_clock::Priority, LabError> {
        self.priority.parse().map_err(|e: tickpath_clock::ParsePriorityError| LabError::Setting(e.to_string()))
    }
}
