//! Errors of a server as sentences, and which of them pass by themselves.

use std::io;

use lapin::ErrorKind;
use lapin::protocol::AMQPError;
use tickpath_bus_api::PublishError;
use tickpath_tls::tls_failure;

/// The broker's reply codes.
const CONNECTION_FORCED: u16 = 320;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;
const RESOURCE_ERROR: u16 = 506;
const NOT_ALLOWED: u16 = 530;
const INTERNAL_ERROR: u16 = 541;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmqpLoginKind {
    Guest,
    Password,
    Certificate,
}

/// The reason why a server cannot be used, as a sentence that continues after the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmqpServerError {
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(io::Error),
    #[error("refused the connection; start rabbitmq-server, or check host and port")]
    NotListening,
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    #[error(
        "has sent nothing for the max silence (silence=SECONDS in the URL, or 10); a firewall may have dropped the \
         connection, the server hangs, or this process was paused: the connection is made again"
    )]
    Silent,
    #[error("takes no messages now, because it runs out of memory or disk; free some, or raise its limits")]
    Blocked,
    #[error("answers, but not as RabbitMQ does ({0}); check the port, or write amqps:// if it speaks TLS there")]
    NotAmqp(String),
    #[error("is not connected to over TLS: {0}")]
    Tls(String),
    #[error(
        "closed the connection before the login was over; write amqps:// if it speaks TLS there, else look into its \
         log, and try again"
    )]
    ClosedBeforeLogin,
    #[error("refused the user name or the password; check USER:PASSWORD@ in the URL")]
    Login,
    #[error("wants a user name and a password; write amqp://USER:PASSWORD@HOST:PORT")]
    LoginRequired,
    #[error(
        "has no user by the name in our certificate; make one, turn on rabbitmq_auth_mechanism_ssl and EXTERNAL there, \
         or write USER:PASSWORD@ in the URL"
    )]
    NoUser,
    #[error("does not open the virtual host ({0}); check /VHOST at the end of the URL, or the user's rights")]
    VirtualHost(String),
    #[error("has this name already, for something else ({0}); use another name, or delete that one")]
    Differs(String),
    #[error(
        "has this queue with another delivery limit, or of a RabbitMQ before 4, which had none ({0}); open it with the \
         limit that it was made with, or pull it empty, remove it, and open it again"
    )]
    OtherLimit(String),
    #[error("does not have it any more ({0}), because it was removed; open it again")]
    Missing(String),
    #[error("has no such queue any more, because it was removed; push again, which makes it anew")]
    QueueRemoved,
    #[error(
        "did not accept the message: a policy with overflow=reject-publish refuses it, or the broker has failed; look \
         into its log (tickpath doctor names such policies), and send it again"
    )]
    NotConfirmed,
    #[error("did not accept the message: {0}; pull the waiting messages, then send it again")]
    Policy(String),
    #[error("does not do it now ({0}); try again, and if that does not help, look into its log")]
    NotNow(String),
    #[error("refused: {0}; change the user's rights, or the server's settings")]
    Refused(String),
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    #[error("lost the connection ({0}); check the network and the server, and try again")]
    Lost(String),
    #[error("cannot be reached, because this process gets no thread, socket or clock ({0}); raise its limits")]
    LocalResource(io::Error),
    #[error("none of them can be used: {}", each(.0))]
    AllServersFailed(Vec<(String, AmqpServerError)>),
}

impl AmqpServerError {
    pub fn from_handshake(error: lapin::Error, host: &str, login: AmqpLoginKind) -> Self {
        match error.kind() {
            ErrorKind::IOError(e) => tls_failure(e, host).map_or_else(|| Self::from_early(error.clone()), Self::Tls),
            ErrorKind::ProtocolError(refusal) => match (refusal.get_id(), login) {
                (ACCESS_REFUSED, AmqpLoginKind::Password) => Self::Login,
                (ACCESS_REFUSED, AmqpLoginKind::Guest) => Self::LoginRequired,
                (ACCESS_REFUSED, AmqpLoginKind::Certificate) => Self::NoUser,
                (NOT_ALLOWED, _) if !is_connection_limit(refusal) => Self::VirtualHost(printable_server_text(refusal)),
                _ => error.into(),
            },
            _ => Self::from_early(error),
        }
    }

