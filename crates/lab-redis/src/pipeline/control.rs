//! A control connection to a server, with a single command at a time: for requests around a measurement.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use super::command::encode;
use crate::address::BenchAddress;
use tickpath_lab_harness::LabError;
use tickpath_lab_tools::redis_socket::RedisSocket;

/// Max accepted length of a line and of a payload, in bytes.
const MAX_LINE_BYTES: u64 = 8 << 10;
const MAX_PAYLOAD_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerReply {
    /// A status or a payload.
    Text(String),
    Number(i64),
    Null,
    Error(String),
}

/// A logged-in connection.
#[derive(Debug)]
pub(super) struct ControlConnection {
    address: BenchAddress,
    stream: BufReader<RedisSocket>,
}

impl ControlConnection {
    /// Connects, logs in, and sends a PING.
    pub fn open(address: &BenchAddress) -> Result<Self, LabError> {
        let stream = address.connect().map_err(|e| LabError::Failed(address.error_sentence(&e)))?;
        let mut control = Self { address: address.clone(), stream: BufReader::new(stream) };
        for command in address.login() {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            control.execute(&words)?;
        }
        control.execute(&["PING"])?;
        Ok(control)
    }

    /// Returns its socket. No partial reply is buffered: each reply is read completely.
    pub fn stream(&mut self) -> &mut RedisSocket {
        self.stream.get_mut()
    }

    /// Sends a command and returns its reply; an error reply becomes an error.
    pub fn execute(&mut self, words: &[&str]) -> Result<ServerReply, LabError> {
        match self.exchange(words) {
            Ok(ServerReply::Error(line)) => {
                let (name, remedy) = (self.address.name(), remedy(&line));
                Err(LabError::Failed(format!("{name} refused {}: {line}; {remedy}", words[0])))
            }
            Ok(reply) => Ok(reply),
            Err(e) => Err(LabError::Failed(self.address.error_sentence(&e))),
        }
    }

    /// Sends a command and returns its reply, of any kind.
    pub fn exchange(&mut self, words: &[&str]) -> io::Result<ServerReply> {
        self.stream.get_mut().write_all(&encode(words))?;
        let line = self.line()?;
        let (mark, rest) = line.split_at_checked(1).ok_or_else(not_redis)?;
        match mark {
            "+" => Ok(ServerReply::Text(rest.to_owned())),
            "-" => Ok(ServerReply::Error(rest.to_owned())),
            ":" => rest.parse().map(ServerReply::Number).map_err(|_| not_redis()),
            "$" => self.payload(rest),
            _ => Err(not_redis()),
        }
    }

    pub fn info(&mut self, section: &str) -> Result<BTreeMap<String, String>, LabError> {
        let ServerReply::Text(text) = self.execute(&["INFO", section])? else { return Ok(BTreeMap::new()) };
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None if line.len() as u64 == MAX_LINE_BYTES => Err(not_redis()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn payload(&mut self, length: &str) -> io::Result<ServerReply> {
        let length: i64 = length.parse().map_err(|_| not_redis())?;
        let Ok(length) = usize::try_from(length) else { return Ok(ServerReply::Null) };
        if length > MAX_PAYLOAD_BYTES {
            return Err(not_redis());
        }
        let mut payload = vec![0; length + 2];
        self.stream.read_exact(&mut payload)?;
        Ok(ServerReply::Text(String::from_utf8_lossy(&payload[..length]).into_owned()))
    }
}

impl ServerReply {
    /// Returns the reply's number, whether an integer or text.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            Self::Null | Self::Error(_) => None,
        }
    }
}

fn not_redis() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an unexpected reply")
}

fn remedy(line: &str) -> &'static str {
    match line.split_whitespace().next() {
        Some("NOAUTH") => "write redis://:PASSWORD@HOST:PORT or redis://USER:PASSWORD@HOST:PORT",
        Some("WRONGPASS") => "check USER:PASSWORD@ in the URL",
        Some("NOPERM") => "give this user the right to it, or name another one in the URL",
        Some("LOADING") => "try again when it has finished",
        Some("READONLY") => "name the primary instead of a replica",
        _ => "look into its settings and its log, or measure a server of your own",
    }
}
