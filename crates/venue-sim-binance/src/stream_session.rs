//! A connection to the market streams: its subscriptions, and the requests that change them.

use serde::Deserialize;
use serde_json::Value;
use tickpath_venue_sim_web::SimInstrument;

use crate::codes::{ApiError, Code};
use crate::json::{OrderedObject, array, quoted};
use crate::limits::MessageWindow;
use crate::market_streams::StreamMessage;
use crate::params::{RequestParams, percent_decoded};
use crate::stamps::StampUnit;
use crate::stream_topics::StreamTopic;
use crate::user_events::bare_event;

/// Path of connections whose messages are bare, and of those whose messages name their stream.
const RAW_PATH: &str = "/ws";
const COMBINED_PATH: &str = "/stream";
/// Streams of a connection.
const MAX_STREAMS: usize = 1_024;
const SHUTDOWN_STREAM: &str = "!serverShutdown";

/// A connection to the market streams.
pub(crate) struct StreamSession {
    /// Whether a message has the name of its stream around it.
    is_combined: bool,
    unit: StampUnit,
    subscriptions: Vec<StreamSubscription>,
    received: MessageWindow,
}

/// A stream by the name under which it was subscribed.
struct StreamSubscription {
    name: String,
    /// None for a stream that the exchange does not have: it is accepted, and stays silent.
    topic: Option<StreamTopic>,
}

/// A request that cannot be carried out, with the code and the sentence of its answer.
struct StreamRefusal(u32, String);

#[derive(Deserialize)]
struct StreamRequest {
    method: StreamMethod,
    #[serde(default)]
    params: Vec<Value>,
    #[serde(default)]
    id: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum StreamMethod {
    Subscribe,
    Unsubscribe,
    ListSubscriptions,
    SetProperty,
    GetProperty,
}

impl StreamSession {
    /// Opens a connection at a path of the streams; none at another path.
    pub(crate) fn open(path: &str, query: &str, instruments: &[SimInstrument]) -> Option<Result<Self, ApiError>> {
        let (is_combined, rest) = match (path.strip_prefix(RAW_PATH), path.strip_prefix(COMBINED_PATH)) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return None,
        };
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let names = percent_decoded(rest)?;
        Some(Self::with_options(is_combined, &names, query, instruments))
    }

    /// Counts a message of the client, or a pong. Returns whether there are not too many of them.
    pub(crate) fn admits_message(&mut self, now_ns: u64) -> bool {
        self.received.admits(now_ns)
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, text: &str, instruments: &[SimInstrument]) -> String {
        let json: Value = match serde_json::from_str(text) {
            Ok(json) => json,
            Err(e) => return StreamRefusal(3, format!("Invalid JSON: {e}")).answer(&Value::Null),
        };
        let id = json.get("id").cloned().unwrap_or_default();
        let outcome = read_request(text).and_then(|request| self.perform(&request, instruments));
        match outcome {
            Ok(result) => OrderedObject::new().raw("result", &result).raw("id", &id.to_string()).finish(),
            Err(refusal) => refusal.answer(&id),
        }
    }

    /// Returns the subscribed streams that the exchange has.
    pub(crate) fn topics(&self) -> impl Iterator<Item = StreamTopic> {
        self.subscriptions.iter().filter_map(|subscription| subscription.topic)
    }

    /// Returns a message of a stream as this connection gets it, once for each name by which it has subscribed.
    pub(crate) fn messages_of(&self, message: &StreamMessage) -> Vec<String> {
        let is_of = |subscription: &&StreamSubscription| subscription.topic == Some(message.topic);
        let subscribed = self.subscriptions.iter().filter(is_of);
        subscribed.map(|subscription| self.wrap(&subscription.name, message.text(self.unit))).collect()
    }

    /// Returns the announcement of a maintenance.
    pub(crate) fn shutdown(&self, now_ns: u64) -> String {
        self.wrap(SHUTDOWN_STREAM, &bare_event("serverShutdown", now_ns, self.unit))
    }

