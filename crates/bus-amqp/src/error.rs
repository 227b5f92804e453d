//! What a server can answer instead of what was asked for.

use std::io;

use lapin::ErrorKind;
use lapin::protocol::AMQPError;

/// The broker's numbers for its refusals.
const CONNECTION_FORCED: u16 = 320;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;
const INTERNAL_ERROR: u16 = 541;

/// Why a server cannot be used. Reads on after the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No such host.
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(io::Error),
    /// Nobody listens.
    #[error("refused the connection; start rabbitmq-server, or check host and port")]
    NobodyListens,
    /// Nobody answers.
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// It protects itself.
    #[error("takes no messages now, because it runs out of memory or disk; free some, or raise its limits")]
    Blocked,
    /// Somebody else listens.
    #[error("answers, but not as RabbitMQ does ({0}); check the port")]
    NotAmqp(String),
    /// The login failed.
    #[error("refused the user name or the password; check USER:PASSWORD@ in the URL")]
    Login,
    /// There was no login, and the one that everybody knows is not taken.
    #[error("wants a user name and a password; write amqp://USER:PASSWORD@HOST:PORT")]
    NoLogin,
    /// The virtual host is not there, or not for this user.
    #[error("does not open the virtual host ({0}); check /VHOST at the end of the URL, or the user's rights")]
    VirtualHost(String),
    /// An exchange or queue is there, but not as we make them.
    #[error("has this name already, for something else ({0}); use another name, or delete that one")]
    Differs(String),
    /// An exchange or queue that was opened is not there any more.
    #[error("does not have it any more ({0}); somebody removed it: open it again")]
    Missing(String),
    /// A message came back because its queue is not there any more.
    #[error("has no such queue any more, somebody removed it; push again, which makes it anew")]
    NoQueue,
    /// It says that it failed.
    #[error("could not take the message; look into its log, and try again")]
    NotConfirmed,
    /// Anything else that it says.
    #[error("refused: {0}; change the user's rights, or the server's settings")]
    Refused(String),
    /// It hung up.
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    /// The network or the server failed.
    #[error("lost the connection ({0}); check the network and the server, and try again")]
    Lost(String),
    /// It was not even asked.
    #[error("cannot be asked, because this process gets no thread or socket ({0}); raise its limits")]
    Here(io::Error),
}

impl ServerError {
    /// What the end of a handshake means.
    pub fn from_handshake(error: lapin::Error, has_login: bool) -> Self {
        let ErrorKind::ProtocolError(refusal) = error.kind() else { return error.into() };
        match refusal.get_id() {
            ACCESS_REFUSED if has_login => Self::Login,
            ACCESS_REFUSED => Self::NoLogin,
            NOT_ALLOWED => Self::VirtualHost(refusal.get_message().to_string()),
            _ => error.into(),
        }
    }

    /// True if a new connection may help at once.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Closed | Self::Lost(_) | Self::Missing(_))
    }

    /// True if it can pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::Timeout
            | Self::Blocked
            | Self::Missing(_)
            | Self::NoQueue
            | Self::NotConfirmed
            | Self::Closed
            | Self::Lost(_)
            | Self::Here(_) => true,
            Self::NotAmqp(_)
            | Self::Login
            | Self::NoLogin
            | Self::VirtualHost(_)
            | Self::Differs(_)
            | Self::Refused(_) => false,
        }
    }
}

impl From<lapin::Error> for ServerError {
    fn from(error: lapin::Error) -> Self {
        match error.kind() {
            ErrorKind::IOError(e) => from_io(e),
            ErrorKind::ProtocolError(e) => from_refusal(e),
            ErrorKind::ParsingError(_) => Self::NotAmqp("its bytes are no AMQP".to_owned()),
            ErrorKind::InvalidProtocolVersion(_) => Self::NotAmqp(error.to_string()),
            // What is asked for on a connection that has ended already.
            ErrorKind::InvalidChannel(_)
            | ErrorKind::InvalidChannelState(..)
            | ErrorKind::InvalidConnectionState(_)
            | ErrorKind::RuntimeShutdownError(_)
            | ErrorKind::MissingHeartbeatError => Self::Closed,
            _ => Self::Refused(error.to_string()),
        }
    }
}

fn from_io(error: &io::Error) -> ServerError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ServerError::NobodyListens,
        io::ErrorKind::TimedOut => ServerError::Timeout,
        // The library's name for the end of the stream.
        io::ErrorKind::ConnectionAborted | io::ErrorKind::UnexpectedEof => ServerError::Closed,
        _ => ServerError::Lost(error.to_string()),
    }
}

fn from_refusal(refusal: &AMQPError) -> ServerError {
    let sentence = refusal.get_message().to_string();
    match refusal.get_id() {
        NOT_FOUND => ServerError::Missing(sentence),
        PRECONDITION_FAILED if sentence.contains("inequivalent arg") => ServerError::Differs(sentence),
        CONNECTION_FORCED | INTERNAL_ERROR => ServerError::Lost(sentence),
        _ => ServerError::Refused(sentence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_become_sentences() {
        for (code, said, words) in [
            (320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'", "lost the connection"),
            (403, "ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused", "refused: ACCESS_REFUSED"),
            (404, "NOT_FOUND - no exchange 'x' in vhost '/'", "open it again"),
            (406, "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x'", "use another name"),
            (406, "PRECONDITION_FAILED - unknown delivery tag 7", "refused: PRECONDITION_FAILED"),
        ] {
            let sentence = ServerError::from(refusal(code, said)).to_string();
            assert!(sentence.contains(words) && sentence.contains(said), "{said}: {sentence}");
        }
    }

    #[test]
    fn a_refused_handshake_says_what_to_check() {
        for (code, has_login, words) in [
            (403, true, "check USER:PASSWORD@"),
            (403, false, "write amqp://USER:PASSWORD@HOST:PORT"),
            (530, true, "check /VHOST"),
            (541, true, "lost the connection"),
        ] {
            let sentence = ServerError::from_handshake(refusal(code, "no"), has_login).to_string();
            assert!(sentence.contains(words), "{code}: {sentence}");
        }
    }

    fn refusal(code: u16, said: &str) -> lapin::Error {
        ErrorKind::ProtocolError(AMQPError::from_id(code, said.into()).expect("a number of AMQP")).into()
    }
}
