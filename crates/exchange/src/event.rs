//! What happens to a venue that runs, as a sentence each.

use std::fmt;
use std::io;

use tickpath_log::Place;
use tickpath_venue_tcp::{Address, Printable};

use crate::Faults;

/// Something that whoever runs the venue should know.
#[derive(Debug)]
pub enum Event {
    /// No OMS has made the venue's lanes.
    NoLanes {
        /// The OMS.
        oms: String,
        /// The first of them.
        lane: Place,
    },
    /// The lanes are there, and the OMS is not.
    NoOms {
        /// The OMS.
        oms: String,
    },
    /// Lines come in here.
    Listens(Address),
    /// A line has come by a socket, and its requests are taken.
    LineCame {
        /// What it calls itself.
        line: String,
    },
    /// It is gone; its reports wait for it.
    LineGone {
        /// What it calls itself.
        line: String,
        /// Why.
        why: String,
    },
    /// A connection was refused: its password or its logon.
    LineRefused {
        /// What it calls itself; empty if it has not said.
        line: String,
        /// Why.
        why: String,
        /// So many others were refused since the last such event.
        others: u64,
    },
    /// A connection waits, and cannot be taken; told once for as long as any waits.
    NoRoom {
        /// What the system said.
        reason: io::Error,
    },
    /// As many connections are there as may be; told once for as long as that is so.
    Full {
        /// How many.
        most: usize,
    },
    /// Connections are taken again.
    HasRoom,
    /// Requests are taken.
    Serves {
        /// Whose.
        oms: String,
        /// How many orders rest in the books.
        rest: usize,
    },
    /// The OMS has gone; the venue waits for it.
    OmsGone {
        /// Who.
        oms: String,
        /// How many orders rest in the books.
        rest: usize,
    },
    /// The OMS has other lanes, or none: they are joined when they are there.
    OtherLanes {
        /// Whose.
        oms: String,
    },
    /// Somebody has made the tick topic anew.
    OtherTicks(Place),
    /// Messages on the lane were no requests, or were gone before they were read.
    Lost {
        /// So many were no requests.
        refused: u64,
        /// So many were gone.
        missed: u64,
    },
    /// From here on these things go wrong on purpose.
    Faults(Faults),
    /// The day has ended here.
    DayEnded {
        /// Day orders that expired.
        expired: usize,
        /// Orders that rest in the books.
        rest: usize,
    },
    /// The file was read again, and has mistakes.
    NotTaken(String),
    /// The venue has stopped.
    Stopped {
        /// How many orders rest in the books; none if it never had lanes.
        rest: Option<usize>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLanes { oms, lane } => {
                write!(f, "waiting for the OMS '{oms}' to make its lanes ({lane}); start it, or check its name")
            }
            Self::NoOms { oms } => write!(f, "the lanes of the OMS '{oms}' are there; waiting for it"),
            Self::Listens(address) => write!(f, "listening on {address}"),
            // A line's name is the peer's text, and so may be a part of why it is gone.
            Self::LineCame { line } => write!(f, "line '{}' has come", Printable(line)),
            Self::LineGone { line, why } => {
                write!(f, "line '{}' is gone ({}); its reports wait for it", Printable(line), Printable(why))
            }
            Self::LineRefused { line, why, others } => {
                write!(f, "line '{}' was refused ({})", Printable(line), Printable(why))?;
                if *others > 0 { write!(f, "; so were {others} others before") } else { Ok(()) }
            }
            Self::NoRoom { reason } => write!(
                f,
                "a connection waits and cannot be taken ({reason}): raise the limit of open files (ulimit -n, LimitNOFILE \
                 of a service), or close other connections"
            ),
            Self::Full { most } => write!(
                f,
                "{most} connections are there, as many as may be: further ones wait; end some, or raise most_lines"
            ),
            Self::HasRoom => f.write_str("further connections are taken again"),
            Self::Serves { oms, rest } => write!(f, "serving the OMS '{oms}'; {}", orders(*rest)),
            Self::OmsGone { oms, rest } => write!(f, "the OMS '{oms}' has gone; {}; waiting for it", orders(*rest)),
            Self::OtherLanes { oms } => write!(f, "the lanes of the OMS '{oms}' are gone, or others than before"),
            Self::OtherTicks(topic) => write!(f, "{topic} was made anew; going on with its ticks"),
            Self::Lost { refused, missed } => write!(
                f,
                "so far {refused} messages of the OMS were no requests, and {missed} were gone before they were read"
            ),
            Self::Faults(faults) => write!(f, "{faults}"),
            Self::DayEnded { expired, rest } => {
                let expired_orders = match expired {
                    1 => "1 order has expired".to_owned(),
                    count => format!("{count} orders have expired"),
                };
                write!(f, "the day has ended: {expired_orders}, {}", orders(*rest))
            }
            Self::NotTaken(mistakes) => write!(f, "the file was not taken: {mistakes}"),
            Self::Stopped { rest: None } => f.write_str("stopped"),
            Self::Stopped { rest: Some(rest) } => write!(f, "stopped; {}", orders(*rest)),
        }
    }
}

fn orders(rest: usize) -> String {
    match rest {
        0 => "no order rests".to_owned(),
        1 => "1 order rests".to_owned(),
        rest => format!("{rest} orders rest"),
    }
}
