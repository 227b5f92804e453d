//! A connection to the WebSocket API: requests with their answers, logon, and subscriptions to events of accounts.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::calls::ApiCall;
use crate::codes::{ApiError, Code};
use crate::json::{OrderedObject, array};
use crate::params::RequestParams;
use crate::sign::{check_time, json_payload};
use crate::spot::CallContext;
use crate::spot_api::{SignedText, SpotApi};
use crate::stamps::StampUnit;
use crate::user_events::bare_event;

/// Weight of a request about the session.
const SESSION_WEIGHT: u64 = 2;
const VERSION_PREFIX: &str = "v3/";
const ID_RANGE: &str = "INT, STRING or null";

/// A connection to the WebSocket API.
pub(crate) struct ApiSession {
    unit: StampUnit,
    /// Whether answers list the limits, unless their request asks for the opposite.
    lists_limits: bool,
    connected_ns: u64,
    logon: Option<SessionLogon>,
    subscriptions: Vec<UserSubscription>,
    /// Id of the next subscription.
    next_subscription: u64,
}

/// Messages that answer a request.
#[derive(Debug, Default)]
pub(crate) struct ApiReply {
    pub(crate) answer: String,
    /// Events that the request has caused in the session.
    pub(crate) events: Vec<String>,
    /// Whether the answer acknowledges a request that changes orders.
    pub(crate) is_acknowledgement: bool,
    /// Account whose orders the request has counted.
    counted: Option<usize>,
}

/// Logon of a session.
struct SessionLogon {
    account: usize,
    api_key: String,
    since_ns: u64,
}

/// Subscription to the events of an account.
struct UserSubscription {
    id: u64,
    account: usize,
    /// Whether it belongs to the logon, and ends with it.
    is_of_logon: bool,
}

#[derive(Deserialize)]
struct ApiRequest {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Option<Map<String, Value>>,
}

impl ApiSession {
    /// Begins a session with the options of its URL.
    pub(crate) fn new(query: &str, now_ns: u64) -> Result<Self, ApiError> {
        let mut params = RequestParams::of_form(query, "")?;
        let unit = match params.optional("timeUnit")? {
            Some(text) => StampUnit::read(&text).ok_or_else(|| Code::TimeUnit.error())?,
            None => StampUnit::default(),
        };
        let lists_limits = params.flag("returnRateLimits")?.unwrap_or(true);
        Ok(Self {
            unit,
            lists_limits,
            connected_ns: now_ns,
            logon: None,
            subscriptions: Vec::new(),
            next_subscription: 0,
        })
    }

    /// Answers a message.
    pub(crate) fn answer(&mut self, text: &str, api: &mut SpotApi) -> ApiReply {
        let now_ns = api.now_ns();
        let mut reply = ApiReply::default();
        let mut lists_limits = self.lists_limits;
        let (id, outcome) = match read_request(text) {
            Ok(request) => {
                let mut params = RequestParams::of_json(request.params.as_ref().unwrap_or(&Map::new()));
                lists_limits = params.flag("returnRateLimits").ok().flatten().unwrap_or(lists_limits);
                let outcome = self.perform(&request, &mut params, api, now_ns, &mut reply);
                (request.id, outcome)
            }
            Err(error) => (Value::Null, Err(error)),
        };
        let limits = lists_limits.then(|| api.spot.limits.usage_json(now_ns, reply.counted));
        reply.answer = envelope(&id, &outcome, limits.as_deref());
        reply
    }

    /// Returns an event of an account as this session gets it; none if it has not subscribed to them.
    pub(crate) fn event_of(&self, account: usize, event: impl FnOnce(StampUnit) -> String) -> Option<String> {
        let subscription = self.subscriptions.iter().find(|subscription| subscription.account == account)?;
        Some(subscription.wrap(&event(self.unit)))
    }

    /// Returns the announcement of a maintenance.
    pub(crate) fn shutdown(&self, now_ns: u64) -> String {
        OrderedObject::new().raw("event", &bare_event("serverShutdown", now_ns, self.unit)).finish()
    }

    fn perform(
        &mut self,
        request: &ApiRequest,
        params: &mut RequestParams,
        api: &mut SpotApi,
        now_ns: u64,
        reply: &mut ApiReply,
    ) -> Result<String, ApiError> {
        let method = request.method.strip_prefix(VERSION_PREFIX).unwrap_or(&request.method);
        let Some(call) = ApiCall::by_method(method) else {
            api.admit(SESSION_WEIGHT, now_ns)?;
            return self.perform_own(method, request, params, api, now_ns, reply);
        };
        api.admit(call.weight(params), now_ns)?;
        let account = if call.is_signed() {
            Some(self.account_of(request, params, api, now_ns)?)
        } else {
            // Some clients sign public requests, too.
            params.ignore(&["apiKey", "signature", "timestamp", "recvWindow"]);
            None
        };
        reply.counted = account.filter(|_| call.is_placement());
        let outcome = api.run(call, account, CallContext { now_ns, unit: self.unit }, params);
        reply.is_acknowledgement = call.is_trade() && outcome.is_ok();
        outcome
    }

