//! Silent venues: requests or reports are lost, and the OMS is notified of no gap.

use tickpath_market::{ExecType, ExecutionReport};
use tickpath_oms_runtime::VenueExpectations;

use crate::plan::Dice;
use crate::trading_config::VENUES;

/// Time within which a venue answers.
const WITHIN_NS: u64 = 2_000_000_000;

/// Losses of a venue while it is silent.
pub struct Silence {
    /// One request in this many is lost; zero for none.
    requests: u64,
    /// One report in this many is lost; zero for none.
    reports: u64,
    dice: Dice,
}

/// Returns the answers that the OMS of a seed expects of its venues. In every second seed there are none, and no venue
/// is silent.
pub fn watch(seed: u64) -> Vec<VenueExpectations> {
    if Dice::new(seed ^ 0x7369_6c65_6e74).one_in(2) {
        return Vec::new();
    }
    let watch = |venue| VenueExpectations { venue, answer_within_ns: WITHIN_NS, expires_day_orders: false };
    VENUES.into_iter().map(watch).collect()
}

impl Silence {
    /// Draws a silence: of one direction or of both, of all messages or of some.
    pub fn draw(dice: &mut Dice) -> Self {
        let (requests, reports) = [(1, 0), (0, 1), (1, 1), (3, 3), (0, 2)][dice.place(5)];
        Self { requests, reports, dice: Dice::new(dice.draw()) }
    }

    /// Returns whether the venue loses the next request.
    pub fn loses_request(&mut self) -> bool {
        self.requests > 0 && self.dice.one_in(self.requests)
    }

    /// Returns whether this report is lost. A changed fill never is: no outstanding answer could reveal the loss.
    pub fn loses_report(&mut self, report: &ExecutionReport) -> bool {
        let exec_type = ExecType::from_code(report.exec_type);
        let is_changed_fill = matches!(exec_type, Some(ExecType::TradeCancel | ExecType::TradeCorrect));
        self.reports > 0 && !is_changed_fill && self.dice.one_in(self.reports)
    }
}
