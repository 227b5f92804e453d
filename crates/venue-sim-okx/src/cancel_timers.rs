//! Dead man's switches: orders of an account are canceled unless its client reports in time.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::codes::{OkxRefusal, PARAMETER};
use crate::fields::{row, text_field};

const NS_PER_S: u64 = 1_000_000_000;

/// Switches that are set, with the times at which they cancel.
#[derive(Debug, Default)]
pub(crate) struct CancelTimers {
    /// By account and tag; an empty tag stands for all orders.
    due_ns: BTreeMap<(usize, String), u64>,
}

impl CancelTimers {
    /// Sets a switch, or removes it with a time of zero. Returns the row of the answer.
    pub(crate) fn set(&mut self, account: usize, request: &Value, now_ns: u64) -> Result<Value, OkxRefusal> {
        let wrong = || PARAMETER.about("timeOut");
        let seconds = text_field(request, "timeOut").ok_or_else(wrong)?.parse::<u64>().map_err(|_| wrong())?;
        let tag = text_field(request, "tag").unwrap_or_default();
        let due_ns = match seconds {
            0 => None,
            10..=120 => Some(now_ns + seconds * NS_PER_S),
            _ => return Err(wrong()),
        };
        let key = (account, tag.clone());
        match due_ns {
            Some(due_ns) => self.due_ns.insert(key, due_ns),
            None => self.due_ns.remove(&key),
        };
        let seconds_text = |ns: u64| (ns / NS_PER_S).to_string();
        let trigger = due_ns.map_or_else(|| "0".to_owned(), seconds_text);
        Ok(Value::Object(row([("triggerTime", &trigger), ("tag", &tag), ("ts", &seconds_text(now_ns))])))
    }

    /// Removes the switches that are due, and returns their accounts and tags.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<(usize, String)> {
        let is_due = |due_ns: &u64| *due_ns <= now_ns;
        let due: Vec<(usize, String)> =
            self.due_ns.iter().filter(|(_, due_ns)| is_due(due_ns)).map(|(key, _)| key.clone()).collect();
        self.due_ns.retain(|_, due_ns| !is_due(due_ns));
        due
    }
}
