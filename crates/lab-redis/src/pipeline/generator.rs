//! The generator's process: it sends batches of commands and receives the replies.

use tickpath_lab_harness::{LabError, Parent, ProcessRole};

use tickpath_clock::{HostClock, pin_to_cpu};

use super::command::RedisCommand;
use super::load::{CommandBlock, GeneratorConnection, LoadProgress, PipelineRole};
use super::usage::ResourceUsage;
use super::{concurrent, sequential};
use tickpath_lab_harness::samples::save;

impl ProcessRole for PipelineRole {
    const NAME: &'static str = "generator";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        pin_to_cpu(self.cpu)?;
        let mut links =
            (0..self.connections).map(|_| GeneratorConnection::open(self)).collect::<Result<Vec<_>, _>>()?;
        let block = CommandBlock::new(self);
        let mut tally = LoadProgress::new(self, clock);
        parent.ready();
        if parent.receive().is_none() {
            return Ok(());
        }
        let before = ResourceUsage::own();
        tally.start();
        let ended = match self.command {
            RedisCommand::GetSet => sequential::get_set(self, &mut links[0], &mut tally),
            _ if self.writes_first() => sequential::batches(&block, &mut links[0], &mut tally),
            _ => concurrent::run(self, &block, &mut links, &mut tally),
        };
        let used = ResourceUsage { calls: Some(tally.calls), ..ResourceUsage::own().since(before) };
        save(&self.out, &tally.rows)?;
        let failed = ended.err().map(|e| self.address.error_sentence(&e));
        parent.result(&tally.report(&links, used, failed));
        // The connections stay as they are until the parent has inspected the server.
        let _gone = parent.receive();
        Ok(())
    }
}