    fn from_early(error: lapin::Error) -> Self {
        match Self::from(error) {
            Self::Closed | Self::Lost(_) => Self::ClosedBeforeLogin,
            other => other,
        }
    }

    pub fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NotListening,
            io::ErrorKind::TimedOut => Self::Timeout,
            // The library's codes for the end of the stream.
            io::ErrorKind::ConnectionAborted | io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Lost(error.to_string()),
        }
    }

    /// Combines the errors of several servers, at least one.
    pub fn combine(mut failed: Vec<(String, Self)>) -> Self {
        match failed.len() {
            1 => failed.remove(0).1,
            _ => Self::AllServersFailed(failed),
        }
    }

    /// Returns true if a new connection may help at once.
    pub fn is_connection_loss(&self) -> bool {
        matches!(self, Self::Silent | Self::Closed | Self::Lost(_) | Self::Missing(_))
    }

    /// Returns true if it can pass by itself, or by calling again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NotListening
            | Self::Timeout
            | Self::Silent
            | Self::Blocked
            | Self::ClosedBeforeLogin
            | Self::Missing(_)
            | Self::QueueRemoved
            | Self::NotConfirmed
            | Self::Policy(_)
            | Self::NotNow(_)
            | Self::Closed
            | Self::Lost(_)
            | Self::LocalResource(_) => true,
            Self::NotAmqp(_)
            | Self::Tls(_)
            | Self::Login
            | Self::LoginRequired
            | Self::NoUser
            | Self::VirtualHost(_)
            | Self::Differs(_)
            | Self::OtherLimit(_)
            | Self::Refused(_) => false,
            Self::AllServersFailed(failed) => failed.iter().any(|(_, error)| error.is_transient()),
        }
    }

    /// Turns it into the error of a message that is surely not published on this server.
    pub fn not_published(&self, server: &str) -> PublishError {
        PublishError::not_published(format!("{server} {self}"), self.is_transient())
    }

    /// Turns it into the error of a message in doubt on this server.
    pub fn unknown(&self, server: &str) -> PublishError {
        PublishError::Unknown(format!("{server} {self}"))
    }
}

