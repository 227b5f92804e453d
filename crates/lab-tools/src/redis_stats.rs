//! Information about a Redis server beyond the bus's own, over a connection that is not measured.

use std::time::Duration;

use redis::{Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, ServerErrorKind};

use tickpath_lab_harness::{Lab, LabError};

/// Max time for the server to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the reason for a missing answer, as a sentence with the remedy.
pub fn no_answer(server: &str, error: &RedisError) -> LabError {
    if error.is_timeout() {
        let seconds = ANSWER_TIMEOUT.as_secs();
        return LabError::Failed(format!("{server} did not answer within {seconds} s; look whether the server hangs"));
    }
    if error.is_connection_refusal() {
        let sentence = format!("{server} refused the connection; start redis-server, or check host and port");
        return LabError::Failed(sentence);
    }
    if error.kind() == ErrorKind::Parse {
        return LabError::Failed(format!("{server} answers, but not as Redis does; check the port"));
    }
    let remedy = if error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) {
        "check the database and the login in the URL"
    } else if error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("NOAUTH") {
        "check USER:PASSWORD@ in the URL"
    } else {
        "check host and port, and whether the server runs"
    };
    LabError::Failed(format!("{server} cannot be used ({error}); {remedy}"))
}

/// Opens a connection that is not measured, with timeouts on all calls.
pub fn connect(info: impl IntoConnectionInfo) -> RedisResult<Connection> {
    let connection = redis::Client::open(info)?.get_connection_with_timeout(ANSWER_TIMEOUT)?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    connection.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(connection)
}

/// Returns a sentence about other clients of a URL's server, if there are any.
pub fn other_clients(lab: &Lab<'_>, url: &str) -> Option<String> {
    let clients = lab.about(url).settings.remove("connected_clients")?.ok()?;
    // The connection of this request does not count.
    let others = clients.parse::<u64>().ok()?.saturating_sub(1);
    (others > 0)
        .then(|| format!("the server had {others} other clients at the beginning; their load is in these figures"))
}

/// A server's counters of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandStats {
    /// The number of calls.
    pub calls: u64,
    /// The duration of all calls, in microseconds.
    pub microseconds: u64,
}

impl CommandStats {
    /// Returns a server's counters of a command, in lower case, so far; `None` if it does not report them.
    pub fn of(command: &str, connection: &mut Connection) -> Option<Self> {
        let about: String = redis::cmd("INFO").arg("commandstats").query(connection).ok()?;
        // A server that has not executed the command has no line for it.
        Some(Self::read(&about, command).unwrap_or(Self { calls: 0, microseconds: 0 }))
    }

    /// Returns the mean time of a call since then, in nanoseconds; `None` without a call.
    pub fn since(self, before: Self) -> Option<f64> {
        let calls = self.calls.checked_sub(before.calls).filter(|calls| *calls > 0)?;
        Some(1_000.0 * self.microseconds.checked_sub(before.microseconds)? as f64 / calls as f64)
    }

    /// Parses `cmdstat_publish:calls=10,usec=42,usec_per_call=4.20,…`.
    fn read(about: &str, command: &str) -> Option<Self> {
        let name = format!("cmdstat_{command}:");
        let line = about.lines().find_map(|line| line.strip_prefix(&name))?;
        let number = |name: &str| {
            let value = line.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
            value.trim().parse().ok()
        };
        Some(Self { calls: number("calls")?, microseconds: number("usec")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_time_is_the_mean_since_the_last_reading() {
        let about = |calls: u64, microseconds: u64| {
            let publish = format!("cmdstat_publish:calls={calls},usec={microseconds},usec_per_call=1.00");
            format!("# Commandstats\r\ncmdstat_ping:calls=9,usec=9\r\n{publish}\r\n")
        };
        let [before, after] = [about(10, 30), about(30, 100)].map(|text| CommandStats::read(&text, "publish").unwrap());
        assert_eq!(after.since(before), Some(3_500.0));
        assert_eq!(before.since(after), None);
        assert_eq!(before.since(before), None);
        assert_eq!(CommandStats::read("cmdstat_ping:calls=9,usec=9", "publish"), None);
    }
}