    fn with_options(
        is_combined: bool,
        path_names: &str,
        query: &str,
        instruments: &[SimInstrument],
    ) -> Result<Self, ApiError> {
        let mut params = RequestParams::of_form(query, "")?;
        let unit = match params.optional("timeUnit")? {
            Some(text) => StampUnit::read(&text).ok_or_else(|| Code::TimeUnit.error())?,
            None => StampUnit::default(),
        };
        let query_names = params.peek("streams").unwrap_or_default();
        let mut session = Self { is_combined, unit, subscriptions: Vec::new(), received: MessageWindow::default() };
        for name in path_names.split('/').chain(query_names.split('/')).filter(|name| !name.is_empty()) {
            session.subscribe(name, instruments);
        }
        Ok(session)
    }

    fn perform(&mut self, request: &StreamRequest, instruments: &[SimInstrument]) -> Result<String, StreamRefusal> {
        match request.method {
            StreamMethod::Subscribe => {
                let names = stream_names(&request.params)?;
                if self.subscriptions.len() + names.len() > MAX_STREAMS {
                    return Err(StreamRefusal(2, "Invalid request: too many streams".to_owned()));
                }
                names.into_iter().for_each(|name| self.subscribe(name, instruments));
                Ok("null".to_owned())
            }
            StreamMethod::Unsubscribe => {
                let names = stream_names(&request.params)?;
                self.subscriptions.retain(|subscription| !names.contains(&subscription.name.as_str()));
                Ok("null".to_owned())
            }
            StreamMethod::ListSubscriptions => {
                Ok(array(self.subscriptions.iter().map(|subscription| quoted(&subscription.name))))
            }
            StreamMethod::SetProperty => {
                let [name, value] = request.params.as_slice() else { return Err(too_many_parameters()) };
                check_property(name)?;
                let value = value.as_bool();
                self.is_combined =
                    value.ok_or_else(|| StreamRefusal(1, "Invalid value type: expected Boolean".to_owned()))?;
                Ok("null".to_owned())
            }
            StreamMethod::GetProperty => {
                let [name] = request.params.as_slice() else { return Err(too_many_parameters()) };
                check_property(name)?;
                Ok(self.is_combined.to_string())
            }
        }
    }

    fn subscribe(&mut self, name: &str, instruments: &[SimInstrument]) {
        if self.subscriptions.iter().all(|known| known.name != name) {
            let topic = StreamTopic::read(name, instruments);
            self.subscriptions.push(StreamSubscription { name: name.to_owned(), topic });
        }
    }

    fn wrap(&self, stream: &str, data: &str) -> String {
        if self.is_combined {
            OrderedObject::new().text("stream", stream).raw("data", data).finish()
        } else {
            data.to_owned()
        }
    }
}

impl StreamRefusal {
    fn answer(&self, id: &Value) -> String {
        let Self(code, text) = self;
        let error = OrderedObject::new().plain("code", code).text("msg", text).finish();
        OrderedObject::new().raw("error", &error).raw("id", &id.to_string()).finish()
    }
}

fn read_request(text: &str) -> Result<StreamRequest, StreamRefusal> {
    let request: StreamRequest =
        serde_json::from_str(text).map_err(|e| StreamRefusal(2, format!("Invalid request: {e}")))?;
    match &request.id {
        Value::Null | Value::String(_) => Ok(request),
        Value::Number(number) if number.is_u64() => Ok(request),
        _ => Err(StreamRefusal(2, "Invalid request: request ID must be an unsigned integer".to_owned())),
    }
}

fn stream_names(params: &[Value]) -> Result<Vec<&str>, StreamRefusal> {
    let names: Option<Vec<&str>> = params.iter().map(Value::as_str).collect();
    names.ok_or_else(|| StreamRefusal(2, "Invalid request: invalid stream".to_owned()))
}

fn check_property(name: &Value) -> Result<(), StreamRefusal> {
    match name.as_str() {
        Some("combined") => Ok(()),
        Some(_) => Err(StreamRefusal(0, "Unknown property".to_owned())),
        None => Err(StreamRefusal(2, "Invalid request: property name must be a string".to_owned())),
    }
}

fn too_many_parameters() -> StreamRefusal {
    StreamRefusal(2, "Invalid request: too many parameters".to_owned())
}