    /// Performs a request about the session itself.
    fn perform_own(
        &mut self,
        method: &str,
        request: &ApiRequest,
        params: &mut RequestParams,
        api: &mut SpotApi,
        now_ns: u64,
        reply: &mut ApiReply,
    ) -> Result<String, ApiError> {
        match method {
            "session.logon" => self.log_on(request, params, api, now_ns),
            "session.status" => params.finish().map(|()| self.status(now_ns)),
            "session.logout" => {
                params.finish()?;
                self.logon = None;
                self.end_subscriptions(|subscription| subscription.is_of_logon, now_ns, reply);
                Ok(self.status(now_ns))
            }
            "session.subscriptions" => params.finish().map(|()| self.listed_subscriptions()),
            "userDataStream.subscribe" => {
                params.finish()?;
                let account = self.logon.as_ref().map(|logon| logon.account);
                self.subscribe(account.ok_or_else(|| Code::KeyRejected.error())?, true)
            }
            "userDataStream.subscribe.signature" => {
                let account = explicit_account(request, params, api, now_ns)?;
                params.finish()?;
                self.subscribe(account, false)
            }
            "userDataStream.unsubscribe" => self.unsubscribe(params, now_ns, reply),
            _ => Err(Code::UnsupportedOperation.error()),
        }
    }

    /// Returns the account of a signed request: that of the logon, unless the request has a key of its own.
    fn account_of(
        &self,
        request: &ApiRequest,
        params: &mut RequestParams,
        api: &SpotApi,
        now_ns: u64,
    ) -> Result<usize, ApiError> {
        match &self.logon {
            Some(logon) if !params.has("apiKey") && !params.has("signature") => {
                check_time(params, now_ns)?;
                Ok(logon.account)
            }
            _ => explicit_account(request, params, api, now_ns),
        }
    }

    fn log_on(
        &mut self,
        request: &ApiRequest,
        params: &mut RequestParams,
        api: &SpotApi,
        now_ns: u64,
    ) -> Result<String, ApiError> {
        let account = explicit_account(request, params, api, now_ns)?;
        let api_key = params.required("apiKey")?;
        params.finish()?;
        if !api.keys.may_log_on(account) {
            return Err(Code::HmacLogon.error());
        }
        self.logon = Some(SessionLogon { account, api_key, since_ns: now_ns });
        Ok(self.status(now_ns))
    }

    fn status(&self, now_ns: u64) -> String {
        let object = OrderedObject::new();
        let object = match &self.logon {
            Some(logon) => object.text("apiKey", &logon.api_key).plain("authorizedSince", self.unit.of(logon.since_ns)),
            None => object.raw("apiKey", "null").raw("authorizedSince", "null"),
        };
        object
            .plain("connectedSince", self.unit.of(self.connected_ns))
            .plain("returnRateLimits", self.lists_limits)
            .plain("serverTime", self.unit.of(now_ns))
            .plain("userDataStream", !self.subscriptions.is_empty())
            .finish()
    }

    fn subscribe(&mut self, account: usize, is_of_logon: bool) -> Result<String, ApiError> {
        if self.subscriptions.iter().any(|subscription| subscription.account == account) {
            return Err(Code::SubscriptionActive.error());
        }
        let id = self.next_subscription;
        self.next_subscription += 1;
        self.subscriptions.push(UserSubscription { id, account, is_of_logon });
        Ok(OrderedObject::new().plain("subscriptionId", id).finish())
    }

    fn unsubscribe(
        &mut self,
        params: &mut RequestParams,
        now_ns: u64,
        reply: &mut ApiReply,
    ) -> Result<String, ApiError> {
        let id = params.number("subscriptionId")?;
        params.finish()?;
        self.end_subscriptions(|subscription| id.is_none_or(|id| subscription.id == id), now_ns, reply);
        if reply.events.is_empty() { Err(Code::SubscriptionInactive.error()) } else { Ok("{}".to_owned()) }
    }

    /// Ends subscriptions, with an event to each.
    fn end_subscriptions(&mut self, ends: impl Fn(&UserSubscription) -> bool, now_ns: u64, reply: &mut ApiReply) {
        let event = bare_event("eventStreamTerminated", now_ns, self.unit);
        let ended = self.subscriptions.extract_if(.., |subscription| ends(subscription));
        reply.events.extend(ended.map(|subscription| subscription.wrap(&event)));
    }

    fn listed_subscriptions(&self) -> String {
        let listed =
            |subscription: &UserSubscription| OrderedObject::new().plain("subscriptionId", subscription.id).finish();
        array(self.subscriptions.iter().map(listed))
    }
}

impl UserSubscription {
    fn wrap(&self, event: &str) -> String {
        OrderedObject::new().plain("subscriptionId", self.id).raw("event", event).finish()
    }
}

fn read_request(text: &str) -> Result<ApiRequest, ApiError> {
    let request: ApiRequest = serde_json::from_str(text).map_err(|_| Code::InvalidJson.error())?;
    match &request.id {
        Value::Null | Value::String(_) => Ok(request),
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(request),
        _ => Err(Code::IllegalCharacters.about(&["id", ID_RANGE])),
    }
}

fn envelope(id: &Value, outcome: &Result<String, ApiError>, limits: Option<&str>) -> String {
    let object = OrderedObject::new().raw("id", &id.to_string());
    let object = match outcome {
        Ok(result) => object.plain("status", 200).raw("result", result),
        Err(error) => object.plain("status", error.status).raw("error", &error.json()),
    };
    match limits {
        Some(limits) => object.raw("rateLimits", limits).finish(),
        None => object.finish(),
    }
}

/// Returns the account of a request by the key and the signature that it has itself.
fn explicit_account(
    request: &ApiRequest,
    params: &mut RequestParams,
    api: &SpotApi,
    now_ns: u64,
) -> Result<usize, ApiError> {
    params.ignore(&["signature"]);
    let api_key = params.required("apiKey")?;
    let payload = request.params.as_ref().map(json_payload).unwrap_or_default();
    let signature = params.peek("signature").map(str::to_owned);
    let signed = SignedText { api_key: &api_key, payload: &payload, signature: signature.as_deref() };
    api.authenticate(&signed, params, now_ns)
}
