//! Events of a running venue, one sentence each.

use std::fmt;
use std::io;

use tickpath_log::LogPath;
use tickpath_venue_native::{LineAddress, Printable};

use crate::InjectedFaults;

/// Event for the person who runs the venue.
#[derive(Debug)]
pub enum VenueEvent {
    /// No OMS has made the venue's lanes.
    AwaitingLanes {
        /// Name of the awaited OMS.
        oms: String,
        /// Place of the request lane.
        lane: LogPath,
    },
    /// The lanes exist, and the OMS of this name is not running.
    AwaitingOms(String),
    /// The venue listens for socket lines at this address.
    Listening(LineAddress),
    /// A socket line with this name in its logon has logged on, and its requests are taken.
    LineConnected(String),
    /// A socket line has disconnected; its reports wait for it.
    LineDisconnected {
        /// Name in the line's logon.
        line: String,
        /// Reason.
        why: String,
    },
    /// A connection was refused for its password or its logon.
    LineRefused {
        /// Name in the logon; empty before a logon.
        line: String,
        /// Reason.
        why: String,
        /// Number of other connections refused since the last such event.
        others: u64,
    },
    /// A connection waits and cannot be accepted; reported once for as long as any waits.
    AcceptFailed(io::Error),
    /// This max number of connections is reached; reported once for as long as it is.
    ConnectionLimit(usize),
    /// Connections are accepted again.
    AcceptResumed,
    /// The venue has joined the lanes of an OMS and takes its requests.
    Serving {
        /// Name of the OMS.
        oms: String,
        /// Number of orders that rest in the books.
        resting: usize,
    },
    /// The OMS has exited; the venue waits for it.
    OmsExited {
        /// Name of the OMS.
        oms: String,
        /// Number of orders that rest in the books.
        resting: usize,
    },
    /// The lanes of the OMS of this name were replaced or removed: the venue joins the new ones as soon as they exist.
    LanesReplaced(String),
    /// The tick topic was created anew by its feed.
    TicksReplaced(LogPath),
    /// Messages were no valid requests, or were overwritten before they were read.
    MessagesLost {
        /// Number of messages that were no valid requests.
        refused: u64,
        /// Number of overwritten messages.
        missed: u64,
    },
    /// The injected faults have changed to these.
    Faults(InjectedFaults),
    /// The venue has ended its day.
    DayEnded {
        /// Number of day orders that expired.
        expired: usize,
        /// Number of orders that rest in the books.
        resting: usize,
    },
    /// A reload of the file failed, with these mistakes.
    ReloadFailed(String),
    /// The venue has stopped.
    Stopped {
        /// Number of orders that rest in the books; none if the venue never had a line.
        resting: Option<usize>,
    },
}

impl fmt::Display for VenueEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwaitingLanes { oms, lane } => {
                write!(f, "waiting for the OMS '{oms}' to make its lanes ({lane}); start it, or check its name")
            }
            Self::AwaitingOms(oms) => write!(f, "the lanes of the OMS '{oms}' exist; waiting for it to start"),
            Self::Listening(address) => write!(f, "listening on {address}"),
            // The name is the peer's text, and the reason may hold more of it: both are made printable.
            Self::LineConnected(line) => write!(f, "line '{}' has connected", Printable(line)),
            Self::LineDisconnected { line, why } => {
                write!(
                    f,
                    "line '{}' has disconnected ({}); its reports are kept for it",
                    Printable(line),
                    Printable(why)
                )
            }
            Self::LineRefused { line, why, others } => {
                write!(f, "line '{}' was refused ({})", Printable(line), Printable(why))?;
                if *others > 0 { write!(f, "; so were {others} others before") } else { Ok(()) }
            }
            Self::AcceptFailed(reason) => write!(
                f,
                "a connection waits and cannot be accepted ({reason}): raise the limit of open files (ulimit -n, \
                 LimitNOFILE of a service), or close other connections"
            ),
            Self::ConnectionLimit(max) => {
                write!(
                    f,
                    "the limit of {max} connections is reached: further ones wait; close some, or raise most_lines"
                )
            }
            Self::AcceptResumed => f.write_str("connections are accepted again"),
            Self::Serving { oms, resting } => write!(f, "serving the OMS '{oms}'; {}", orders(*resting)),
            Self::OmsExited { oms, resting } => {
                write!(f, "the OMS '{oms}' has exited; {}; waiting for it", orders(*resting))
            }
            Self::LanesReplaced(oms) => write!(f, "the lanes of the OMS '{oms}' were removed or replaced"),
            Self::TicksReplaced(topic) => write!(f, "{topic} was recreated; its ticks are used from now on"),
            Self::MessagesLost { refused, missed } => write!(
                f,
                "so far {refused} messages of the OMS were no requests, and {missed} were overwritten before a read"
            ),
            Self::Faults(faults) => write!(f, "{faults}"),
            Self::DayEnded { expired, resting } => {
                let has = if *expired == 1 { "order has" } else { "orders have" };
                write!(f, "the day has ended: {expired} {has} expired, {}", orders(*resting))
            }
            Self::ReloadFailed(mistakes) => write!(f, "the file was not applied: {mistakes}"),
            Self::Stopped { resting: None } => f.write_str("stopped"),
            Self::Stopped { resting: Some(resting) } => write!(f, "stopped; {}", orders(*resting)),
        }
    }
}

fn orders(resting: usize) -> String {
    match resting {
        0 => "no order rests".to_owned(),
        1 => "1 order rests".to_owned(),
        count => format!("{count} orders rest"),
    }
}
