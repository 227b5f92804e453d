//! The commands that are sent, and their bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is set: as long as what redis-benchmark sets if it is told nothing else.
pub(super) const VALUE: &str = "xxx";

/// Reads a number, adds to it, and writes it: without a round trip in between.
const SCRIPT: &str =
    "local sum = (redis.call('GET', KEYS[1]) or 0) + ARGV[1] redis.call('SET', KEYS[1], sum) return sum";

/// What is asked of the server again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Nothing but an answer.
    #[serde(rename = "PING")]
    Ping,
    /// Writes a value.
    #[serde(rename = "SET")]
    Set,
    /// Reads it.
    #[serde(rename = "GET")]
    Get,
    /// Adds one to a number, and answers with it.
    #[serde(rename = "INCR")]
    Incr,
    /// Reads a number, adds one here, and writes it: two round trips.
    #[serde(rename = "get-set")]
    GetSet,
    /// The same by a script, whose text goes with every call.
    #[serde(rename = "eval")]
    Eval,
    /// The same by a script that the server has already.
    #[serde(rename = "evalsha")]
    EvalSha,
    /// The same in a pipeline.
    #[serde(rename = "evalsha-pipeline")]
    EvalShaPipeline,
}

/// A word that is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no command that is measured; use PING, SET, GET or INCR")]
pub struct ParseCommandError(String);

impl Command {
    /// Those that are sent in pipelines of every depth.
    pub const PLAIN: [Self; 4] = [Self::Ping, Self::Set, Self::Get, Self::Incr];

    /// The ways to read, compute and write.
    pub const COMPUTING: [Self; 4] = [Self::GetSet, Self::Eval, Self::EvalSha, Self::EvalShaPipeline];

    /// The word in results and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ping => "PING",
            Self::Set => "SET",
            Self::Get => "GET",
            Self::Incr => "INCR",
            Self::GetSet => "get-set",
            Self::Eval => "eval",
            Self::EvalSha => "evalsha",
            Self::EvalShaPipeline => "evalsha-pipeline",
        }
    }

    /// Whether each answer is the number before and one.
    pub const fn is_counting(self) -> bool {
        !matches!(self, Self::Ping | Self::Set | Self::Get)
    }

    /// Whether it needs the script on the server.
    pub(super) const fn is_by_digest(self) -> bool {
        matches!(self, Self::EvalSha | Self::EvalShaPipeline)
    }

    /// What the key must hold before the first one, if anything.
    pub(super) const fn before(self) -> Option<&'static str> {
        match self {
            Self::Get => Some(VALUE),
            Self::GetSet => Some("0"),
            _ => None,
        }
    }

    /// Its words; of two round trips those of the first. `digest` is that of the script.
    pub(super) fn words<'a>(self, key: &'a str, digest: &'a str) -> Vec<&'a str> {
        match self {
            Self::Ping => vec!["PING"],
            Self::Set => vec!["SET", key, VALUE],
            Self::Get | Self::GetSet => vec!["GET", key],
            Self::Incr => vec!["INCR", key],
            Self::Eval => vec!["EVAL", SCRIPT, "1", key, "1"],
            Self::EvalSha | Self::EvalShaPipeline => vec!["EVALSHA", digest, "1", key, "1"],
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Command {
    type Err = ParseCommandError;

    fn from_str(text: &str) -> Result<Self, ParseCommandError> {
        let found = Self::PLAIN.into_iter().find(|command| command.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseCommandError(text.to_owned()))
    }
}

/// The command that has the server keep the script.
pub(super) const LOAD_SCRIPT: [&str; 3] = ["SCRIPT", "LOAD", SCRIPT];

/// The bytes of a command.
pub(super) fn encode(words: &[&str]) -> Vec<u8> {
    redis::Cmd::new().arg(words).get_packed_command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for command in Command::PLAIN.into_iter().chain(Command::COMPUTING) {
            assert_eq!(serde_json::to_string(&command).unwrap(), format!("\"{command}\""));
        }
        for command in Command::PLAIN {
            assert_eq!(command.name().to_lowercase().parse(), Ok(command));
        }
        assert!("FLUSHALL".parse::<Command>().unwrap_err().to_string().contains("FLUSHALL"));
    }

    #[test]
    fn a_command_is_an_array_of_its_words() {
        assert_eq!(encode(&Command::Set.words("k:1", "")), b"*3\r\n$3\r\nSET\r\n$3\r\nk:1\r\n$3\r\nxxx\r\n");
    }
}
