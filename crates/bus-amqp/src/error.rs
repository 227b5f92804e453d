//! What a server can answer instead of what was asked for.

use std::io;

use lapin::ErrorKind;
use lapin::protocol::AMQPError;
use tickpath_bus_api::PublishError;
use tickpath_tls::why_not;

/// The broker's numbers for its refusals.
const CONNECTION_FORCED: u16 = 320;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;
const RESOURCE_ERROR: u16 = 506;
const NOT_ALLOWED: u16 = 530;
const INTERNAL_ERROR: u16 = 541;

/// By what we log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// By the one that everybody knows.
    Guest,
    /// By a user name and a password.
    Password,
    /// By our own certificate.
    Certificate,
}

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
    /// Nothing comes from it, not even its signs of life.
    #[error(
        "has said nothing for as long as it may (silence=SECONDS in the URL, or 10); a firewall may have forgotten the \
         connection, the server hangs, or this process stood still: it is connected to again"
    )]
    Silent,
    /// It protects itself.
    #[error("takes no messages now, because it runs out of memory or disk; free some, or raise its limits")]
    Blocked,
    /// Somebody else listens.
    #[error("answers, but not as RabbitMQ does ({0}); check the port, or write amqps:// if it speaks TLS there")]
    NotAmqp(String),
    /// There is no TLS, or not with who it should be.
    #[error("is not connected to over TLS: {0}")]
    Tls(String),
    /// It hung up on somebody whom it did not know yet.
    #[error(
        "closed the connection before the login was over; write amqps:// if it speaks TLS there, else look into its \
         log, and try again"
    )]
    HungUp,
    /// The login failed.
    #[error("refused the user name or the password; check USER:PASSWORD@ in the URL")]
    Login,
    /// There was no login, and the one that everybody knows is not taken.
    #[error("wants a user name and a password; write amqp://USER:PASSWORD@HOST:PORT")]
    NoLogin,
    /// The certificate is no login.
    #[error(
        "has no user by the name in our certificate; make one, turn on rabbitmq_auth_mechanism_ssl and EXTERNAL there, \
         or write USER:PASSWORD@ in the URL"
    )]
    NoUser,
    /// The virtual host is not there, or not for this user.
    #[error("does not open the virtual host ({0}); check /VHOST at the end of the URL, or the user's rights")]
    VirtualHost(String),
    /// An exchange or queue is there, but not as we make them.
    #[error("has this name already, for something else ({0}); use another name, or delete that one")]
    Differs(String),
    /// A queue is there, but gives up its messages after other deliveries than we want.
    #[error(
        "has this queue with another number of most deliveries, or of a RabbitMQ before 4, which had none ({0}); open \
         it with the number that it was made with, or pull it empty, remove it, and open it again"
    )]
    OtherLimit(String),
    /// An exchange or queue that was opened is not there any more.
    #[error("does not have it any more ({0}); somebody removed it: open it again")]
    Missing(String),
    /// A message came back because its queue is not there any more.
    #[error("has no such queue any more, somebody removed it; push again, which makes it anew")]
    NoQueue,
    /// It says that it failed.
    #[error(
        "did not take the message: a policy with overflow=reject-publish refuses it, or the broker has failed; look into \
             its log (tickpath doctor names such policies), and send it again"
    )]
    NotConfirmed,
    /// It says so of a queue that is under a policy, which is this.
    #[error("did not take the message: {0}; pull what waits there, then send it again")]
    Policy(String),
    /// It refuses what it takes at other times.
    #[error("does not do it now ({0}); try again, and if that does not help, look into its log")]
    NotNow(String),
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
    #[error("cannot be asked, because this process gets no thread, socket or clock ({0}); raise its limits")]
    Here(io::Error),
    /// None of several can be used.
    #[error("none of them can be used: {}", each(.0))]
    Several(Vec<(String, ServerError)>),
}

impl ServerError {
    /// What the end of a handshake with this host means.
    pub fn from_handshake(error: lapin::Error, host: &str, login: Login) -> Self {
        match error.kind() {
            ErrorKind::IOError(e) => why_not(e, host).map_or_else(|| Self::from_early(error.clone()), Self::Tls),
            ErrorKind::ProtocolError(refusal) => match (refusal.get_id(), login) {
                (ACCESS_REFUSED, Login::Password) => Self::Login,
                (ACCESS_REFUSED, Login::Guest) => Self::NoLogin,
                (ACCESS_REFUSED, Login::Certificate) => Self::NoUser,
                (NOT_ALLOWED, _) if !is_limit(refusal) => Self::VirtualHost(said(refusal)),
                _ => error.into(),
            },
            _ => Self::from_early(error),
        }
    }

    fn from_early(error: lapin::Error) -> Self {
        match Self::from(error) {
            Self::Closed | Self::Lost(_) => Self::HungUp,
            other => other,
        }
    }

