//! Errors of a server, and whether each is transient: one table of the first words of a server's refusals.

use std::io;
use std::time::Duration;

use crate::resp::{ReplyLimit, RespError};

/// Max number of characters of a server's text that a message repeats.
const MAX_TEXT_CHARS: usize = 1024;

/// Result of work that needs the server.
pub(crate) type ServerResult<T = ()> = Result<T, RedisServerError>;

/// Reason why a server cannot be used. The text follows the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RedisServerError {
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(io::Error),
    #[error("refused the connection; start redis-server, or check host and port")]
    ConnectionRefused,
    #[error("has no socket there; start redis-server with 'unixsocket PATH', or check the path")]
    NoSocket,
    #[error("does not let this user open its socket; set 'unixsocketperm' of redis-server, or run as its user")]
    SocketPermission,
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// The server sent nothing for this long, not even the reply to a `PING`.
    #[error(
        "sent nothing for {} s, and does not answer; a firewall may have dropped the connection, or the server hangs: \
         the client reconnects",
        .0.as_secs_f64()
    )]
    Silent(Duration),
    /// The server was silent while an `XREAD` without end was in flight: whether it is alive is unknown.
    #[error("has no request with an end in flight, and may be dead; the client reconnects")]
    LivenessUnknown,
    #[error("answers, but not as Redis does ({0}); check the port")]
    NotRedis(String),
    /// A later reply is not Redis protocol, though earlier replies were.
    #[error("sent a malformed reply ({0}); look into its log, and try again")]
    MalformedReply(String),
    #[error("sends a message that is too long; they are read up to 64 MiB: remove that one, and write shorter ones")]
    PayloadTooLong,
    /// An answer exceeds a bound, and is not read any further.
    #[error(
        "sends an answer of more than {0}, which no request of this client has; the connection is closed: check that a \
         Redis server listens there, and look into its log"
    )]
    ReplyTooLarge(ReplyLimit),
    #[error("cannot be used over TLS: {0}")]
    TlsUnavailable(String),
    /// The TLS connection broke: its bytes cannot be read.
    #[error("broke the TLS connection: {0}; try again")]
    TlsBroken(String),
    #[error("closed the connection in the TLS handshake; check the port and the TLS version, and try again")]
    TlsClosed,
    #[error("did not finish the TLS handshake within 5 s; check whether it speaks TLS on this port, or hangs")]
    TlsTimeout,
    #[error("refused the user name or the password; check USER:PASSWORD@ in the URL")]
    LoginRefused,
    #[error("wants a password; write redis://:PASSWORD@HOST:PORT or redis://USER:PASSWORD@HOST:PORT")]
    LoginRequired,
    #[error(
        "is a sentinel, and {}; one password for both is that of the URL, and one of the sentinels alone is \
         sentinel-password=env:NAME or file:PATH in it",
        if *.is_given { "refused the password" } else { "wants a password" }
    )]
    SentinelLogin { is_given: bool },
    #[error("names {master} as the master, and that one {reason}")]
    MasterLogin { master: String, reason: Box<RedisServerError> },
    #[error("is still loading its data; try again when it has finished")]
    Loading,
    /// The server is a replica without its master, configured to answer nothing meanwhile.
    #[error("has lost its master, and answers nothing without it; try again when it is back, or use the master")]
    MasterDown,
    #[error("is busy with a script; try again when it has ended, or end it by SCRIPT KILL")]
    Busy,
    /// The server is a replica: its channels do not reach the master's subscribers, and it takes no writes.
    #[error("is a replica; use its master, or name all servers in the URL: the one that is the master is taken")]
    Replica,
    #[error("knows no master '{0}'; check sentinel=NAME in the URL")]
    NoMaster(String),
    #[error("has reached its limit of clients; close some, or raise its maxclients")]
    TooManyClients,
    #[error("has no memory left ({0}); empty a queue or a stream, or raise its maxmemory")]
    OutOfMemory(String),
    /// The server cannot write its disk: it refuses writes, and a `PING` too.
    #[error("cannot write its disk, and takes nothing to keep ({0}); make room there, and look into its log")]
    DiskFailure(String),
    /// The server is a cluster node, and another node has the name.
    #[error("is one of a cluster, and another of its servers has this name ({0}); write '?cluster' in the URL")]
    Moved(String),
    #[error("is no node of a cluster; leave 'cluster' out of the URL")]
    NoCluster,
    #[error(
        "is no sentinel; leave 'sentinel=NAME' out of the URL, or name the sentinels in place of the server: their \
         usual port is 26379"
    )]
    NoSentinel,
    /// The key has another type: it is not ours, or was made with or without `?streams`.
    #[error(
        "has something of another type under this name ({0}); use another name, or, for a queue or topic of Tickpath, \
         the URL that made it: with '?streams', or without"
    )]
    WrongType(String),
    /// Another transient error, in the server's words.
    #[error("does not take it now ({0}); try again, and look into its log")]
    TransientRefusal(String),
    /// The queue was removed under a puller.
    #[error("no longer has the queue ({0}); pull again, and it is recreated")]
    NoQueue(String),
    /// The stream was removed under a subscriber, or removed and created again.
    #[error("no longer has the stream, or has another one of its name; it is read from its beginning")]
    StreamReplaced,
    #[error(
        "holds in this queue what another program has pushed, and a puller would take it away; use another name, or \
         take such messages too: QueueConfig::foreign names the kind that they get"
    )]
    ForeignMessage,
    /// Number of messages handed over that were given to other pullers meanwhile.
    #[error(
        "does not acknowledge {0} messages that were handed over: this puller was silent for too long, or the \
         server has lost them; they come again, marked, if it still has them, or are dead letters"
    )]
    NotAcknowledged(u64),
    #[error("refused: {0}; change the server's settings, or the URL")]
    Refused(String),
    /// Error of one of several servers, of which another one may come back.
    #[error(transparent)]
    OneOfSeveral(Box<RedisServerError>),
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    #[error("lost the connection ({0}); check the network, and try again")]
    ConnectionLost(io::Error),
}

