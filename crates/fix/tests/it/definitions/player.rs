//! Player of definitions: connections without sockets, and time that passes only while a step waits.

use std::collections::BTreeMap;

use super::comparison::compare;
use super::echo_session::EchoSession;
use super::script::{Action, Step, completed};

/// Time that passes at once while a step waits, and between two definitions.
const STEP_NS: u64 = 50_000_000;
const PAUSE_NS: u64 = 1_000_000_000;
/// Max waits: for a message, and for the end of a connection, as in QuickFIX's own runner.
const MAX_MESSAGE_WAIT_NS: u64 = 60_000_000_000;
const MAX_DISCONNECT_WAIT_NS: u64 = 10_000_000_000;

/// The side of the definitions, connected to a session.
pub struct Player {
    echo: EchoSession,
    now_ns: u64,
    connections: BTreeMap<usize, Connection>,
    /// The connection that the session has.
    current: Option<usize>,
}

#[derive(Debug, Default)]
struct Connection {
    is_closed: bool,
    received: String,
}

impl Player {
    /// Makes a player that begins at this time, in nanoseconds since the Unix epoch.
    pub fn new(echo: EchoSession, now_ns: u64) -> Self {
        Self { echo, now_ns, connections: BTreeMap::new(), current: None }
    }

    /// Plays the steps of a definition, and closes what is left open. The error names the line.
    pub fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        let mut played = Ok(());
        for step in steps {
            played = self.take_step(step).map_err(|why| format!("line {}: {why}", step.line));
            if played.is_err() {
                break;
            }
        }
        self.end_current();
        self.connections.clear();
        self.now_ns += PAUSE_NS;
        played
    }

    fn take_step(&mut self, step: &Step) -> Result<(), String> {
        let id = step.connection;
        match &step.action {
            Action::Connect => {
                self.connections.insert(id, Connection::default());
                Ok(())
            }
            Action::Disconnect => {
                self.connections.remove(&id);
                if self.current == Some(id) {
                    self.end_current();
                }
                Ok(())
            }
            Action::Send(template) => self.send(id, &completed(template, self.now_ns)),
            Action::Expect(template) => self.expect(id, &completed(template, self.now_ns)),
            Action::ExpectDisconnect => self.expect_disconnect(id),
        }
    }

    /// Sends a message. The first bytes of a connection give it the session; if another one has it, the connection is
    /// refused.
    fn send(&mut self, id: usize, message: &str) -> Result<(), String> {
        let connection = self.connections.get_mut(&id).filter(|connection| !connection.is_closed);
        let connection = connection.ok_or("the connection is closed")?;
        match self.current {
            Some(current) if current != id => {
                connection.is_closed = true;
                return Ok(());
            }
            Some(_) => {}
            None => {
                self.current = Some(id);
                self.echo.connected(self.now_ns);
            }
        }
        self.echo.receive(message.as_bytes(), self.now_ns);
        self.deliver();
        Ok(())
    }

    fn expect(&mut self, id: usize, expected: &str) -> Result<(), String> {
        let until_ns = self.now_ns + MAX_MESSAGE_WAIT_NS;
        loop {
            let connection = self.connections.get_mut(&id).ok_or("there is no such connection")?;
            if let Some(found) = take_message(&mut connection.received) {
                return compare(expected, &found).map_err(|why| {
                    format!("{why}\n    expected {}\n    found    {}", written(expected), written(&found))
                });
            }
            if connection.is_closed || self.now_ns > until_ns {
                let event = if connection.is_closed { "the connection was closed" } else { "nothing came" };
                return Err(format!("{event} instead of {}", written(expected)));
            }
            self.pass_time();
        }
    }

    fn expect_disconnect(&mut self, id: usize) -> Result<(), String> {
        let until_ns = self.now_ns + MAX_DISCONNECT_WAIT_NS;
        loop {
            let connection = self.connections.get(&id).ok_or("there is no such connection")?;
            if !connection.received.is_empty() {
                return Err(format!("the connection has data instead of its end: {}", written(&connection.received)));
            }
            if connection.is_closed {
                return Ok(());
            }
            if self.now_ns > until_ns {
                return Err("the connection was not closed".to_owned());
            }
            self.pass_time();
        }
    }

    fn pass_time(&mut self) {
        self.now_ns += STEP_NS;
        if self.current.is_some() {
            self.echo.poll(self.now_ns);
            self.deliver();
        }
    }

    /// Takes the output of the session to its connection, and closes the connection if the session ends it.
    fn deliver(&mut self) {
        let Some(id) = self.current else { return };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let sent = String::from_utf8(std::mem::take(self.echo.output())).expect("definitions are text");
        connection.received.push_str(&sent);
        if self.echo.has_ended() {
            connection.is_closed = true;
            self.end_current();
        }
    }

    fn end_current(&mut self) {
        if self.current.take().is_some() {
            self.echo.disconnected(self.now_ns);
        }
    }
}

/// Takes the first message, by its BodyLength.
fn take_message(received: &mut String) -> Option<String> {
    if received.is_empty() {
        return None;
    }
    let (_, rest) = received.split_once("\u{1}9=")?;
    let (digits, body) = rest.split_once('\u{1}')?;
    let length: usize = digits.parse().ok()?;
    let end = received.len() - body.len() + length + "10=000|".len();
    let rest = received.split_off(end.min(received.len()));
    Some(std::mem::replace(received, rest))
}

fn written(message: &str) -> String {
    message.replace('\u{1}', "|")
}
