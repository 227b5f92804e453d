//! A report, its detail or a denial as one line, for people or as a JSON object, with all its fields.
//!
//! ```text
//!   17 3474042.12 session=2 client_order_id=7 new new side=buy leaves=1 filled=0 last=0@0 symbol=BTCUSDT account=1 …
//!   {"number":17,"name":"execution_report",…,"session":2,"order_id":"3474042.12","symbol":"BTCUSDT","account":1,…}
//! ```

use serde_json::Value as Json;
use tickpath_market::{
    DECIMALS, ExecType, ExecutionReport, Kind, Liquidity, ManualOrderIndicator, Notional, OrdStatus, OrderDenied,
    ReportDetail, Side, SymbolId, decimal_text,
};
use tickpath_oms_core::{Denial, MeasureUnit};
use zerocopy::IntoBytes;

use crate::field::{MessageField, MessageFieldValue, code_name, order_id};
use crate::log_entry::moment;
use crate::read::read;

/// Fields with a form of their own at the beginning of a line.
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

/// A report, a denial, or the detail of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOrDenial {
    /// State of an order.
    Report(ExecutionReport),
    /// Denial of a request.
    Denied(OrderDenied),
    /// Detail of the report before it.
    Detail(ReportDetail),
}

/// A report or a denial that an OMS sent, with its place in a stream.
#[derive(Debug, Clone)]
pub struct SentReport {
    /// Number by which a follower resumes: the place in the OMS's drop copies, or the record in the journal.
    pub number: u64,
    /// Journal of the number, if its follower knows it.
    pub journal: Option<u64>,
    /// Session that the OMS sent it to.
    pub session: u16,
    /// Number of the report in its session, if its follower knows it.
    pub session_number: Option<u64>,
    /// Time at which the OMS sent it or wrote its record, in ticks of its host's clock.
    pub stamp: u64,
    /// The same time in nanoseconds since the Unix epoch, if the clock is known.
    pub utc_ns: Option<u64>,
    /// The report or the denial.
    pub answer: ReportOrDenial,
}

impl SentReport {
    /// Returns the line with its end. `symbol` returns the names of instruments; an instrument without a name shows its
    /// number.
    pub fn line(&self, json: bool, symbol: impl Fn(SymbolId) -> Option<String>) -> String {
        let (name, fields) = self.fields(symbol);
        if json { self.json(name, &fields) } else { self.text(&fields) }
    }