    /// What an error of the network means.
    pub fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens,
            io::ErrorKind::TimedOut => Self::Timeout,
            // The library's name for the end of the stream.
            io::ErrorKind::ConnectionAborted | io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Lost(error.to_string()),
        }
    }

    /// Why none of these servers can be used, of which there is at least one.
    pub fn of_all(mut failed: Vec<(String, Self)>) -> Self {
        match failed.len() {
            1 => failed.remove(0).1,
            _ => Self::Several(failed),
        }
    }

    /// True if a new connection may help at once.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Silent | Self::Closed | Self::Lost(_) | Self::Missing(_))
    }

    /// True if it can pass by itself, or by calling again.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::Timeout
            | Self::Silent
            | Self::Blocked
            | Self::HungUp
            | Self::Missing(_)
            | Self::NoQueue
            | Self::NotConfirmed
            | Self::Policy(_)
            | Self::NotNow(_)
            | Self::Closed
            | Self::Lost(_)
            | Self::Here(_) => true,
            Self::NotAmqp(_)
            | Self::Tls(_)
            | Self::Login
            | Self::NoLogin
            | Self::NoUser
            | Self::VirtualHost(_)
            | Self::Differs(_)
            | Self::OtherLimit(_)
            | Self::Refused(_) => false,
            Self::Several(failed) => failed.iter().any(|(_, error)| error.may_pass()),
        }
    }

    /// For who wanted to publish on this server, and has not.
    pub fn unpublished(&self, server: &str) -> PublishError {
        PublishError::not_published(format!("{server} {self}"), self.may_pass())
    }

    /// For who published on this server, and does not know whether he has.
    pub fn unknown(&self, server: &str) -> PublishError {
        PublishError::Unknown(format!("{server} {self}"))
    }
}

impl From<lapin::Error> for ServerError {
    fn from(error: lapin::Error) -> Self {
        match error.kind() {
            ErrorKind::IOError(e) => Self::from_io(e),
            ErrorKind::ProtocolError(e) => from_refusal(e),
            ErrorKind::ParsingError(_) => Self::NotAmqp("its bytes are no AMQP".to_owned()),
            ErrorKind::InvalidProtocolVersion(_) => Self::NotAmqp(error.to_string()),
            // What is asked for on a connection that has ended already.
            ErrorKind::InvalidChannel(_)
            | ErrorKind::InvalidChannelState(..)
            | ErrorKind::InvalidConnectionState(_)
            | ErrorKind::RuntimeShutdownError(_) => Self::Closed,
            ErrorKind::MissingHeartbeatError => Self::Silent,
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// What the broker's refusals mean once the login is over: the one table of what passes and what does not.
fn from_refusal(refusal: &AMQPError) -> ServerError {
    let sentence = said(refusal);
    match refusal.get_id() {
        // The node that a queue lives on.
        NOT_FOUND if sentence.contains("down or inaccessible") => ServerError::NotNow(sentence),
        NOT_FOUND => ServerError::Missing(sentence),
        PRECONDITION_FAILED if is_limit_of_deliveries(&sentence) => ServerError::OtherLimit(sentence),
        PRECONDITION_FAILED if sentence.contains("inequivalent arg") => ServerError::Differs(sentence),
        // A quorum queue without a leader is an internal error, too.
        CONNECTION_FORCED | INTERNAL_ERROR => ServerError::Lost(sentence),
        // The connection that held a queue for itself, or the node that restarts, is not quite gone.
        RESOURCE_LOCKED | RESOURCE_ERROR => ServerError::NotNow(sentence),
        NOT_ALLOWED if is_limit(refusal) => ServerError::NotNow(sentence),
        // ACCESS_REFUSED, other NOT_ALLOWED, other PRECONDITION_FAILED, and what nobody thought of.
        _ => ServerError::Refused(sentence),
    }
}

/// The broker's own words, of at most 255 bytes, without the characters that a terminal obeys.
fn said(refusal: &AMQPError) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    refusal.get_message().as_str().chars().map(shown).collect()
}

/// Whether a queue differs in what `most_deliveries` is declared by.
fn is_limit_of_deliveries(sentence: &str) -> bool {
    let differs = |argument: &&str| sentence.contains(&format!("inequivalent arg '{argument}"));
    ["x-delivery-limit", "x-dead-letter-", "x-overflow"].iter().any(differs)
}

/// Whether there are merely too many connections.
fn is_limit(refusal: &AMQPError) -> bool {
    refusal.get_id() == NOT_ALLOWED && refusal.get_message().as_str().contains("limit")
}

/// Several servers, each with what is wrong there.
fn each(failed: &[(String, ServerError)]) -> String {
    let sentences: Vec<String> = failed.iter().map(|(host, error)| format!("{host} {error}")).collect();
    sentences.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_become_sentences_and_pass_or_not() {
        for (code, said, words, passes) in [
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
            let error = ServerError::from(refusal(code, said));
            let sentence = error.to_string();
            assert!(sentence.contains(words) && sentence.contains(said), "{said}: {sentence}");
            assert_eq!(error.may_pass(), passes, "{said}");
            assert_eq!(error.unpublished("amqp://h:1").may_pass(), passes, "{said}");
        }
    }

    #[test]
    fn a_refused_handshake_says_what_to_check() {
        for (code, login, words) in [
            (403, Login::Password, "check USER:PASSWORD@"),
            (403, Login::Guest, "write amqp://USER:PASSWORD@HOST:PORT"),
            (403, Login::Certificate, "name in our certificate"),
            (530, Login::Password, "check /VHOST"),
            (541, Login::Password, "lost the connection"),
        ] {
            let sentence = ServerError::from_handshake(refusal(code, "no"), "h", login).to_string();
            assert!(sentence.contains(words), "{code}: {sentence}");
        }
    }

    #[test]
    fn of_several_servers_each_is_told() {
        let one = ("a:1".to_owned(), ServerError::NobodyListens);
        let other = ("b:2".to_owned(), ServerError::Login);
        assert!(matches!(ServerError::of_all(vec![("a:1".to_owned(), ServerError::Login)]), ServerError::Login));
        let all = ServerError::of_all(vec![one, other]);
        let sentence = all.to_string();
        assert!(all.may_pass() && sentence.contains("a:1 refused the connection"), "{sentence}");
        assert!(sentence.contains("b:2 refused the user name"), "{sentence}");
    }

    fn refusal(code: u16, said: &str) -> lapin::Error {
        ErrorKind::ProtocolError(AMQPError::from_id(code, said.into()).expect("a number of AMQP")).into()
    }
}