impl RedisServerError {
    pub fn from_line(line: &[u8]) -> Self {
        let line = printable_server_text(line);
        match strip_script_prefix(&line).split_whitespace().next() {
            Some("WRONGPASS") => Self::LoginRefused,
            Some("NOAUTH") => Self::LoginRequired,
            Some("LOADING") => Self::Loading,
            Some("MASTERDOWN") => Self::MasterDown,
            Some("BUSY") => Self::Busy,
            Some("READONLY") => Self::Replica,
            Some("OOM") => Self::OutOfMemory(line),
            Some("MISCONF") => Self::DiskFailure(line),
            // Too few replicas, a cluster that moves or has lost a part, a failover.
            Some("NOREPLICAS" | "TRYAGAIN" | "CLUSTERDOWN" | "UNBLOCKED" | "INPROG") => Self::TransientRefusal(line),
            Some("MOVED" | "ASK") => Self::Moved(line),
            Some("WRONGTYPE") => Self::WrongType(line),
            Some("NOGROUP") => Self::NoQueue(line),
            Some("ERR") if line.contains("max number of clients") => Self::TooManyClients,
            // Reply of servers before version 6 to a wrong password, and of all servers to a password that they do not
            // expect.
            Some("ERR") if line.contains("invalid password") || line.contains("AUTH") => Self::LoginRefused,
            _ => Self::Refused(line),
        }
    }

    /// Returns the meaning of this error as the first answer of a server: it is the wrong kind of server.
    pub fn at_first_reply(self) -> Self {
        match self {
            Self::MalformedReply(what) => Self::NotRedis(what),
            Self::TlsBroken(why) => Self::TlsUnavailable(why),
            other => other,
        }
    }

    /// Returns the meaning of this error from a known cluster node: the cluster is asked again which node has the name.
    pub fn in_cluster(self) -> Self {
        match self {
            Self::Moved(line) => Self::TransientRefusal(line),
            other => other,
        }
    }

