//! Reports about a topic beside its messages: outages, reconnects, duplicates and late messages.

use tickpath_bus::Subscriber;

use crate::{RelayContext, RelayMeter};

/// Subscriber state that was reported so far.
#[derive(Debug, Default)]
pub(crate) struct SubscriberWatch {
    is_out: bool,
    duplicates: u64,
    out_of_order: u64,
}

impl SubscriberWatch {
    /// Reports changes of the subscriber since the last call. Must be called while no message is available, and at the
    /// end.
    pub fn report_changes(
        &mut self,
        subscriber: &dyn Subscriber,
        topic: &str,
        meter: &RelayMeter,
        context: &RelayContext<'_>,
    ) {
        match (subscriber.outage(), self.is_out) {
            (Some(why), false) => {
                self.is_out = true;
                (context.report)(&format!("'{topic}': nothing comes now: {why}"));
            }
            (None, true) => {
                self.is_out = false;
                (context.report)(&format!("'{topic}': the connection is made again"));
            }
            _ => {}
        }
        let (duplicates, late) = (subscriber.duplicates().unwrap_or(0), subscriber.out_of_order().unwrap_or(0));
        let (again, behind) = (duplicates - self.duplicates, late - self.out_of_order);
        if again + behind > 0 {
            (self.duplicates, self.out_of_order) = (duplicates, late);
            meter.update(|totals| {
                totals.duplicates += again;
                totals.out_of_order += behind;
            });
        }
    }
}
