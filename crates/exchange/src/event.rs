//! What happens to a venue that runs, as a sentence each.

use std::fmt;

use tickpath_log::Place;
use tickpath_venue_tcp::Address;

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
            Self::LineCame { line } => write!(f, "line '{line}' has come"),
            Self::LineGone { line, why } => write!(f, "line '{line}' is gone ({why}); its reports wait for it"),
            Self::Serves { oms, rest } => write!(f, "serving the OMS '{oms}'; {}", orders(*rest)),
            Self::OmsGone { oms, rest } => write!(f, "the OMS '{oms}' has gone; {}; waiting for it", orders(*rest)),
            Self::OtherLanes { oms } => write!(f, "the lanes of the OMS '{oms}' are gone, or others than before"),
            Self::OtherTicks(topic) => write!(f, "{topic} was made anew; going on with its ticks"),
            Self::Lost { refused, missed } => write!(
                f,
                "so far {refused} messages of the OMS were no requests, and {missed} were gone before they were read"
            ),
            Self::Faults(faults) => write!(f, "{faults}"),
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