    /// Returns `meant` for a server that does not know a command of cluster nodes or sentinels. A server that knows the
    /// command and denies the right to it keeps its own refusal.
    pub fn or_wrong_kind(self, wrong_kind: Self) -> Self {
        match self {
            Self::Refused(line) if line.starts_with("ERR ") => wrong_kind,
            other => other,
        }
    }

    /// Returns true if another node of the cluster now has the name.
    pub fn is_moved(&self) -> bool {
        matches!(self, Self::TransientRefusal(line) if line.starts_with("MOVED"))
    }

    /// Returns true if the server gives this reply to every command until it is ready.
    pub fn is_not_ready(&self) -> bool {
        matches!(self, Self::Loading | Self::MasterDown | Self::Busy)
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::ConnectionRefused
            | Self::NoSocket
            | Self::Timeout
            | Self::Silent(_)
            | Self::LivenessUnknown
            | Self::TlsTimeout
            | Self::TlsBroken(_)
            | Self::TlsClosed
            | Self::MalformedReply(_)
            | Self::OneOfSeveral(_)
            | Self::DiskFailure(_)
            | Self::Loading
            | Self::MasterDown
            | Self::Busy
            | Self::Replica
            | Self::TooManyClients
            | Self::OutOfMemory(_)
            | Self::TransientRefusal(_)
            | Self::NoQueue(_)
            | Self::StreamReplaced
            | Self::Closed
            | Self::ConnectionLost(_) => true,
            Self::SocketPermission
            | Self::NotRedis(_)
            | Self::PayloadTooLong
            | Self::ReplyTooLarge(_)
            | Self::TlsUnavailable(_)
            | Self::LoginRefused
            | Self::LoginRequired
            | Self::SentinelLogin { .. }
            | Self::MasterLogin { .. }
            | Self::NoMaster(_)
            | Self::NoCluster
            | Self::NoSentinel
            | Self::WrongType(_)
            | Self::ForeignMessage
            | Self::Moved(_)
            | Self::NotAcknowledged(_)
            | Self::Refused(_) => false,
        }
    }

    /// Returns true if the connection is unusable, because the last request has no answer.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::OneOfSeveral(last) => last.is_unanswered(),
            Self::Timeout
            | Self::TlsTimeout
            | Self::TlsClosed
            | Self::TlsBroken(_)
            | Self::NotRedis(_)
            | Self::MalformedReply(_)
            | Self::PayloadTooLong
            | Self::ReplyTooLarge(_)
            | Self::TlsUnavailable(_)
            | Self::Closed
            | Self::ConnectionLost(_) => true,
            _ => false,
        }
    }
}

impl From<io::Error> for RedisServerError {
    fn from(error: io::Error) -> Self {
        if let Some(why) = tickpath_tls::tls_failure(&error, "this host") {
            return Self::TlsBroken(why);
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::NotFound => Self::NoSocket,
            io::ErrorKind::PermissionDenied => Self::SocketPermission,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Timeout,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::ConnectionLost(error),
        }
    }
}

impl From<RespError> for RedisServerError {
    fn from(error: RespError) -> Self {
        match error {
            RespError::TooLarge(ReplyLimit::Payload) => Self::PayloadTooLong,
            RespError::TooLarge(limit) => Self::ReplyTooLarge(limit),
            RespError::Invalid(what) => Self::MalformedReply(what.to_owned()),
        }
    }
}

/// Sanitizes a server's text for a message: cuts it, and replaces control characters that a terminal would obey.
pub(crate) fn printable_server_text(line: &[u8]) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    String::from_utf8_lossy(line).chars().take(MAX_TEXT_CHARS).map(shown).collect()
}

