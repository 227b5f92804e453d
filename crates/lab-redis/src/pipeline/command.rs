//! The commands, and their bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The value to set: as long as redis-benchmark's default.
pub(super) const VALUE: &str = "xxx";

/// Script that reads a number, adds to it, and writes it, without a round trip in between.
const SCRIPT: &str =
    "local sum = (redis.call('GET', KEYS[1]) or 0) + ARGV[1] redis.call('SET', KEYS[1], sum) return sum";

/// The command that is sent again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RedisCommand {
    /// Only requests an answer.
    #[serde(rename = "PING")]
    Ping,
    /// Writes a value.
    #[serde(rename = "SET")]
    Set,
    /// Reads the value.
    #[serde(rename = "GET")]
    Get,
    /// Adds 1 to a number, and returns it.
    #[serde(rename = "INCR")]
    Incr,
    /// Reads a number, adds 1 in the client, and writes it: two round trips.
    #[serde(rename = "get-set")]
    GetSet,
    /// Does the same by a script, whose text is sent with every call.
    #[serde(rename = "eval")]
    Eval,
    /// Does the same by a script that the server has already.
    #[serde(rename = "evalsha")]
    EvalSha,
    /// Does the same by the loaded script in a pipeline.
    #[serde(rename = "evalsha-pipeline")]
    EvalShaPipeline,
}

/// The error for an unknown command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no command that is measured; use PING, SET, GET or INCR")]
pub struct ParseCommandError(String);

impl RedisCommand {
    /// Commands that are sent in pipelines of every depth.
    pub const PLAIN: [Self; 4] = [Self::Ping, Self::Set, Self::Get, Self::Incr];

    /// The ways to read, compute and write.
    pub const READ_MODIFY_WRITE: [Self; 4] = [Self::GetSet, Self::Eval, Self::EvalSha, Self::EvalShaPipeline];

    /// Returns the name in results and on the command line.
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

    /// Returns whether each answer is the previous number plus 1.
    pub const fn is_counting(self) -> bool {
        !matches!(self, Self::Ping | Self::Set | Self::Get)
    }

    /// Returns whether it needs the script on the server.
    pub(super) const fn is_by_digest(self) -> bool {
        matches!(self, Self::EvalSha | Self::EvalShaPipeline)
    }

    pub(super) const fn initial_value(self) -> Option<&'static str> {
        match self {
            Self::Get => Some(VALUE),
            Self::GetSet => Some("0"),
            _ => None,
        }
    }

    /// Returns its words; for two round trips the first command's. `digest` is the script's.
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

impl fmt::Display for RedisCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RedisCommand {
    type Err = ParseCommandError;

    fn from_str(text: &str) -> Result<Self, ParseCommandError> {
        let found = Self::PLAIN.into_iter().find(|command| command.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseCommandError(text.to_owned()))
    }
}

/// The command that loads the script into the server.
pub(super) const LOAD_SCRIPT: [&str; 3] = ["SCRIPT", "LOAD", SCRIPT];

pub(super) fn encode(words: &[&str]) -> Vec<u8> {
    redis::Cmd::new().arg(words).get_packed_command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for command in RedisCommand::PLAIN.into_iter().chain(RedisCommand::READ_MODIFY_WRITE) {
            assert_eq!(serde_json::to_string(&command).unwrap(), format!("\"{command}\""));
        }
        for command in RedisCommand::PLAIN {
            assert_eq!(command.name().to_lowercase().parse(), Ok(command));
        }
        assert!("FLUSHALL".parse::<RedisCommand>().unwrap_err().to_string().contains("FLUSHALL"));
    }

    #[test]
    fn a_command_is_an_array_of_its_words() {
        assert_eq!(encode(&RedisCommand::Set.words("k:1", "")), b"*3\r\n$3\r\nSET\r\n$3\r\nk:1\r\n$3\r\nxxx\r\n");
    }
}
