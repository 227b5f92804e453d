//! Log lines of a running OMS on standard error: one per event, as text, logfmt or JSON, and never a flood.
//!
//! ```text
//!   2026-01-02T03:04:05Z oms desk: anna has logged in to session 3 from 127.0.0.1:40000
//!   ts=2026-01-02T03:04:05Z level=info oms=desk event=logged_in user=anna session=3 from=127.0.0.1:40000 msg="anna has …"
//!   {"ts":"2026-01-02T03:04:05Z","level":"info","oms":"desk","event":"logged_in","user":"anna","session":3,…}
//! ```

use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};
use tickpath_clock::rfc3339;
use tickpath_clock::utc_ns;
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
    pub fn write_event(&self, name: &str, fields: &[(&'static str, Value)], said: &str) {
        self.put(&LogLine { level: "info", name: name.to_owned(), fields: fields.to_vec(), message: said.to_owned() });
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
            let said = format!("and {more} more events in that second");
            self.put(&LogLine {
                level: "warning",
                name: "flood".to_owned(),
                fields: vec![("events", json!(more))],
                message: said,
            });
        }
    }

    fn put(&self, event: &LogLine) {
        (self.write)(&self.line(&rfc3339(utc_ns()), event));
    }

    fn line(&self, at: &str, event: &LogLine) -> String {
        let LogLine { level, name, fields, message: said } = event;
        let head = [("ts", at), ("level", level), ("oms", &self.oms), ("event", name)];
        let head = head.into_iter().map(|(key, value)| (key, json!(value)));
        let mut all = head.chain(fields.iter().cloned()).chain([("msg", json!(said))]);
        match self.form {
            LogForm::Text => format!("{at} oms {}: {said}", self.oms),
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

impl LogLine {
    fn of(event: &ServerEvent) -> Self {
        let (level, name, fields) = match event {
            ServerEvent::Listening(place) => ("info", "listening", vec![("place", json!(place))]),
            ServerEvent::LoggedIn { user, session, from } => {
                let fields = vec![("user", json!(user)), ("session", json!(session)), ("from", json!(from))];
                ("info", "logged_in", fields)
            }
            ServerEvent::Refused { from, why } => {
                ("warning", "refused", vec![("from", json!(from)), ("why", json!(why))])
            }
            ServerEvent::Disconnected { user, session, why } => {
                ("info", "gone", vec![("user", json!(user)), ("session", json!(session)), ("why", json!(why))])
            }
            ServerEvent::UsersNotReloaded(why) => ("error", "users", vec![("why", json!(why))]),
            ServerEvent::NotReloaded(why) => ("error", "not_reloaded", vec![("why", json!(why))]),
            ServerEvent::Reloaded { changes, applied: taken, needs_restart: at_start } => {
                let level = if at_start.is_empty() { "info" } else { "warning" };
                let fields =
                    vec![("changes", json!(changes)), ("taken", json!(taken)), ("needs_restart", json!(at_start))];
                (level, "defined", fields)
            }
            ServerEvent::Certificate(why) => ("error", "certificate", vec![("why", json!(why))]),
            ServerEvent::Warning(why) => ("warning", "warning", vec![("why", json!(why))]),
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
        Notice::TailLost { sequence, bytes } => ("error", vec![("sequence", json!(sequence)), ("bytes", json!(bytes))]),
        Notice::LaneLost { lane, why } => ("warning", vec![("lane", json!(lane.to_string())), ("why", json!(why))]),
        Notice::LanesRemoved { lanes, first } => {
            ("error", vec![("lanes", json!(lanes)), ("lane", json!(first.to_string()))])
        }
        Notice::Doubt { venue, unknown } => ("error", vec![("venue", json!(venue.0)), ("unknown", json!(unknown))]),
        Notice::Missed { lane, messages } => {
            ("error", vec![("lane", json!(lane.to_string())), ("messages", json!(messages))])
        }
        Notice::Quarantined { lane, why } => ("error", vec![("lane", json!(lane.to_string())), ("why", json!(why))]),
        Notice::Returned { venue, requests } => {
            ("warning", vec![("venue", json!(venue.0)), ("requests", json!(requests))])
        }
        Notice::VenueDown(venue) => ("warning", vec![("venue", json!(venue.0))]),
        Notice::VenueUp(venue) => ("info", vec![("venue", json!(venue.0))]),
        Notice::LineDown { line, why } => ("warning", vec![("line", json!(line.to_string())), ("why", json!(why))]),
        Notice::LineUp(line) => ("info", vec![("line", json!(line.to_string()))]),
        Notice::LineGivenUp { line, orders } => {
            ("error", vec![("line", json!(line.to_string())), ("orders", json!(orders))])
        }
        Notice::DiskFailed(why) => ("error", vec![("why", json!(why))]),
        Notice::VenueSilent { venue, order } => {
            ("error", vec![("venue", json!(venue.0)), ("order", json!(order_id(*order)))])
        }
        Notice::RefusedOpen { venue, order, reason } => {
            ("error", vec![("venue", json!(venue.0)), ("order", json!(order_id(*order))), ("reason", json!(reason))])
        }
        Notice::UnknownOrders { venue } => ("error", vec![("venue", json!(venue.0))]),
        Notice::DayEnded { day, is_late } => ("info", vec![("day", json!(day)), ("is_late", json!(is_late))]),
        Notice::DayNotEnded { day, why } => ("error", vec![("day", json!(day)), ("why", json!(why))]),
        Notice::NotArchived(why) | Notice::SnapshotFailed(why) | Notice::HistoryLost(why) => {
            ("warning", vec![("why", json!(why))])
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
            logfmt.contains(r#"event=gone user=anna session=3 why="a \"word\"\nand = a line" msg="anna is"#),
            "{logfmt}"
        );
        assert_eq!((logfmt.lines().count(), json.lines().count()), (1, 1));
        let told: Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!((&told["event"], &told["session"], &told["why"]), (&json!("gone"), &json!(3), &json!(why)));
        let [_, logfmt, json] = lines(&ServerEvent::Notice(Notice::VenueDown(VenueId(7))));
        assert!(logfmt.contains("level=warning oms=desk event=venue_down venue=7 msg="), "{logfmt}");
        assert!(json.contains(r#""event":"venue_down""#), "{json}");
    }
}
