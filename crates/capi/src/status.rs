//! The result of a call: a number for programs, and a sentence for people.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use tickpath_bus::{BatchError, ConnectError, Fate, PublishError, ReceiveError};
use tickpath_market::Request;
use tickpath_oms_client::{ClientError, ClientSendError};

/// Outcome of a call. The numbers never change; later versions may add others. The same call can succeed later after
/// TP_UNAVAILABLE, TP_OUTCOME_UNKNOWN, TP_TOPIC_FULL and TP_NO_SUBSCRIBER; TP_GONE and TP_NOT_ACKNOWLEDGED are reported
/// once, and pulling continues.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_status {
    /// The call succeeded.
    TP_OK = 0,
    /// The call was wrong: a null pointer, a number outside its enum or range, or an invalid URL or name.
    TP_INVALID = 1,
    /// The transport, or the OMS, does not support the operation.
    TP_UNSUPPORTED = 2,
    /// The server does not answer, or refuses the connection.
    TP_CONNECT = 3,
    /// The topic already has a publisher, or the queue, which allows only one pusher, already has a pusher.
    TP_HAS_PUBLISHER = 4,
    /// The transport accepts nothing now; nothing of the message is published. For a request to an OMS: the connection
    /// is lost, or the OMS accepts requests more slowly than they are sent; the request was not sent.
    TP_UNAVAILABLE = 5,
    /// No answer arrived: the message may be published now or later. A resend function resolves it.
    TP_OUTCOME_UNKNOWN = 6,
    /// A subscriber is behind by the whole capacity of the topic; nothing of the message is published.
    TP_TOPIC_FULL = 7,
    /// A topic with the policy TP_POLICY_FAIL has no subscriber.
    TP_NO_SUBSCRIBER = 8,
    /// A message is larger than its topic or queue accepts, or a token is larger than its buffer.
    TP_TOO_LARGE = 9,
    /// The stored bytes of the topic are damaged.
    TP_DAMAGED = 10,
    /// The queue has lost its messages, or part of them.
    TP_GONE = 11,
    /// Delivered messages are not certainly acknowledged; they may be redelivered.
    TP_NOT_ACKNOWLEDGED = 12,
    /// The handle is in use: a callback used the handle that called it, or another thread uses it; give each thread its
    /// own handle. A close function that returns this has not freed the handle.
    TP_IN_USE = 13,
    /// The handle was opened before the process was forked. A close function has not freed the handle: it belongs to
    /// the parent process.
    TP_FORKED = 14,
    /// Internal error of the library: the handle can only be closed. If a close function returns this, the handle is
    /// freed.
    TP_PANIC = 15,
    /// Any other error, as tp_last_error describes it. It does not pass by itself.
    TP_OTHER = 16,
    /// The session with the OMS has ended, for the reason in tp_last_error; close the handle, and open another session.
    TP_ENDED = 17,
}

thread_local! {
    /// The sentence of this thread's last failure.
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Returns the error sentence of this thread's last failed call, with the remedy; an empty string if no call has
/// failed. The string belongs to the library and stays valid until the next call of this thread that fails, or the end
/// of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn tp_last_error() -> *const c_char {
    let sentence = LAST.try_with(|last| last.borrow().as_ref().map(|sentence| sentence.as_ptr()));
    sentence.ok().flatten().unwrap_or(c"".as_ptr())
}

#[derive(Debug)]
pub struct CallFailure {
    status: tp_status,
    sentence: String,
}

impl CallFailure {
    pub fn new(status: tp_status, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into() }
    }

    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(tp_status::TP_INVALID, sentence)
    }

    /// Creates the error of a null pointer that must not be null.
    #[cold]
    pub fn null(what: &str) -> Self {
        Self::invalid(format!("{what} is null; hand over a pointer"))
    }

    /// Stores the sentence for [`tp_last_error`]; returns the status.
    #[cold]
    #[inline(never)]
    pub fn store(self) -> tp_status {
        let sentence = c_text(&self.sentence);
        // A thread that is ending has no thread-local storage any more.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(sentence));
        self.status
    }
}

pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("its zeros are gone")
}

impl From<ConnectError> for CallFailure {
    fn from(error: ConnectError) -> Self {
        let status = match &error {
            ConnectError::Url(_) | ConnectError::Name(_) => tp_status::TP_INVALID,
            ConnectError::Unsupported { .. } => tp_status::TP_UNSUPPORTED,
            ConnectError::HasPublisher(_) => tp_status::TP_HAS_PUBLISHER,
            ConnectError::Server { .. } => tp_status::TP_CONNECT,
            ConnectError::Other(_) => tp_status::TP_OTHER,
        };
        Self::new(status, error.to_string())
    }
}

impl From<PublishError> for CallFailure {
    fn from(error: PublishError) -> Self {
        Self::new(status_of(&error), error.to_string())
    }
}

impl From<BatchError> for CallFailure {
    fn from(error: BatchError) -> Self {
        // A message in doubt takes precedence over other errors: the program must resolve it by resend.
        let status = match error.fates.contains(&Fate::Unknown) {
            true => tp_status::TP_OUTCOME_UNKNOWN,
            false => status_of(&error.error),
        };
        Self::new(status, error.to_string())
    }
}

impl From<ReceiveError> for CallFailure {
    fn from(error: ReceiveError) -> Self {
        let status = match &error {
            ReceiveError::Damaged(_) => tp_status::TP_DAMAGED,
            ReceiveError::NotAcknowledged(_) => tp_status::TP_NOT_ACKNOWLEDGED,
            ReceiveError::MessagesLost(_) => tp_status::TP_GONE,
            ReceiveError::Other(_) => tp_status::TP_OTHER,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ClientError> for CallFailure {
    fn from(error: ClientError) -> Self {
        let status = match &error {
            ClientError::Address(_) => tp_status::TP_INVALID,
            ClientError::Clock(_) => tp_status::TP_OTHER,
            ClientError::Unreachable { .. }
            | ClientError::Tls { .. }
            | ClientError::LogonTimeout { .. }
            | ClientError::Logon(_)
            | ClientError::Refused { .. }
            | ClientError::LoggedOut(_)
            | ClientError::Frame(_)
            | ClientError::Protocol(_)
            | ClientError::Lost(_)
            | ClientError::Closed
            | ClientError::Unanswered(_)
            | ClientError::Silent(_) => tp_status::TP_CONNECT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ClientSendError<Request>> for CallFailure {
    fn from(error: ClientSendError<Request>) -> Self {
        let status = match &error {
            ClientSendError::Full(_) | ClientSendError::Disconnected(_) => tp_status::TP_UNAVAILABLE,
            ClientSendError::Malformed { .. } => tp_status::TP_INVALID,
            ClientSendError::Unsupported(_) => tp_status::TP_UNSUPPORTED,
        };
        Self::new(status, error.to_string())
    }
}

fn status_of(error: &PublishError) -> tp_status {
    match error {
        PublishError::Full => tp_status::TP_TOPIC_FULL,
        PublishError::NoSubscriber => tp_status::TP_NO_SUBSCRIBER,
        PublishError::TooLarge { .. } => tp_status::TP_TOO_LARGE,
        PublishError::Unavailable(_) => tp_status::TP_UNAVAILABLE,
        PublishError::Unknown(_) => tp_status::TP_OUTCOME_UNKNOWN,
        PublishError::Other(_) => tp_status::TP_OTHER,
    }
}
