//! Reports about a topic beside its messages: outages, reconnects, duplicates and late messages.

use tickpath_bus::Subscriber;

use crate::{Meter, Outside};

/// Subscriber state that was reported so far.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    is_out: bool,
    duplicates: u64,
    late: u64,
}

impl Watched {
    /// Reports changes of the subscriber since the last call. Must be called while no message is available, and at the
    /// end.
    pub fn look(&mut self, subscriber: &dyn Subscriber, topic: &str, meter: &Meter, outside: &Outside<'_>) {
        match (subscriber.outage(), self.is_out) {
            (Some(why), false) => {
                self.is_out = true;
                (outside.tell)(&format!("'{topic}': nothing comes now: {why}"));
            }
            (None, true) => {
                self.is_out = false;
                (outside.tell)(&format!("'{topic}': the connection is made again"));
            }
            _ => {}
        }
        let (duplicates, late) = (subscriber.duplicates().unwrap_or(0), subscriber.late().unwrap_or(0));
        let (again, behind) = (duplicates - self.duplicates, late - self.late);
        if again + behind > 0 {
            (self.duplicates, self.late) = (duplicates, late);
            meter.update(|totals| {
                totals.duplicates += again;
                totals.late += behind;
            });
        }
    }
}
