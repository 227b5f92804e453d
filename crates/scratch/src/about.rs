//! What a Redis server says of itself, over a connection that is not measured.

use std::time::Duration;

use redis::{Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, ServerErrorKind};

use tickpath_harness::LabError;
use tickpath_result::Software;

/// How long the server may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Why a server gives no answer, as a sentence with the remedy.
pub fn no_answer(server: &str, error: &RedisError) -> LabError {
    if error.is_timeout() {
        let seconds = PATIENCE.as_secs();
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
    LabError::Failed(format!("{server} does not do what it is asked ({error}); {remedy}"))
}

/// A connection that is not measured, whose calls end.
pub fn dial(info: impl IntoConnectionInfo) -> RedisResult<Connection> {
    let connection = redis::Client::open(info)?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// The server's name and version, and the settings that decide what reaches a disk.
pub fn software(about: &str, connection: &mut Connection) -> Software {
    let valkey = field(about, "valkey_version");
    let mut software = Software {
        server: Some(if valkey.is_some() { "valkey-server" } else { "redis-server" }.to_owned()),
        server_version: valkey.or_else(|| field(about, "redis_version")).map(str::to_owned),
        ..Software::default()
    };
    for setting in ["save", "appendonly"] {
        // Not every server tells everybody.
        let told: RedisResult<Vec<String>> = redis::cmd("CONFIG").arg("GET").arg(setting).query(connection);
        if let Some(value) = told.ok().and_then(|pair| pair.into_iter().nth(1)) {
            software.server_settings.set(setting, value);
        }
    }
    software
}

/// A sentence about those who use the server beside us, if there are any.
pub fn others(about: &str) -> Option<String> {
    let others = field(about, "connected_clients")?.parse::<u64>().ok()?.saturating_sub(1);
    (others > 0)
        .then(|| format!("the server had {others} other clients at the beginning; their load is in these figures"))
}

/// What stands behind a name in the lines of INFO.
pub fn field<'a>(about: &'a str, name: &str) -> Option<&'a str> {
    about.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
