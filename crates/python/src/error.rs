//! Exceptions. Their classes are Python's own, in `tickpath.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tickpath_bus::{BatchError, ConnectError, LendError, PublishError, ReceiveError};
use tickpath_client::{ClientError, SendError};
use tickpath_market::Request;

/// A class of `tickpath.errors`.
#[derive(Debug, Clone, Copy)]
pub enum Error {
    /// There is no connection, or what was asked for is refused.
    Connect,
    /// A message is not published, or nobody knows.
    Publish,
    /// A topic is full.
    Full,
    /// Nobody is subscribed to a topic that fails.
    NoSubscriber,
    /// A message is too long.
    TooLarge,
    /// Nobody knows what became of a message.
    Unknown,
    /// A batch is published in part, or may be.
    Batch,
    /// Nothing can be received.
    Receive,
    /// A topic lends no messages.
    NotLent,
    /// What was handed over is not acknowledged.
    NotAcknowledged,
    /// What a queue held is gone.
    Gone,
    /// A request did not leave.
    NotSent,
    /// A session with an OMS has ended for good.
    SessionEnded,
    /// It is closed.
    Closed,
    /// Another thread uses it.
    InUse,
    /// It was opened before a fork.
    Forked,
}

impl Error {
    /// What its class is called.
    fn name(self) -> &'static str {
        match self {
            Self::Connect => "ConnectError",
            Self::Publish => "PublishError",
            Self::Full => "TopicFull",
            Self::NoSubscriber => "NoSubscriber",
            Self::TooLarge => "TooLarge",
            Self::Unknown => "OutcomeUnknown",
            Self::Batch => "BatchError",
            Self::Receive => "ReceiveError",
            Self::NotLent => "NotLent",
            Self::NotAcknowledged => "NotAcknowledged",
            Self::Gone => "Gone",
            Self::NotSent => "NotSent",
            Self::SessionEnded => "SessionEnded",
            Self::Closed => "Closed",
            Self::InUse => "InUse",
            Self::Forked => "Forked",
        }
    }

    /// The exception with this sentence.
    pub fn raise(self, py: Python<'_>, sentence: &str) -> PyErr {
        self.raise_with(py, sentence, &[])
    }

    /// The same with attributes.
    fn raise_with(self, py: Python<'_>, sentence: &str, attributes: &[(&str, Bound<'_, PyAny>)]) -> PyErr {
        let made = self.class(py).and_then(|class| {
            let made = class.call1((sentence,))?;
            for (name, value) in attributes {
                made.setattr(*name, value)?;
            }
            Ok(PyErr::from_value(made))
        });
        made.unwrap_or_else(|e| e)
    }

    fn class<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tickpath.errors")?.unbind()))?;
        Ok(module.bind(py).getattr(self.name())?.cast_into::<PyType>()?)
    }
}

/// Why there is no connection, publisher, subscriber or queue.
pub fn connect_error(py: Python<'_>, error: &ConnectError) -> PyErr {
    Error::Connect.raise(py, &error.to_string())
}

/// Why a message was not published or pushed.
pub fn publish_error(py: Python<'_>, error: &PublishError) -> PyErr {
    let class = match error {
        PublishError::Full => Error::Full,
        PublishError::NoSubscriber => Error::NoSubscriber,
        PublishError::TooLarge { .. } => Error::TooLarge,
        PublishError::Unknown(_) => Error::Unknown,
        PublishError::Unavailable(_) | PublishError::Other(_) => Error::Publish,
    };
    match error.may_pass().into_pyobject(py) {
        Ok(may_pass) => class.raise_with(py, &error.to_string(), &[("may_pass", may_pass.to_owned().into_any())]),
        Err(never) => match never {},
    }
}

/// What became of a batch.
pub fn batch_error(py: Python<'_>, error: &BatchError) -> PyErr {
    let attributes = || -> PyResult<[(&str, Bound<'_, PyAny>); 3]> {
        Ok([
            ("may_pass", error.error.may_pass().into_pyobject(py)?.to_owned().into_any()),
            ("done", error.done.into_pyobject(py)?.into_any()),
            ("unknown", error.unknown().collect::<Vec<_>>().into_pyobject(py)?.into_any()),
        ])
    };
    match attributes() {
        Ok(attributes) => {
            let raised = Error::Batch.raise_with(py, &error.to_string(), &attributes);
            raised.set_cause(py, Some(publish_error(py, &error.error)));
            raised
        }
        Err(e) => e,
    }
}

/// Why nothing can be received.
pub fn receive_error(py: Python<'_>, error: &ReceiveError) -> PyErr {
    let class = match error {
        ReceiveError::NotAcknowledged(_) => Error::NotAcknowledged,
        ReceiveError::Gone(_) => Error::Gone,
        ReceiveError::Damaged(_) | ReceiveError::Other(_) => Error::Receive,
    };
    class.raise(py, &error.to_string())
}

/// Why a message is not lent.
pub fn lend_error(py: Python<'_>, error: &LendError) -> PyErr {
    match error {
        LendError::NotHere(_) => Error::NotLent.raise(py, &error.to_string()),
        LendError::Receive(error) => receive_error(py, error),
    }
}

/// Why a request did not leave.
pub fn not_sent(py: Python<'_>, error: &SendError<Request>) -> PyErr {
    let may_pass = matches!(error, SendError::Full(_) | SendError::Disconnected(_));
    match may_pass.into_pyobject(py) {
        Ok(may_pass) => {
            Error::NotSent.raise_with(py, &error.to_string(), &[("may_pass", may_pass.to_owned().into_any())])
        }
        Err(never) => match never {},
    }
}

/// Why a session is over.
pub fn session_ended(py: Python<'_>, error: &ClientError) -> PyErr {
    let of_another = "give each program a session= of its own";
    let remedy = if error.is_of_another() { of_another } else { "open the orders again" };
    Error::SessionEnded.raise(py, &format!("{error}; {remedy}"))
}
