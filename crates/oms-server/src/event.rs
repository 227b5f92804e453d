//! Events of a server, each with a sentence for the operator.

use std::fmt;

use tickpath_oms_runtime::Notice;

use super::escape::{escaped, escaped_lines};

/// Event of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields name the client and the reason")]
pub enum ServerEvent {
    /// The server listens at this address.
    Listening(String),
    /// A client has logged in.
    LoggedIn { user: String, session: u16, from: String },
    /// A client was refused.
    Refused { from: String, why: String },
    /// A client has disconnected.
    Disconnected { user: String, session: u16, why: String },
    /// The users' file cannot be read: the old users stay.
    UsersNotReloaded(String),
    /// The files cannot be taken: the old configuration stays.
    NotReloaded(String),
    /// The files were read again, and the OMS has journaled the definitions that differ.
    Reloaded {
        /// Number of these definitions.
        changes: usize,
        /// Changes in the files that the OMS has taken: each section and key with the old and the new value.
        applied: Vec<String>,
        /// Changes that take effect at the next start.
        needs_restart: Vec<String>,
    },
    /// The certificate cannot be read: the old one stays.
    Certificate(String),
    /// A condition that an operator must mend: open files or the journal's disk are short.
    Warning(String),
    /// A notice of the OMS for the operator.
    Notice(Notice),
}

impl ServerEvent {
    /// Returns the sentence, in which texts of clients and venues are not escaped yet.
    fn sentence(&self) -> String {
        match self {
            Self::Listening(place) => format!("listening on {place}"),
            Self::LoggedIn { user, session, from } => {
                format!("{user} has logged in to session {session} from {from}")
            }
            Self::Refused { from, why } => format!("refused a connection from {from}: {why}"),
            Self::Disconnected { user, session, why } => format!("{user} has left session {session}: {why}"),
            Self::UsersNotReloaded(why) => format!("{why}; the previous users stay in force"),
            Self::NotReloaded(why) => format!("{why}; the previous configuration stays in force"),
            Self::Reloaded { changes: 0, applied, needs_restart } if applied.is_empty() && needs_restart.is_empty() => {
                "the files were read again and are unchanged".to_owned()
            }
            Self::Reloaded { changes, applied, needs_restart } => {
                let definitions = match changes {
                    0 => "no definitions have changed".to_owned(),
                    _ => format!("definitions have changed (journal records: {changes})"),
                };
                let mut text = format!("the files were read again: {definitions}");
                if !applied.is_empty() {
                    text.push_str(&format!("; applied: {}", applied.join("; ")));
                }
                if !needs_restart.is_empty() {
                    text.push_str(&format!("; needs a restart of the OMS: {}", needs_restart.join("; ")));
                }
                text
            }
            Self::Certificate(why) => format!("{why}; the previous certificate stays in use"),
            Self::Warning(why) => why.clone(),
            Self::Notice(notice) => notice.to_string(),
        }
    }
}

/// Writes one line, with texts of clients and venues escaped; mistakes in files have a line each.
impl fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.sentence();
        f.write_str(&match self {
            Self::UsersNotReloaded(_) | Self::NotReloaded(_) => escaped_lines(&sentence),
            _ => escaped(&sentence),
        })
    }
}
