//! Admin commands: from the operator's lane, or, with an acknowledgement, from an admin's session.

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::{OrdStatus, Price, Quantity};
use tickpath_oms_core::{
    AdminCommandError, CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, Input, KILL_DISK, KillSwitch,
    OrderView, QueryStatus, Reconcile, RecordKind, Resolve,
};
use zerocopy::FromBytes;

use super::Sequencer;
use crate::OmsError;
use crate::command_error::CommandError;
use crate::notice::Notice;

/// Acknowledgement of an admin command that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedCommand {
    /// Record of the command in the journal.
    pub record: u64,
    /// Orders that the command concerned, as they stand after it.
    pub orders: Vec<OrderView>,
}

impl<C: Clock> Sequencer<C> {
    /// Takes an admin command whose sender waits, in the form of its journal record, and returns the acknowledgement. A
    /// command that the core would refuse is not journaled.
    pub fn accept_command(
        &mut self,
        received: u64,
        kind: u8,
        record: &[u8],
    ) -> Result<Result<AppliedCommand, CommandError>, OmsError> {
        let Some(mut command) = decode_command(kind, record, 0) else {
            self.invalid_messages += 1;
            return Ok(Err(AdminCommandError::NotACommand.into()));
        };
        if let Input::EnterPosition(enter) = &mut command
            && enter.price == Price::ZERO
        {
            (enter.price, _) = self.reference(enter.symbol, received);
        }
        if let Err(why) = self.check_command(&command) {
            return Ok(Err(why));
        }
        let mut orders = self.core.affected_orders(&command);
        orders.sort_unstable_by_key(|order| order.id);
        let record = match self.apply_command_or_day_end(received, &command)? {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Err(AdminCommandError::NotACommand.into())),
            Err(why) => return Ok(Err(why)),
        };
        self.note_question(&command, record);
        if let Input::EnterOrder(entered) = &command {
            orders = self.core.order_of(entered.session, entered.client_order_id).into_iter().collect();
        }
        for order in &mut orders {
            match self.core.order(order.id) {
                Some(now) => *order = now,
                // The end of the day drops at once an order that never left.
                None => (order.status, order.leaves) = (OrdStatus::Expired, Quantity(0)),
            }
        }
        Ok(Ok(AppliedCommand { record, orders }))
    }

    /// Checks a command before it is journaled, in the core and against the configured venues and the ended days.
    fn check_command(&self, command: &Input) -> Result<(), CommandError> {
        self.core.validate(command)?;
        match command {
            Input::Reconcile(reconcile) if !self.release.venues.has(reconcile.venue) => {
                Err(AdminCommandError::CannotReconcile(reconcile.venue.0).into())
            }
            Input::DayEnd(end) => self.day.check(end, self.utc_ns()),
            _ => Ok(()),
        }
    }

    /// Takes an admin command from the operator's lane.
    pub fn accept_control_frame(&mut self, received: u64, message: &LogMessage<'_>) -> Result<(), OmsError> {
        let lane_sequence = (message.sequence as u32).wrapping_add(1);
        let Some(command) = decode_command(message.kind, message.payload, lane_sequence) else {
            self.invalid_messages += 1;
            return Ok(());
        };
        if let Err(why) = self.apply_command_or_day_end(received, &command)? {
            self.notices.add(Notice::NotArchived(why.to_string()));
        }
        Ok(())
    }

    /// Takes an admin command and returns its record; `None` if the core has ignored it. The end of a day also ends the
    /// journal's log, and is refused if the disk lacks room for that.
    fn apply_command_or_day_end(
        &mut self,
        received: u64,
        command: &Input,
    ) -> Result<Result<Option<u64>, CommandError>, OmsError> {
        let Input::DayEnd(end) = command else { return self.apply_command(received, command).map(Ok) };
        let ballast = match (!self.has_disk_failed()).then(|| self.reserve_for_roll()).transpose() {
            Ok(ballast) => ballast,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(ballast) = &ballast {
            ballast.free_reports();
        }
        self.mark_unconfirmed_in_doubt()?;
        let record = self.apply_command(received, command)?;
        self.day.note_end(end.day);
        self.archive_day(ballast)?;
        Ok(Ok(record))
    }

    fn apply_command(&mut self, received: u64, command: &Input) -> Result<Option<u64>, OmsError> {
        let ignored = self.core.counts().ignored;
        let record = self.apply(received, command)?;
        // Read before the outputs leave: an input that follows from them may be ignored.
        let is_applied = self.core.counts().ignored == ignored;
        self.release_outputs(record, received)?;
        Ok(is_applied.then_some(record))
    }
}

/// Decodes an admin command. Its number in the operator's lane counts from one; zero for a command from no lane.
fn decode_command(kind: u8, bytes: &[u8], lane_sequence: u32) -> Option<Input> {
    macro_rules! input {
        ($input:ident, $record:ident) => {
            Input::$input($record { lane_sequence, ..$record::read_from_bytes(bytes).ok()? })
        };
    }
    Some(match RecordKind::from_code(kind)? {
        RecordKind::Kill => match input!(Kill, KillSwitch) {
            // Only the OMS itself sets the disk's kill switch.
            Input::Kill(kill) if kill.scope == KILL_DISK => return None,
            kill => kill,
        },
        RecordKind::CancelScope => input!(CancelScope, CancelScope),
        RecordKind::Resolve => input!(Resolve, Resolve),
        RecordKind::EnterOrder => input!(EnterOrder, EnterOrder),
        RecordKind::EnterFill => input!(EnterFill, EnterFill),
        RecordKind::EnterPosition => input!(EnterPosition, EnterPosition),
        RecordKind::Reconcile => input!(Reconcile, Reconcile),
        RecordKind::QueryStatus => input!(QueryStatus, QueryStatus),
        RecordKind::DayEnd => input!(DayEnd, DayEnd),
        _ => return None,
    })
}
