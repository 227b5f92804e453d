//! Log lines of a running OMS on standard error: one per event, as text, logfmt or JSON, and never a flood.
//!
//! ```text
//!   2026-01-02T03:04:05Z oms desk: anna has logged in to session 3 from 127.0.0.1:40000
//!   ts=2026-01-02T03:04:05Z level=info oms=desk event=logged_in user=anna session=3 from=127.0.0.1:40000 msg="anna has …"
//!   {"ts":"2026-01-02T03:04:05Z","level":"info","oms":"desk","event":"logged_in","user":"anna","session":3,…}
//! ```

use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};
use tickpath_clock::{rfc3339, utc_ns};
use tickpath_oms_runtime::Notice;
use tickpath_oms_runtime::meter::NOTICES;
use tickpath_oms_text::order_id;

use super::event::ServerEvent;
use crate::settings::LogForm;

/// Max lines per second; the rest of that second is summed up in one line.
const MAX_LINES_PER_SECOND: u32 = 50;

/// Writer of log lines.
#[derive(Debug, Clone)]
pub struct LogWriter {
    /// Name of the OMS.
    pub oms: String,
    /// Form of the lines.
    pub form: LogForm,
    /// Function that receives each line.
    pub write: fn(&str),
}

struct LogLine {
    level: &'static str,
    name: String,
    fields: Vec<(&'static str, Value)>,
    message: String,
}

impl LogWriter {
    /// Writes a line for an event of the program itself.
    pub fn write_event(&self, name: &str, fields: &[(&'static str, Value)], message: &str) {
        let (name, fields, message) = (name.to_owned(), fields.to_vec(), message.to_owned());
        self.put(&LogLine { level: "info", name, fields, message });
    }

    /// Writes a line for each event until the last sender is gone.
    pub fn write(&self, events: &Receiver<ServerEvent>) {
        let (mut second, mut lines, mut more) = (0, 0, 0_u64);
        for event in events {
            let now = utc_ns() / 1_000_000_000;
            if now != second {
                self.write_suppressed(more);
                (second, lines, more) = (now, 0, 0);
            }
            // Notices and warnings for the operator pass whatever the rate.
            let is_notice = matches!(event, ServerEvent::Notice(_) | ServerEvent::Warning(_));
            if !is_notice && lines == MAX_LINES_PER_SECOND {
                more += 1;
                continue;
            }
            lines += u32::from(!is_notice);
            self.put(&LogLine::of(&event));
        }
        self.write_suppressed(more);
    }

    fn write_suppressed(&self, more: u64) {
        if more > 0 {
            let (name, fields) = ("flood".to_owned(), vec![("events", json!(more))]);
            let message = format!("and {more} more events in that second");
            self.put(&LogLine { level: "warning", name, fields, message });
        }
    }

    fn put(&self, event: &LogLine) {
        (self.write)(&self.line(&rfc3339(utc_ns()), event));
    }

    fn line(&self, time: &str, event: &LogLine) -> String {
        let LogLine { level, name, fields, message } = event;
        let head = [("ts", time), ("level", level), ("oms", &self.oms), ("event", name)];
        let head = head.into_iter().map(|(key, value)| (key, json!(value)));
        let mut all = head.chain(fields.iter().cloned()).chain([("msg", json!(message))]);
        match self.form {
            LogForm::Text => format!("{time} oms {}: {message}", self.oms),
            LogForm::Logfmt => {
                all.map(|(key, value)| format!("{key}={}", logfmt(&value))).collect::<Vec<_>>().join(" ")
            }
            LogForm::Json => {
                let mut object = Map::new();
                all.by_ref().for_each(|(key, value)| drop(object.insert(key.to_owned(), value)));
                Value::Object(object).to_string()
            }
        }
    }
}

/// Returns a value in logfmt: bare if it is one word, else quoted as in JSON.
fn logfmt(value: &Value) -> String {
    match value {
        Value::String(word)
            if !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic() && !"\"=\\".contains(c)) =>
        {
            word.clone()
        }
        other => other.to_string(),
    }
}

/// Returns the fields of a line, each with its name.
macro_rules! fields {
    ($($name:ident: $value:expr),+) => {
        vec![$((stringify!($name), json!($value))),+]
    };
}

impl LogLine {
    fn of(event: &ServerEvent) -> Self {
        let (level, name, fields) = match event {
            ServerEvent::Listening(place) => ("info", "listening", fields!(place: place)),
            ServerEvent::LoggedIn { user, session, from } => {
                ("info", "logged_in", fields!(user: user, session: session, from: from))
            }
            ServerEvent::Refused { from, why } => ("warning", "refused", fields!(from: from, why: why)),
            ServerEvent::Disconnected { user, session, why } => {
                ("info", "gone", fields!(user: user, session: session, why: why))
            }
            ServerEvent::UsersNotReloaded(why) => ("error", "users", fields!(why: why)),
            ServerEvent::NotReloaded(why) => ("error", "not_reloaded", fields!(why: why)),
            ServerEvent::Reloaded { changes, applied, needs_restart } => {
                let level = if needs_restart.is_empty() { "info" } else { "warning" };
                (level, "defined", fields!(changes: changes, taken: applied, needs_restart: needs_restart))
            }
            ServerEvent::Certificate(why) => ("error", "certificate", fields!(why: why)),
            ServerEvent::Warning(why) => ("warning", "warning", fields!(why: why)),
            ServerEvent::Notice(notice) => {
                let (level, fields) = notice_fields(notice);
                (level, NOTICES[notice.kind()], fields)
            }
        };
        Self { level, name: name.to_owned(), fields, message: event.to_string() }
    }
}

fn notice_fields(notice: &Notice) -> (&'static str, Vec<(&'static str, Value)>) {
    match notice {
        Notice::TailLost { sequence, bytes } => ("error", fields!(sequence: sequence, bytes: bytes)),
        Notice::LaneLost { lane, why } => ("warning", fields!(lane: lane.to_string(), why: why)),
        Notice::LanesRemoved { lanes, first } => ("error", fields!(lanes: lanes, lane: first.to_string())),
        Notice::Doubt { venue, unknown } => ("error", fields!(venue: venue.0, unknown: unknown)),
        Notice::Missed { lane, messages } => ("error", fields!(lane: lane.to_string(), messages: messages)),
        Notice::Quarantined { lane, why } => ("error", fields!(lane: lane.to_string(), why: why)),
        Notice::Returned { venue, requests } => ("warning", fields!(venue: venue.0, requests: requests)),
        Notice::VenueDown(venue) => ("warning", fields!(venue: venue.0)),
        Notice::VenueUp(venue) => ("info", fields!(venue: venue.0)),
        Notice::LineDown { line, why } => ("warning", fields!(line: line.to_string(), why: why)),
        Notice::LineUp(line) => ("info", fields!(line: line.to_string())),
        Notice::LineGivenUp { line, orders } => ("error", fields!(line: line.to_string(), orders: orders)),
        Notice::DiskFailed(why) => ("error", fields!(why: why)),
        Notice::VenueSilent { venue, order } => ("error", fields!(venue: venue.0, order: order_id(*order))),
        Notice::RefusedOpen { venue, order, reason } => {
            ("error", fields!(venue: venue.0, order: order_id(*order), reason: reason))
        }
        Notice::UnknownOrders { venue } => ("error", fields!(venue: venue.0)),
        Notice::DayEnded { day, is_late } => ("info", fields!(day: day, is_late: is_late)),
        Notice::DayNotEnded { day, why } => ("error", fields!(day: day, why: why)),
        Notice::NotArchived(why) | Notice::SnapshotFailed(why) | Notice::HistoryLost(why) => {
            ("warning", fields!(why: why))
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_market::VenueId;

    use super::*;

    fn lines(event: &ServerEvent) -> [String; 3] {
        [LogForm::Text, LogForm::Logfmt, LogForm::Json].map(|form| {
            LogWriter { oms: "desk".to_owned(), form, write: |_| {} }.line("2026-01-02T03:04:05Z", &LogLine::of(event))
        })
    }

    #[test]
    fn each_form_is_one_line_with_all_fields() {
        let why = "a \"word\"\nand = a line".to_owned();
        let [text, logfmt, json] =
            lines(&ServerEvent::Disconnected { user: "anna".to_owned(), session: 3, why: why.clone() });
        assert!(text.starts_with("2026-01-02T03:04:05Z oms desk: anna has left session 3: "), "{text}");
        assert!(
            logfmt.contains(r#"event=gone user=anna session=3 why="a \"word\"\nand = a line" msg="anna has"#),
            "{logfmt}"
        );
        assert_eq!((logfmt.lines().count(), json.lines().count()), (1, 1));
        let parsed: Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!((&parsed["event"], &parsed["session"], &parsed["why"]), (&json!("gone"), &json!(3), &json!(why)));
        let [_, logfmt, json] = lines(&ServerEvent::Notice(Notice::VenueDown(VenueId(7))));
        assert!(logfmt.contains("level=warning oms=desk event=venue_down venue=7 msg="), "{logfmt}");
        assert!(json.contains(r#""event":"venue_down""#), "{json}");
    }
}
