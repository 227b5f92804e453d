//! What the core says, in a buffer that is used again for every input.

use tickpath_market::{ExecutionReport, ManualOrderIndicator, OrderDenied, Request, VenueId};

/// Outputs of most inputs, at most; what concerns many orders says more.
const MOST: usize = 4;

/// One output. Its identity is the input's journal sequence and its index in [`Outputs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A request to a venue. Its `client_order_id` is the core's id of the request.
    Venue {
        /// Where it goes: the order's venue from its admission on.
        venue: VenueId,
        /// The session that its order belongs to.
        session: u16,
        /// The request.
        request: Request,
    },
    /// A report to a client.
    Report {
        /// The client's session.
        session: u16,
        /// The report, with the client's ids.
        report: ExecutionReport,
    },
    /// A request that was refused, to its client.
    Denied {
        /// The client's session.
        session: u16,
        /// Why.
        denied: OrderDenied,
    },
}

impl Output {
    /// The session that it belongs to.
    pub fn session(&self) -> u16 {
        match self {
            Self::Venue { session, .. } | Self::Report { session, .. } | Self::Denied { session, .. } => *session,
        }
    }
}

/// The outputs of one input: of each order the venue's message first, then the client's.
#[derive(Debug, Clone)]
pub struct Outputs {
    list: Vec<Output>,
}

impl Outputs {
    /// An empty buffer with room for the outputs of most inputs.
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(MOST) }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// The outputs in the order of their index.
    pub fn iter(&self) -> std::slice::Iter<'_, Output> {
        self.list.iter()
    }

    /// The outputs in the order of their index.
    pub fn as_slice(&self) -> &[Output] {
        &self.list
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What is told by these was entered by hand.
    pub(crate) fn mark_manual(&mut self) {
        for output in &mut self.list {
            if let Output::Report { report, .. } = output {
                report.manual = ManualOrderIndicator::Manual.code();
            }
        }
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.list.push(output);
    }
}

impl Default for Outputs {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = &'a Output;
    type IntoIter = std::slice::Iter<'a, Output>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
