//! A report or a denial as one line, for people or as a JSON object, with every field of it.
//!
//! ```text
//!   17 3474042.12 session=2 client_order_id=7 new new side=buy leaves=1 filled=0 last=0@0 symbol=BTCUSDT account=1 …
//!   {"number":17,"name":"execution_report",…,"session":2,"order_id":"3474042.12","symbol":"BTCUSDT","account":1,…}
//! ```

use serde_json::Value as Json;
use tickpath_market::{
    ExecType, ExecutionReport, Kind, ManualOrderIndicator, Notional, OrdStatus, OrderDenied, SCALE, Side, SymbolId,
};
use tickpath_orders::{Denial, Measure};
use zerocopy::IntoBytes;

use crate::entry::moment;
use crate::field::{Field, Value, order_id, word};
use crate::read::read;

/// Fields that the beginning of a line shows in its own way.
const IN_HEAD: [&str; 16] = [
    "order_id",
    "client_order_id",
    "exec_type",
    "status",
    "side",
    "leaves_quantity",
    "cumulative_quantity",
    "last_quantity",
    "last_price",
    "manual",
    "symbol_number",
    "limit",
    "limit_ns",
    "value",
    "value_ns",
    "why",
];

/// A report or a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// How an order stands.
    Report(ExecutionReport),
    /// Why a request was denied.
    Denied(OrderDenied),
}

/// A report or a denial that an OMS sent, and its way from there.
#[derive(Debug, Clone)]
pub struct SentReport {
    /// The number by which a follower resumes: the place in the OMS's drop copies, or the record in the journal.
    pub number: u64,
    /// The journal that the number belongs to, if its follower knows it.
    pub journal: Option<u64>,
    /// The session that the OMS sent it to.
    pub session: u16,
    /// The number of the report in its session, if its follower knows it.
    pub session_number: Option<u64>,
    /// When the OMS sent it, or wrote its record, in ticks of its host's clock.
    pub stamp: u64,
    /// The same moment in nanoseconds since the Unix epoch, if the clock is known.
    pub utc_ns: Option<u64>,
    /// The report or the denial itself.
    pub answer: Answer,
}

impl SentReport {
    /// Returns the line with its end. `symbol` gives the names of instruments; one without a name is shown by its number.
    pub fn line(&self, json: bool, symbol: impl Fn(SymbolId) -> Option<String>) -> String {
        let (name, fields) = self.fields(symbol);
        if json { self.json(name, &fields) } else { self.text(&fields) }
    }

    fn text(&self, fields: &[Field]) -> String {
        let head = match &self.answer {
            Answer::Report(report) => head(self.session, report),
            Answer::Denied(denied) => denial_line(self.session, denied),
        };
        let mut line = format!("{} {}", self.number, head.trim_end());
        for (key, value) in fields.iter().filter(|(key, _)| !IN_HEAD.contains(key)) {
            line.push_str(&format!(" {key}={value}"));
        }
        if let Some(number) = self.session_number {
            line.push_str(&format!(" session_number={number}"));
        }
        if let Some(utc_ns) = self.utc_ns {
            line.push_str(&format!(" time={}", moment(utc_ns)));
        }
        line + "\n"
    }