impl From<lapin::Error> for AmqpServerError {
    fn from(error: lapin::Error) -> Self {
        match error.kind() {
            ErrorKind::IOError(e) => Self::from_io(e),
            ErrorKind::ProtocolError(e) => from_refusal(e),
            ErrorKind::ParsingError(_) => Self::NotAmqp("its bytes are no AMQP".to_owned()),
            ErrorKind::InvalidProtocolVersion(_) => Self::NotAmqp(error.to_string()),
            // A request on a connection that has already ended.
            ErrorKind::InvalidChannel(_)
            | ErrorKind::InvalidChannelState(..)
            | ErrorKind::InvalidConnectionState(_)
            | ErrorKind::RuntimeShutdownError(_) => Self::Closed,
            ErrorKind::MissingHeartbeatError => Self::Silent,
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// Translates the broker's refusals after the login: the one table of which pass by themselves and which do not.
fn from_refusal(refusal: &AMQPError) -> AmqpServerError {
    let sentence = printable_server_text(refusal);
    match refusal.get_id() {
        // The node that holds a queue is down.
        NOT_FOUND if sentence.contains("down or inaccessible") => AmqpServerError::NotNow(sentence),
        NOT_FOUND => AmqpServerError::Missing(sentence),
        PRECONDITION_FAILED if is_delivery_limit(&sentence) => AmqpServerError::OtherLimit(sentence),
        PRECONDITION_FAILED if sentence.contains("inequivalent arg") => AmqpServerError::Differs(sentence),
        // Includes a quorum queue without a leader, which is an internal error.
        CONNECTION_FORCED | INTERNAL_ERROR => AmqpServerError::Lost(sentence),
        // The connection that owned an exclusive queue, or the node that restarts, is not quite gone.
        RESOURCE_LOCKED | RESOURCE_ERROR => AmqpServerError::NotNow(sentence),
        NOT_ALLOWED if is_connection_limit(refusal) => AmqpServerError::NotNow(sentence),
        // ACCESS_REFUSED, other NOT_ALLOWED, other PRECONDITION_FAILED, and unforeseen codes.
        _ => AmqpServerError::Refused(sentence),
    }
}

/// Returns the broker's own text, at most 255 bytes, without the control characters that a terminal obeys.
fn printable_server_text(refusal: &AMQPError) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    refusal.get_message().as_str().chars().map(shown).collect()
}

/// Returns true if a queue differs in an argument that its delivery limit decides.
fn is_delivery_limit(sentence: &str) -> bool {
    let differs = |argument: &&str| sentence.contains(&format!("inequivalent arg '{argument}"));
    ["x-delivery-limit", "x-dead-letter-", "x-overflow"].iter().any(differs)
}

fn is_connection_limit(refusal: &AMQPError) -> bool {
    refusal.get_id() == NOT_ALLOWED && refusal.get_message().as_str().contains("limit")
}

fn each(failed: &[(String, AmqpServerError)]) -> String {
    failed.iter().map(|(host, error)| format!("{host} {error}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_becomes_a_transient_or_permanent_error() {
        for (code, text, words, passes) in [
            (320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'", "lost the", true),
            (403, "ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused", "refused: ACCESS_REFUSED", false),
            (404, "NOT_FOUND - no exchange 'x' in vhost '/'", "open it again", true),
            (404, "NOT_FOUND - home node 'a@b' of durable queue 'x' is down or inaccessible", "try again", true),
            (405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'x'", "try again", true),
            (406, "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x'", "use another name", false),
            (406, "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'x'", "remove it", false),
            (406, "PRECONDITION_FAILED - inequivalent arg 'x-dead-letter-exchange' for queue 'x'", "remove it", false),
            (406, "PRECONDITION_FAILED - unknown delivery tag 7", "refused: PRECONDITION_FAILED", false),
            (506, "RESOURCE_ERROR - out of something", "try again", true),
            (530, "NOT_ALLOWED - access to vhost '/' refused for 'a': connection limit (1) is reached", "try", true),
            (530, "NOT_ALLOWED - no", "refused: NOT_ALLOWED", false),
            (541, "INTERNAL_ERROR - queue 'x' has no leader", "lost the connection", true),
        ] {
            let error = AmqpServerError::from(refusal(code, text));
            let sentence = error.to_string();
            assert!(sentence.contains(words) && sentence.contains(text), "{text}: {sentence}");
            assert_eq!(error.is_transient(), passes, "{text}");
            assert_eq!(error.not_published("amqp://h:1").is_transient(), passes, "{text}");
        }
    }

    #[test]
    fn a_refused_handshake_names_the_setting_to_check() {
        for (code, login, words) in [
            (403, AmqpLoginKind::Password, "check USER:PASSWORD@"),
            (403, AmqpLoginKind::Guest, "write amqp://USER:PASSWORD@HOST:PORT"),
            (403, AmqpLoginKind::Certificate, "name in our certificate"),
            (530, AmqpLoginKind::Password, "check /VHOST"),
            (541, AmqpLoginKind::Password, "lost the connection"),
        ] {
            let sentence = AmqpServerError::from_handshake(refusal(code, "no"), "h", login).to_string();
            assert!(sentence.contains(words), "{code}: {sentence}");
        }
    }

    #[test]
    fn the_error_of_several_servers_names_each() {
        let one = ("a:1".to_owned(), AmqpServerError::NotListening);
        let other = ("b:2".to_owned(), AmqpServerError::Login);
        let single = AmqpServerError::combine(vec![("a:1".to_owned(), AmqpServerError::Login)]);
        assert!(matches!(single, AmqpServerError::Login));
        let all = AmqpServerError::combine(vec![one, other]);
        let sentence = all.to_string();
        assert!(all.is_transient() && sentence.contains("a:1 refused the connection"), "{sentence}");
        assert!(sentence.contains("b:2 refused the user name"), "{sentence}");
    }

    fn refusal(code: u16, text: &str) -> lapin::Error {
        ErrorKind::ProtocolError(AMQPError::from_id(code, text.into()).expect("a number of AMQP")).into()
    }
}
