//! The complete reader: any JSON that OKX may send on a private connection, by its meaning for a line.

use std::borrow::Cow;

use serde::Deserialize;

use crate::order_update::RawOrder;
use crate::reasons::read_code;

/// Code of the notice that comes 60 s before a connection is closed for an upgrade.
const UPGRADE_NOTICE: u32 = 64008;
const ORDERS: &str = "orders";
const NS_PER_US: u64 = 1_000;

/// A frame.
#[derive(Debug)]
pub(crate) enum LineFrame<'a> {
    /// Answer to a ping.
    Pong,
    LoggedIn,
    /// The orders channel is subscribed.
    Subscribed,
    /// OKX reports an error of the connection; a request's number and code if it names one.
    Refused {
        number: Option<u64>,
        code: u32,
        text: String,
    },
    /// OKX closes the connection soon.
    Maintenance,
    Answer(RequestAnswer),
    Push(Vec<RawOrder<'a>>),
    /// A frame without consequences.
    Ignored,
}

/// OKX's answer to a request about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestAnswer {
    /// Number of the request.
    pub number: u64,
    /// Zero for a request that OKX has accepted.
    pub code: u32,
    pub text: String,
    /// Times at OKX's gateway, in nanoseconds; zero if unknown.
    pub received_ns: u64,
    pub sent_ns: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FrameHead<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow)]
    msg: Cow<'a, str>,
    #[serde(borrow)]
    in_time: Cow<'a, str>,
    #[serde(borrow)]
    out_time: Cow<'a, str>,
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    arg: Option<FrameArgument<'a>>,
}

#[derive(Deserialize)]
struct FrameArgument<'a> {
    #[serde(borrow, default)]
    channel: Cow<'a, str>,
}

#[derive(Deserialize)]
struct AnswerRows<'a> {
    #[serde(borrow, default)]
    data: Vec<AnswerRow<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnswerRow<'a> {
    #[serde(borrow)]
    s_code: Cow<'a, str>,
    #[serde(borrow)]
    s_msg: Cow<'a, str>,
}

#[derive(Deserialize)]
struct PushRows<'a> {
    #[serde(borrow)]
    data: Vec<RawOrder<'a>>,
}

/// Reads a frame. The error is the reason why it is no frame of OKX.
pub(crate) fn read_frame(frame: &[u8]) -> Result<LineFrame<'_>, String> {
    if frame == b"pong" {
        return Ok(LineFrame::Pong);
    }
    let head: FrameHead<'_> = parse(frame)?;
    if !head.event.is_empty() {
        return Ok(head.read_event());
    }
    if !head.op.is_empty() {
        let rows: AnswerRows<'_> = parse(frame)?;
        return head.read_answer(rows.data.first()).map(LineFrame::Answer);
    }
    match &head.arg {
        Some(arg) if arg.channel == ORDERS => {
            let rows: PushRows<'_> = parse(frame)?;
            Ok(LineFrame::Push(rows.data))
        }
        Some(_) => Ok(LineFrame::Ignored),
        None => Err("it has no event, no operation and no argument".to_owned()),
    }
}

fn parse<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(frame).map_err(|e| e.to_string())
}

impl<'a> FrameHead<'a> {
    fn read_event(&self) -> LineFrame<'a> {
        let code = read_code(&self.code);
        match &*self.event {
            "login" if code == 0 => LineFrame::LoggedIn,
            "subscribe" if self.arg.as_ref().is_some_and(|arg| arg.channel == ORDERS) => LineFrame::Subscribed,
            "notice" if code == UPGRADE_NOTICE => LineFrame::Maintenance,
            "channel-conn-count-error" => {
                let text = format!("the channel '{}' has too many connections; close another one", self.channel);
                LineFrame::Refused { number: None, code, text }
            }
            "login" | "error" => {
                let (number, text) = (self.id.parse().ok(), format!("{}: {}", self.code, self.msg));
                LineFrame::Refused { number, code, text }
            }
            _ => LineFrame::Ignored,
        }
    }

    /// Reads an answer. Its row has the code of the order, and without a row the whole request was refused.
    fn read_answer(&self, row: Option<&AnswerRow<'_>>) -> Result<RequestAnswer, String> {
        let number = self.id.parse().map_err(|_| "an answer names no request".to_owned())?;
        let (code, text) = match row {
            Some(row) if !row.s_code.is_empty() => (&row.s_code, &row.s_msg),
            _ => (&self.code, &self.msg),
        };
        let ns = |text: &str| text.parse::<u64>().ok().and_then(|us| us.checked_mul(NS_PER_US)).unwrap_or(0);
        Ok(RequestAnswer {
            number,
            code: read_code(code),
            text: text.clone().into_owned(),
            received_ns: ns(&self.in_time),
            sent_ns: ns(&self.out_time),
        })
    }
}
