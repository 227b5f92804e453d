//! The control port: questions, admin commands and configuration changes of a front end, and notices for it.

use tickpath_clock::Clock;

use super::Sequencer;
use crate::OmsError;

/// Control port: the core's side of a front end. The core's thread owns the port beside the sequencer, and serves it in
/// turns that have time for all checks.
pub trait ControlPort<C: Clock>: Send {
    /// Answers questions, applies commands and a changed trading configuration, and passes notices on. Returns the
    /// amount of work done.
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError>;
}
