//! What a server tells of itself, as a sentence each.

use std::fmt;

use tickpath_oms::Notice;

use super::escape::{escaped, escaped_lines};

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
    /// Something that an operator must mend: open files or the journal's disk are short. A sentence.
    Warning(String),
    /// What an operator must hear of the OMS.
    Notice(Notice),
}

impl ServerEvent {
    /// The sentence, with what clients and venues have said in it as it came.
    fn sentence(&self) -> String {
        match self {
            Self::Listening(place) => format!("listening on {place}"),
            Self::LoggedIn { user, session, from } => {
                format!("{user} has logged in to session {session} from {from}")
            }
            Self::Refused { from, why } => format!("refused {from}: {why}"),
            Self::Gone { user, session, why } => format!("{user} is gone from session {session}: {why}"),
            Self::Users(why) => format!("{why}; the users that were known stay"),
            Self::NotReloaded(why) => format!("{why}; what was known stays"),
            Self::Defined { changes: 0, taken, at_start } if taken.is_empty() && at_start.is_empty() => {
                "the files were read again, and say the same".to_owned()
            }
            Self::Defined { changes, taken, at_start } => {
                let mut text = format!("the files were read again: {changes} definitions have changed");
                if !taken.is_empty() {
                    text.push_str(&format!("; taken: {}", taken.join("; ")));
                }
                if !at_start.is_empty() {
                    text.push_str(&format!("; needs a restart of the OMS: {}", at_start.join("; ")));
                }
                text
            }
            Self::Certificate(why) => format!("{why}; the certificate that was known stays"),
            Self::Warning(why) => why.clone(),
            Self::Notice(notice) => notice.to_string(),
        }
    }
}

/// One line, whatever clients and venues have said; mistakes of files have a line each.
impl fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.sentence();
        f.write_str(&match self {
            Self::Users(_) | Self::NotReloaded(_) => escaped_lines(&sentence),
            _ => escaped(&sentence),
        })
    }
}
