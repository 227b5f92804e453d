//! A WebSocket connection: its login, its subscriptions and its end.

use serde_json::Value;
use tickpath_venue_sim_web::SimAccount;

use crate::channels::{ChannelSubscription, EndPoint};
use crate::codes::{
    LOGIN_EXPIRED, LOGIN_FAILED, LOGIN_KEY, LOGIN_PASSPHRASE, LOGIN_REPEATED, LOGIN_SIGN, LOGIN_TIMESTAMP, OkxRefusal,
    TOO_FREQUENT,
};
use crate::fields::text_field;
use crate::limits::RequestWindow;
use crate::sign::{LOGIN_TEXT, is_signed};

/// Max age of a login's timestamp, and max time that it may be ahead.
const LOGIN_AGE_S: u64 = 30;
/// Window of subscribe, unsubscribe and login requests.
const REQUEST_WINDOW_NS: u64 = 3_600_000_000_000;
/// Max subscribe, unsubscribe and login requests within the window.
const MAX_REQUESTS: usize = 480;

/// A WebSocket connection.
#[derive(Debug)]
pub(crate) struct GatewaySession {
    pub(crate) end_point: EndPoint,
    /// Index of the account that is logged in.
    pub(crate) account: Option<usize>,
    pub(crate) subscriptions: Vec<ChannelSubscription>,
    /// Time of the last message in either direction.
    pub(crate) active_ns: u64,
    /// Time at which the connection is closed, once that is announced.
    pub(crate) closes_ns: Option<u64>,
    /// Turn in which the connection is cut. Until then it takes and gets nothing.
    pub(crate) cut_turn: Option<u64>,
    requests: RequestWindow,
}

impl GatewaySession {
    pub(crate) fn new(end_point: EndPoint, now_ns: u64) -> Self {
        Self {
            end_point,
            account: None,
            subscriptions: Vec::new(),
            active_ns: now_ns,
            closes_ns: None,
            cut_turn: None,
            requests: RequestWindow::default(),
        }
    }

    /// Counts a subscribe, unsubscribe or login request.
    pub(crate) fn count_request(&mut self, now_ns: u64) -> Result<(), OkxRefusal> {
        match self.requests.try_count(now_ns, REQUEST_WINDOW_NS, MAX_REQUESTS) {
            true => Ok(()),
            false => Err(TOO_FREQUENT.refusal()),
        }
    }

    /// Logs an account in.
    pub(crate) fn log_in(&mut self, arguments: &Value, accounts: &[SimAccount], now_ns: u64) -> Result<(), OkxRefusal> {
        let argument = match arguments.as_array().map(Vec::as_slice) {
            Some([argument]) if self.account.is_none() => argument,
            Some([_, ..]) => return Err(LOGIN_REPEATED.refusal()),
            _ => return Err(LOGIN_FAILED.refusal()),
        };
        let field = |name: &str| text_field(argument, name).unwrap_or_default();
        let timestamp = field("timestamp");
        let (seconds, _) = timestamp.split_once('.').unwrap_or((&timestamp, ""));
        let seconds: u64 = seconds.parse().map_err(|_| LOGIN_TIMESTAMP.refusal())?;
        if seconds.abs_diff(now_ns / 1_000_000_000) > LOGIN_AGE_S {
            return Err(LOGIN_EXPIRED.refusal());
        }
        let key = field("apiKey");
        let account = accounts.iter().position(|account| account.api_key == key).ok_or_else(|| LOGIN_KEY.refusal())?;
        if accounts[account].passphrase != field("passphrase") {
            return Err(LOGIN_PASSPHRASE.refusal());
        }
        if !is_signed(&accounts[account].secret, &[timestamp.as_bytes(), LOGIN_TEXT.as_bytes()], &field("sign")) {
            return Err(LOGIN_SIGN.refusal());
        }
        self.account = Some(account);
        Ok(())
    }
}
