//! Outputs of the core, in a buffer that is reused for every input.

use tickpath_market::{ExecutionReport, ManualOrderIndicator, OrderDenied, OrderExtension, Request, VenueId};

/// Capacity that fits the outputs of most inputs; inputs that concern many orders have more.
const TYPICAL_OUTPUTS: usize = 4;

/// One output, identified by the input's journal sequence and its index in [`Outputs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Request to a venue. Its `client_order_id` is the core's id of the request.
    Venue {
        /// Venue of the order, fixed at its admission.
        venue: VenueId,
        /// Session that owns the order.
        session: u16,
        /// The request.
        request: Request,
    },
    /// Report to a client.
    Report {
        /// The client's session.
        session: u16,
        /// The report, with the client's ids.
        report: ExecutionReport,
    },
    /// Denial of a client's request.
    Denied {
        /// The client's session.
        session: u16,
        /// The denial, with its reason.
        denied: OrderDenied,
    },
    /// The text id and the end time of an order, before the order's first report and before each answer to a status
    /// request.
    Extension {
        /// The client's session.
        session: u16,
        /// The message, with the client's id of the request that the next report answers.
        extension: OrderExtension,
    },
}

impl Output {
    /// Returns the session that the output belongs to.
    pub fn session(&self) -> u16 {
        match self {
            Self::Venue { session, .. }
            | Self::Report { session, .. }
            | Self::Denied { session, .. }
            | Self::Extension { session, .. } => *session,
        }
    }
}

/// The outputs of one input: for each order the venue's message first, then the client's.
#[derive(Debug, Clone)]
pub struct Outputs {
    list: Vec<Output>,
}

impl Outputs {
    /// Creates an empty buffer with room for the outputs of most inputs.
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(TYPICAL_OUTPUTS) }
    }

    /// Removes all outputs.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the outputs in the order of their index.
    pub fn iter(&self) -> std::slice::Iter<'_, Output> {
        self.list.iter()
    }

    /// Returns the outputs in the order of their index.
    pub fn as_slice(&self) -> &[Output] {
        &self.list
    }

    /// Returns the number of outputs.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Marks all reports as entered by hand.
    pub(crate) fn mark_manual(&mut self) {
        for output in &mut self.list {
            if let Output::Report { report, .. } = output {
                report.manual = ManualOrderIndicator::Manual.code();
            }
        }
    }

    /// Inserts an output before the last one.
    pub(crate) fn insert_before_last(&mut self, output: Output) {
        self.list.insert(self.list.len().saturating_sub(1), output);
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
