//! A list whose messages are gone when they were handed over: `LPUSH`, `RPOP`, and `BRPOP` for who sleeps.

use std::time::Duration;

use tickpath_bus_api::Pulled;

use crate::link::Link;
use crate::puller::{Queue, hand_over};
use crate::resp;
use crate::server::{ServerError, TIMEOUT};

/// One puller's view.
pub(crate) struct ListAtMostOnce {
    queue: String,
    /// What came while it slept.
    kept: Option<Vec<u8>>,
}

impl ListAtMostOnce {
    /// Of the queue of this name.
    pub fn new(queue: &str) -> Self {
        Self { queue: queue.to_owned(), kept: None }
    }
}

impl Queue for ListAtMostOnce {
    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError> {
        // Refused if something else has the name.
        link.ask(&["LLEN", &self.queue], |items| items.integer()).map(|_| ())
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            hand_over(&message, false, handler);
            return Ok(());
        }
        link.ask(&["RPOP", &self.queue, &limit.to_string()], |items| {
            for _ in 0..items.array()? {
                hand_over(items.bulk()?, false, handler);
            }
            Ok(())
        })
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        let mut command = Vec::new();
        resp::command(&mut command, &["BRPOP", &self.queue, &seconds(timeout)]);
        link.send(&command)?;
        self.kept = link.answer(timeout + TIMEOUT, |items| {
            if items.array()? == 0 {
                return Ok(None);
            }
            let _key = items.bulk()?;
            Ok(Some(items.bulk()?.to_vec()))
        })?;
        Ok(())
    }

    fn is_holding(&self) -> bool {
        false
    }

    fn acknowledge(&mut self, _link: &mut Link) -> Result<(), ServerError> {
        Ok(())
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Some(message) = self.kept.take() else { return Ok(()) };
        let mut command = Vec::new();
        resp::head(&mut command, &["RPUSH", &self.queue]);
        resp::bulk(&mut command, &[&message]);
        link.send(&command)?;
        link.answer(TIMEOUT, |items| items.integer()).map(|_| ())
    }
}

/// A time as commands on lists want it, to the millisecond.
pub(crate) fn seconds(timeout: Duration) -> String {
    format!("{:.3}", timeout.as_secs_f64())
}
