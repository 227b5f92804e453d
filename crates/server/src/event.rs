//! What a server tells of itself, as a sentence each.

use std::fmt;

use tickpath_oms::Notice;

/// Something that happened to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// It listens here.
    Listening(String),
    /// A client has logged in.
    LoggedIn {
        /// Its user.
        user: String,
        /// Its session.
        session: u16,
        /// Where it comes from.
        from: String,
    },
    /// A client was refused.
    Refused {
        /// Where it comes from.
        from: String,
        /// Why.
        why: String,
    },
    /// A client is gone.
    Gone {
        /// Its user.
        user: String,
        /// Its session.
        session: u16,
        /// Why.
        why: String,
    },
    /// The users' file cannot be read: the users that were known stay.
    Users(String),
    /// The files cannot be taken: what was known stays.
    NotReloaded(String),
    /// The files were read again, and the OMS has journaled so many definitions that differ.
    Defined {
        /// How many.
        changes: usize,
        /// What the files say otherwise, and the OMS has taken: each section and key with the old and the new value.
        taken: Vec<String>,
        /// What they say otherwise that holds from the next start on.
        at_start: Vec<String>,
    },
    /// The certificate cannot be read: the one that was known stays.
    Certificate(String),
    /// What an operator must hear of the OMS.
    Notice(Notice),
}

impl fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(place) => write!(f, "listening on {place}"),
            Self::LoggedIn { user, session, from } => {
                write!(f, "{user} has logged in to session {session} from {from}")
            }
            Self::Refused { from, why } => write!(f, "refused {from}: {why}"),
            Self::Gone { user, session, why } => write!(f, "{user} is gone from session {session}: {why}"),
            Self::Users(why) => write!(f, "{why}; the users that were known stay"),
            Self::NotReloaded(why) => write!(f, "{why}; what was known stays"),
            Self::Defined { changes: 0, taken, at_start } if taken.is_empty() && at_start.is_empty() => {
                write!(f, "the files were read again, and say the same")
            }
            Self::Defined { changes, taken, at_start } => {
                write!(f, "the files were read again: {changes} definitions have changed")?;
                if !taken.is_empty() {
                    write!(f, "; taken: {}", taken.join("; "))?;
                }
                if !at_start.is_empty() {
                    write!(f, "; needs a restart of the OMS: {}", at_start.join("; "))?;
                }
                Ok(())
            }
            Self::Certificate(why) => write!(f, "{why}; the certificate that was known stays"),
            Self::Notice(notice) => notice.fmt(f),
        }
    }
}
