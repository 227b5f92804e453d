//! Sequence gaps: an order that misses a venue sequence for too long is put in doubt.

use crate::Outputs;
use crate::core::{At, Core};
use crate::order::{HAS_GAP, SequenceGap};
use crate::state::OrderEvent;

impl Core {
    /// Returns whether a [`GapTimer`](crate::GapTimer) at this moment would put an order in doubt.
    #[inline]
    pub fn needs_gap_timer(&self, stamp: u64) -> bool {
        self.has_gaps() && self.gaps.iter().any(|gap| self.is_overdue(gap, stamp))
    }

    /// Returns whether any order misses a venue sequence.
    #[inline]
    pub fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Marks an order that misses a venue sequence and starts its gap timer.
    pub(crate) fn note_gap(&mut self, slot: u32, stamp: u64) {
        let order = self.orders.get_mut(slot);
        if order.marks & HAS_GAP == 0 {
            order.marks |= HAS_GAP;
            self.gaps.push(SequenceGap { slot, reserved: 0, since: stamp });
        }
    }

    /// Puts orders in doubt that have missed a venue sequence for too long.
    pub(crate) fn check_gaps(&mut self, at: At, out: &mut Outputs) -> bool {
        for gap in std::mem::take(&mut self.gaps) {
            let order = self.orders.get(gap.slot);
            let is_over = order.is_contiguous() || !order.phase.is_live();
            if !is_over && !self.is_overdue(&gap, at.stamp) {
                self.gaps.push(gap);
                continue;
            }
            self.orders.get_mut(gap.slot).marks &= !HAS_GAP;
            if !is_over {
                self.put_in_doubt(at, gap.slot, OrderEvent::ReportsLost, 0, out);
            }
        }
        true
    }

    fn is_overdue(&self, gap: &SequenceGap, stamp: u64) -> bool {
        let order = self.orders.get(gap.slot);
        let limit_ns = self.venues.find(order.venue).map_or(0, |venue| venue.rules.max_gap_ns);
        self.clock.ns(stamp.saturating_sub(gap.since)) >= limit_ns
    }
}