/// Returns the error proper: servers before version 7 put its position in a script before it.
fn strip_script_prefix(line: &str) -> &str {
    let Some((_, cause)) = line.rsplit_once("@user_script:").filter(|_| line.starts_with("ERR Error running script"))
    else {
        return line;
    };
    cause.trim_start_matches(|mark: char| mark.is_ascii_digit() || " :-".contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_cluster_a_moved_name_is_a_transient_error() {
        let error = |line: &str| RedisServerError::from_line(line.as_bytes()).in_cluster();
        let (moved, asking) = (error("MOVED 12182 10.0.0.1:6379"), error("ASK 12182 10.0.0.1:6379"));
        assert!(moved.is_transient() && moved.is_moved() && asking.is_transient() && !asking.is_moved());
    }

    #[test]
    fn an_unknown_cluster_or_sentinel_command_means_the_wrong_server() {
        for (line, cluster, sentinel) in [
            ("ERR This instance has cluster support disabled", "leave 'cluster' out", "leave 'sentinel=NAME' out"),
            ("ERR unknown command 'SENTINEL', with args", "leave 'cluster' out", "leave 'sentinel=NAME' out"),
            ("NOPERM this user has no permissions to run the 'cluster|slots' command", "NOPERM", "NOPERM"),
            ("LOADING Redis is loading the dataset in memory", "loading", "loading"),
        ] {
            for (wrong_kind, word) in [(RedisServerError::NoCluster, cluster), (RedisServerError::NoSentinel, sentinel)]
            {
                let sentence = RedisServerError::from_line(line.as_bytes()).or_wrong_kind(wrong_kind).to_string();
                assert!(sentence.contains(word), "{line}: {sentence}");
            }
        }
    }

    #[test]
    fn an_error_cuts_a_servers_text_and_strips_its_control_characters() {
        let line = ["ERR \u{1b}[2J\u{7}".to_owned(), "x".repeat(8000)].concat();
        let sentence = RedisServerError::from_line(line.as_bytes()).to_string();
        assert!(sentence.contains("[2J") && !sentence.chars().any(char::is_control), "{sentence:?}");
        assert!(sentence.chars().count() < MAX_TEXT_CHARS + 100, "{}", sentence.len());
    }

    #[test]
    fn error_lines_map_to_transient_or_permanent_errors() {
        for (line, word, may_pass) in [
            ("WRONGPASS invalid username-password pair or user is disabled.", "refused the user name", false),
            ("ERR invalid password", "refused the user name", false),
            ("NOAUTH Authentication required.", "wants a password", false),
            ("LOADING Redis is loading the dataset in memory", "loading", true),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "its master", true),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN.", "SCRIPT KILL", true),
            ("READONLY You can't write against a read only replica.", "is a replica", true),
            ("ERR max number of clients reached", "maxclients", true),
            ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory", true),
            ("NOREPLICAS Not enough good replicas to write.", "does not take it now", true),
            (
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to",
                "cannot write its disk",
                true,
            ),
            ("CLUSTERDOWN The cluster is down", "does not take it now", true),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "does not take it now", true),
            ("MOVED 12182 10.0.0.1:6379", "write '?cluster' in the URL", false),
            ("ASK 12182 10.0.0.1:6379", "write '?cluster' in the URL", false),
            ("NOGROUP No such key 'x' or consumer group 'tickpath'", "pull again", true),
            ("UNBLOCKED the stream key no longer exists", "does not take it now", true),
            ("NOPERM this user has no permissions to access the 'x' channel", "NOPERM", false),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "use another name", false),
            // Errors from a script, on a server of version 6.2.
            ("ERR Error running script (call to f_1): @user_script:3: OOM command not allowed", "maxmemory", true),
            (
                "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write",
                "is a replica",
                true,
            ),
            ("ERR Error running script (call to f_1): @user_script:3: WRONGTYPE Operation", "with '?streams'", false),
        ] {
            let error = RedisServerError::from_line(line.as_bytes());
            let sentence = error.to_string();
            assert!(sentence.contains(word), "{line}: {sentence}");
            assert_eq!(error.is_transient(), may_pass, "{line}");
            assert!(!error.is_unanswered(), "{line}");
        }
    }
}