    fn json(&self, name: &str, fields: &[Field]) -> String {
        let [journal, session_number] =
            [self.journal, self.session_number].map(|number| number.map_or(Json::Null, Json::from));
        let time = self.utc_ns.map_or(Json::Null, |utc_ns| Json::from(moment(utc_ns)));
        let mut line = format!(
            r#"{{"number":{},"name":"{name}","journal":{journal},"session":{},"session_number":{session_number}"#,
            self.number, self.session
        );
        line.push_str(&format!(r#","time":{time},"stamp_ticks":{}"#, self.stamp));
        for (key, value) in fields {
            line.push_str(&format!(r#","{key}":{}"#, value.json()));
        }
        line + "}\n"
    }

    /// Every field of the message with its name, and what the message is called.
    fn fields(&self, symbol: impl Fn(SymbolId) -> Option<String>) -> (&'static str, Vec<Field>) {
        match &self.answer {
            Answer::Report(report) => {
                let (name, mut fields) = read(Kind::ExecutionReport.code(), report.as_bytes()).unwrap_or_default();
                for (key, value) in &mut fields {
                    match *key {
                        "order_id" => *value = Value::Text(order_id(report.order_id)),
                        "symbol" => *value = symbol(report.symbol).map_or_else(|| value.clone(), Value::Text),
                        "venue_stamp" => *key = "venue_stamp_ticks",
                        _ => {}
                    }
                }
                fields.push(("symbol_number", Value::Number(report.symbol.0.into())));
                (name, fields)
            }
            Answer::Denied(denied) => {
                let (name, mut fields) = read(Kind::OrderDenied.code(), denied.as_bytes()).unwrap_or_default();
                for (key, value) in &mut fields {
                    match *key {
                        "order_id" => *value = Value::Text(order_id(denied.order_id)),
                        "limit" => (*key, *value) = measure(["limit", "limit_ns"], denied.code, denied.limit),
                        "value" => (*key, *value) = measure(["value", "value_ns"], denied.code, denied.value),
                        _ => {}
                    }
                }
                let why = Denial::from_code(denied.code).map(|denial| ("why", Value::Text(denial.to_string())));
                fields.extend(why);
                (name, fields)
            }
        }
    }
}

/// Returns the beginning of a report's line, which is all that the session of the order itself needs.
pub fn report_line(session: u16, report: &ExecutionReport) -> String {
    let head = head(session, report);
    match report.reason {
        0 => head,
        reason => format!("{} reason={reason}\n", head.trim_end()),
    }
}

/// The beginning of a report's line without its reason.
fn head(session: u16, report: &ExecutionReport) -> String {
    format!(
        "{} session={session} client_order_id={} {} {} side={} leaves={} filled={} last={}@{}{}\n",
        order_id(report.order_id),
        report.client_order_id.0,
        ExecType::from_code(report.exec_type).map_or_else(String::new, word),
        OrdStatus::from_code(report.status).map_or_else(String::new, word),
        Side::from_code(report.side).map_or_else(String::new, word),
        report.leaves_quantity,
        report.cumulative_quantity,
        report.last_quantity,
        report.last_price,
        if report.manual == ManualOrderIndicator::Manual.code() { " manual" } else { "" },
    )
}

/// Returns the line that says why a request was denied, with the limit and the value that broke it.
pub fn denial_line(session: u16, denied: &OrderDenied) -> String {
    let denial = Denial::from_code(denied.code);
    let why = denial.map_or_else(|| denied.code.to_string(), |denial| denial.to_string());
    let (limit, value) = (i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value));
    let measure = match denial.and_then(|denial| measured(denial, limit).zip(measured(denial, value))) {
        Some((limit, value)) => format!(" (limit {limit}, value {value})"),
        None => String::new(),
    };
    let (order, client) = (order_id(denied.order_id), denied.client_order_id.0);
    format!("{order} session={session} client_order_id={client} denied: {why}{measure}\n")
}

/// A limit or a value as a field: a time under the second of these names, in nanoseconds, all else under the first.
fn measure([name, name_ns]: [&'static str; 2], code: u16, bytes: [u8; 16]) -> Field {
    let number = i128::from_le_bytes(bytes);
    match Denial::from_code(code).map(|denial| (denial, denial.measure())) {
        Some((_, Measure::Nanoseconds)) => (name_ns, Value::Number(number)),
        Some((denial, Measure::Decimal | Measure::Money)) => {
            (name, measured(denial, number).map_or(Value::Number(number), Value::Text))
        }
        Some((_, Measure::Count | Measure::Nothing)) | None => (name, Value::Number(number)),
    }
}

/// A limit or a value as a person reads it; none if the check has no measure.
fn measured(denial: Denial, number: i128) -> Option<String> {
    Some(match denial.measure() {
        Measure::Nothing => return None,
        Measure::Count => number.to_string(),
        // A sum of positions may be longer than any price.
        Measure::Decimal => Notional(number.saturating_mul(SCALE.into())).to_string(),
        Measure::Money => Notional(number).to_string(),
        Measure::Nanoseconds => match u64::try_from(number) {
            Ok(u64::MAX) => "never".to_owned(),
            Ok(ns) if ns < 1_000_000_000 && ns % 1_000_000 != 0 => {
                format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000)
            }
            _ => format!("{} ms", number / 1_000_000),
        },
    })
}
