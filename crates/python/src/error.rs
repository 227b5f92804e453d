//! Exceptions, whose classes are defined in Python, in `tickpath.errors`.

use std::fmt::Display;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyType};
use tickpath_bus::{BatchError, LendError, PublishError, ReceiveError};
use tickpath_market::Request;
use tickpath_oms_client::{ClientError, ClientSendError};

/// A class of `tickpath.errors`, by its name there.
#[derive(Debug, Clone, Copy)]
pub enum ErrorClass {
    /// A connection failed, or a request was refused.
    ConnectError,
    /// A message was not published, or is in doubt.
    PublishError,
    /// A topic is full.
    TopicFull,
    /// No subscriber on a topic with policy `fail`.
    NoSubscriber,
    /// A message is too long.
    TooLarge,
    /// A message is in doubt.
    OutcomeUnknown,
    /// A batch was published in part, or may have been.
    BatchError,
    /// Receiving failed.
    ReceiveError,
    /// A topic lends no messages.
    NotLent,
    /// Messages that were handed over are not acknowledged.
    NotAcknowledged,
    /// The messages of a queue are gone.
    Gone,
    /// A request was not sent.
    NotSent,
    /// A session with an OMS has ended for good.
    SessionEnded,
    /// The handle is closed.
    Closed,
    /// Another thread is using the handle.
    InUse,
    /// The handle was opened before a fork.
    Forked,
}

impl ErrorClass {
    /// Creates the exception with this sentence.
    pub fn raise(self, py: Python<'_>, sentence: &str) -> PyErr {
        self.raise_with(py, sentence, &[])
    }

    /// Creates the exception with this sentence and these attributes.
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
        Ok(module.bind(py).getattr(format!("{self:?}"))?.cast_into::<PyType>()?)
    }
}

/// Returns the attribute that shows whether a later attempt may succeed.
fn may_pass(py: Python<'_>, is_transient: bool) -> (&'static str, Bound<'_, PyAny>) {
    ("may_pass", PyBool::new(py, is_transient).to_owned().into_any())
}

/// Creates the exception for a failure to open a connection, publisher, subscriber, queue or log.
pub fn connect_error(py: Python<'_>, error: &dyn Display) -> PyErr {
    ErrorClass::ConnectError.raise(py, &error.to_string())
}

/// Creates the exception for a message that was not published or pushed.
pub fn publish_error(py: Python<'_>, error: &PublishError) -> PyErr {
    let class = match error {
        PublishError::Full => ErrorClass::TopicFull,
        PublishError::NoSubscriber => ErrorClass::NoSubscriber,
        PublishError::TooLarge { .. } => ErrorClass::TooLarge,
        PublishError::Unknown(_) => ErrorClass::OutcomeUnknown,
        PublishError::Unavailable(_) | PublishError::Other(_) => ErrorClass::PublishError,
    };
    class.raise_with(py, &error.to_string(), &[may_pass(py, error.is_transient())])
}

/// Creates the exception for a batch, with the fate of its messages.
pub fn batch_error(py: Python<'_>, error: &BatchError) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let attributes = [
            may_pass(py, error.error.is_transient()),
            ("done", error.done.into_pyobject(py)?.into_any()),
            ("unknown", error.unknown().collect::<Vec<_>>().into_pyobject(py)?.into_any()),
        ];
        let raised = ErrorClass::BatchError.raise_with(py, &error.to_string(), &attributes);
        raised.set_cause(py, Some(publish_error(py, &error.error)));
        Ok(raised)
    };
    make().unwrap_or_else(|e| e)
}

/// Creates the exception for a failure to receive.
pub fn receive_error(py: Python<'_>, error: &ReceiveError) -> PyErr {
    let class = match error {
        ReceiveError::NotAcknowledged(_) => ErrorClass::NotAcknowledged,
        ReceiveError::MessagesLost(_) => ErrorClass::Gone,
        ReceiveError::Damaged(_) | ReceiveError::Other(_) => ErrorClass::ReceiveError,
    };
    class.raise(py, &error.to_string())
}

/// Creates the exception for a message that cannot be lent.
pub fn lend_error(py: Python<'_>, error: &LendError) -> PyErr {
    match error {
        LendError::Unsupported(_) => ErrorClass::NotLent.raise(py, &error.to_string()),
        LendError::Receive(error) => receive_error(py, error),
    }
}

/// Creates the exception for a request that was not sent.
pub fn not_sent(py: Python<'_>, error: &ClientSendError<Request>) -> PyErr {
    let is_transient = matches!(error, ClientSendError::Full(_) | ClientSendError::Disconnected(_));
    ErrorClass::NotSent.raise_with(py, &error.to_string(), &[may_pass(py, is_transient)])
}

/// Creates the exception for a session that has ended.
pub fn session_ended(py: Python<'_>, error: &ClientError) -> PyErr {
    let of_another = "give each program a session= of its own";
    let remedy = if error.is_session_taken() { of_another } else { "open the orders again" };
    ErrorClass::SessionEnded.raise(py, &format!("{error}; {remedy}"))
}