    fn text(&self, fields: &[MessageField]) -> String {
        let head = match &self.answer {
            ReportOrDenial::Report(report) => head(self.session, report),
            ReportOrDenial::Denied(denied) => denial_line(self.session, denied),
            ReportOrDenial::Detail(detail) => detail_line(self.session, detail),
        };
        let mut line = format!("{} {}", self.number, head.trim_end());
        let is_detail = matches!(self.answer, ReportOrDenial::Detail(_));
        for (key, value) in fields.iter().filter(|(key, _)| !is_detail && !IN_HEAD.contains(key)) {
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

    fn json(&self, name: &str, fields: &[MessageField]) -> String {
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

    /// Returns the name of the message, and all its fields.
    fn fields(&self, symbol: impl Fn(SymbolId) -> Option<String>) -> (&'static str, Vec<MessageField>) {
        match &self.answer {
            ReportOrDenial::Report(report) => {
                let (name, mut fields) = read(Kind::ExecutionReport.code(), report.as_bytes()).unwrap_or_default();
                for (key, value) in &mut fields {
                    match *key {
                        "order_id" => *value = MessageFieldValue::Text(order_id(report.order_id)),
                        "symbol" => {
                            *value = symbol(report.symbol).map_or_else(|| value.clone(), MessageFieldValue::Text)
                        }
                        "venue_stamp" => *key = "venue_stamp_ticks",
                        _ => {}
                    }
                }
                fields.push(("symbol_number", MessageFieldValue::Number(report.symbol.0.into())));
                (name, fields)
            }
            ReportOrDenial::Denied(denied) => {
                let (name, mut fields) = read(Kind::OrderDenied.code(), denied.as_bytes()).unwrap_or_default();
                for (key, value) in &mut fields {
                    match *key {
                        "order_id" => *value = MessageFieldValue::Text(order_id(denied.order_id)),
                        "limit" => (*key, *value) = measure(["limit", "limit_ns"], denied, denied.limit),
                        "value" => (*key, *value) = measure(["value", "value_ns"], denied, denied.value),
                        _ => {}
                    }
                }
                let why =
                    Denial::from_code(denied.code).map(|denial| ("why", MessageFieldValue::Text(denial.to_string())));
                fields.extend(why);
                (name, fields)
            }
            ReportOrDenial::Detail(detail) => {
                let (name, mut fields) = read(Kind::ReportDetail.code(), detail.as_bytes()).unwrap_or_default();
                let order = fields.iter_mut().find(|(key, _)| *key == "order_id");
                if let Some((_, value)) = order {
                    *value = MessageFieldValue::Text(order_id(detail.order_id));
                }
                (name, fields)
            }
        }
    }
}

/// Returns the beginning of a report's line, with all that the order's own session needs.
pub fn report_line(session: u16, report: &ExecutionReport) -> String {
    let head = head(session, report);
    match report.reason {
        0 => head,
        reason => format!("{} reason={reason}\n", head.trim_end()),
    }
}

/// Returns the beginning of a report's line without its reason.
fn head(session: u16, report: &ExecutionReport) -> String {
    format!(
        "{} session={session} client_order_id={} {} {} side={} leaves={} filled={} last={}@{}{}\n",
        order_id(report.order_id),
        report.client_order_id.0,
        ExecType::from_code(report.exec_type).map_or_else(String::new, code_name),
        OrdStatus::from_code(report.status).map_or_else(String::new, code_name),
        Side::from_code(report.side).map_or_else(String::new, code_name),
        report.leaves_quantity,
        report.cumulative_quantity,
        report.last_quantity,
        report.last_price,
        if report.manual == ManualOrderIndicator::Manual.code() { " manual" } else { "" },
    )
}

/// Returns the line with the reason of a denial, its limit and the value that broke it.
pub fn denial_line(session: u16, denied: &OrderDenied) -> String {
    let denial = Denial::from_code(denied.code);
    let why = denial.map_or_else(|| denied.code.to_string(), |denial| denial.to_string());
    let (limit, value) = (i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value));
    let measure = match denial.and_then(|denial| {
        measured(denial, limit, denied.price_decimals()).zip(measured(denial, value, denied.price_decimals()))
    }) {
        Some((limit, value)) => format!(" (limit {limit}, value {value})"),
        None => String::new(),
    };
    let (order, client) = (order_id(denied.order_id), denied.client_order_id.0);
    format!("{order} session={session} client_order_id={client} denied: {why}{measure}\n")
}

/// Returns the line of a report's detail, with all that the exchange has sent.
pub fn detail_line(session: u16, detail: &ReportDetail) -> String {
    let mut line = format!("{} session={session} detail", order_id(detail.order_id));
    if detail.exec_id.0 != 0 {
        line.push_str(&format!(" exec_id={}", detail.exec_id.0));
    }
    let currency = detail.fee_currency.as_str();
    if !currency.is_empty() {
        line.push_str(&format!(" fee={} {currency}", Notional(detail.fee())));
    }
    if let Some(role) = detail.liquidity().filter(|&role| role != Liquidity::Unknown) {
        line.push_str(&format!(" {}", code_name(role)));
    }
    for (name, ns) in [("venue_received", detail.venue_received_ns), ("venue_sent", detail.venue_sent_ns)] {
        if ns != 0 {
            line.push_str(&format!(" {name}={}", moment(ns)));
        }
    }
    let text = detail.text();
    if !text.is_empty() {
        line.push_str(&format!(" text={text:?}"));
    }
    line + "\n"
}

/// Makes a field of a limit or a value: a time in nanoseconds has the second name, anything else the first.
fn measure([name, name_ns]: [&'static str; 2], denied: &OrderDenied, bytes: [u8; 16]) -> MessageField {
    let number = i128::from_le_bytes(bytes);
    match Denial::from_code(denied.code).map(|denial| (denial, denial.measure())) {
        Some((_, MeasureUnit::Nanoseconds)) => (name_ns, MessageFieldValue::Number(number)),
        Some((denial, MeasureUnit::Decimal | MeasureUnit::Price | MeasureUnit::Money)) => {
            let text = measured(denial, number, denied.price_decimals());
            (name, text.map_or(MessageFieldValue::Number(number), MessageFieldValue::Text))
        }
        Some((_, MeasureUnit::Count | MeasureUnit::Nothing)) | None => (name, MessageFieldValue::Number(number)),
    }
}

/// Formats a limit or a value for people; none if the check has no measure.
fn measured(denial: Denial, number: i128, price_decimals: u8) -> Option<String> {
    Some(match denial.measure() {
        MeasureUnit::Nothing => return None,
        MeasureUnit::Count => number.to_string(),
        MeasureUnit::Decimal => decimal_text(number, DECIMALS),
        MeasureUnit::Price => decimal_text(number, price_decimals),
        MeasureUnit::Money => Notional(number).to_string(),
        MeasureUnit::Nanoseconds => match u64::try_from(number) {
            Ok(u64::MAX) => "never".to_owned(),
            Ok(ns) if ns < 1_000_000_000 && ns % 1_000_000 != 0 => {
                format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000)
            }
            _ => format!("{} ms", number / 1_000_000),
        },
    })
}
