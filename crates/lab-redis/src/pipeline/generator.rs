//! The generator's process: it sends batches of commands and receives the replies.

use tickpath_lab_harness::Role;

use tickpath_clock::{HostClock, pin_to_cpu};

use super::command::Command;
use super::load::{Block, Link, PipelineRole, Tally};
use super::usage::Usage;
use super::{in_turn, side_by_side};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::Parent;
use tickpath_lab_harness::samples::save;

impl Role for PipelineRole {
    const NAME: &'static str = "generator";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        pin_to_cpu(self.cpu)?;
        let mut links = (0..self.connections).map(|_| Link::open(self)).collect::<Result<Vec<_>, _>>()?;
        let block = Block::new(self);
        let mut tally = Tally::new(self, clock);
        parent.ready();
        if parent.hear().is_none() {
            return Ok(());
        }
        let before = Usage::own();
        tally.start();
        let ended = match self.command {
            Command::GetSet => in_turn::get_set(self, &mut links[0], &mut tally),
            _ if self.writes_first() => in_turn::batches(&block, &mut links[0], &mut tally),
            _ => side_by_side::run(self, &block, &mut links, &mut tally),
        };
        let used = Usage { calls: Some(tally.calls), ..Usage::own().since(before) };
        save(&self.out, &tally.rows)?;
        let failed = ended.err().map(|e| self.address.sentence(&e));
        parent.result(&tally.report(&links, used, failed));
        // The connections stay as they are until the parent has inspected the server.
        let _gone = parent.hear();
        Ok(())
    }
}
