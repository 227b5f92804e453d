//! Reports about a topic beside its messages: outages, reconnects, duplicates and late messages.

use tickpath_bus::Subscriber;

use crate::{RelayContext, RelayMeter};

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
        let outage = subscriber.outage();
        let was_out = std::mem::replace(&mut self.is_out, outage.is_some());
        match outage {
            Some(why) if !was_out => (context.report)(&format!("'{topic}': no messages arrive at present: {why}")),
            None if was_out => (context.report)(&format!("'{topic}': reconnected")),
            _ => {}
        }
        let (duplicates, late) = (subscriber.duplicates().unwrap_or(0), subscriber.out_of_order().unwrap_or(0));
        if (duplicates, late) != (self.duplicates, self.out_of_order) {
            meter.update(|totals| {
                totals.duplicates += duplicates - self.duplicates;
                totals.out_of_order += late - self.out_of_order;
            });
            (self.duplicates, self.out_of_order) = (duplicates, late);
        }
    }
}
