//! What became of a call: a number for programs, a sentence for people.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use tickpath_bus::{BatchError, ConnectError, Fate, PublishError, ReceiveError};
use tickpath_client::{ClientError, SendError};
use tickpath_market::Request;

/// What became of a call. The numbers stay; later versions may add others. The same call can succeed later after
/// TP_UNAVAILABLE, TP_OUTCOME_UNKNOWN, TP_TOPIC_FULL and TP_NO_SUBSCRIBER; TP_GONE and TP_NOT_ACKNOWLEDGED are told once, and
/// pulling goes on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_status {
    /// It is done.
    TP_OK = 0,
    /// The call was wrong: a null pointer, a number that is none, a URL or a name that cannot be.
    TP_INVALID = 1,
    /// The transport, or the OMS, cannot do this at all.
    TP_UNSUPPORTED = 2,
    /// The server does not answer, or refuses.
    TP_CONNECT = 3,
    /// Somebody else publishes the topic, or pushes to the queue, which has one who does.
    TP_HAS_PUBLISHER = 4,
    /// The transport takes nothing now; nothing of the message is published. Of a request: the OMS is not there, or does not
    /// take requests as fast as they come; it has not left.
    TP_UNAVAILABLE = 5,
    /// No answer came: the message may be published, or be so later. Resend finds out.
    TP_OUTCOME_UNKNOWN = 6,
    /// A subscriber is a whole topic behind; nothing of the message is published.
    TP_TOPIC_FULL = 7,
    /// Nobody is subscribed to a topic whose policy is TP_POLICY_FAIL.
    TP_NO_SUBSCRIBER = 8,
    /// A message, or a token's buffer, is of a size that does not fit.
    TP_TOO_LARGE = 9,
    /// The topic's own bytes are damaged.
    TP_DAMAGED = 10,
    /// What a queue held is gone, or part of it.
    TP_GONE = 11,
    /// What was handed over is not surely acknowledged; it may come again.
    TP_NOT_ACKNOWLEDGED = 12,
    /// The handle is in use: a callback used the handle that called it, or another thread does; give each thread its own. A
    /// close function has not freed it.
    TP_IN_USE = 13,
    /// The handle was opened before the process was forked. A close function has not freed it: it is the parent's.
    TP_FORKED = 14,
    /// A mistake of the library itself; the handle can be closed, and nothing else. From a close function: it is freed.
    TP_PANIC = 15,
    /// Anything else, as the sentence says. It does not pass by itself.
    TP_OTHER = 16,
    /// The session with the OMS is over, as the sentence says; close it, and open another one.
    TP_ENDED = 17,
}

thread_local! {
    /// The sentence of this thread's last failure.
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// What the last call of this thread that failed has to say: a sentence with the remedy, empty if none has failed. It stays
/// valid until the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn tp_last_error() -> *const c_char {
    let told = LAST.try_with(|last| last.borrow().as_ref().map(|sentence| sentence.as_ptr()));
    told.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    status: tp_status,
    sentence: String,
}

impl Failure {
    /// Of this class, with this sentence.
    pub fn new(status: tp_status, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into() }
    }

    /// The call was wrong.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(tp_status::TP_INVALID, sentence)
    }

    /// A pointer is null that may not be.
    #[cold]
    pub fn null(what: &str) -> Self {
        Self::invalid(format!("{what} is null; hand over a pointer"))
    }

    /// Keeps the sentence for [`tp_last_error`], and gives the status.
    #[cold]
    #[inline(never)]
    pub fn tell(self) -> tp_status {
        let sentence = c_text(&self.sentence);
        // A thread that ends has no place for it any more.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(sentence));
        self.status
    }
}

/// Text as C reads it.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("its zeros are gone")
}

impl From<ConnectError> for Failure {
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

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self::new(status_of(&error), error.to_string())
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        // Whatever else went wrong, who has sent something that may be there is to ask by resend.
        let status = match error.rest.contains(&Fate::Unknown) {
            true => tp_status::TP_OUTCOME_UNKNOWN,
            false => status_of(&error.error),
        };
        Self::new(status, error.to_string())
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Self {
        let status = match &error {
            ReceiveError::Damaged(_) => tp_status::TP_DAMAGED,
            ReceiveError::NotAcknowledged(_) => tp_status::TP_NOT_ACKNOWLEDGED,
            ReceiveError::Gone(_) => tp_status::TP_GONE,
            ReceiveError::Other(_) => tp_status::TP_OTHER,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let status = match &error {
            ClientError::Address(_) => tp_status::TP_INVALID,
            ClientError::Clock(_) => tp_status::TP_OTHER,
            ClientError::Unreachable { .. }
            | ClientError::Tls { .. }
            | ClientError::Late { .. }
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

impl From<SendError<Request>> for Failure {
    fn from(error: SendError<Request>) -> Self {
        let status = match &error {
            SendError::Full(_) | SendError::Disconnected(_) => tp_status::TP_UNAVAILABLE,
            SendError::Malformed { .. } => tp_status::TP_INVALID,
            SendError::Older(_) => tp_status::TP_UNSUPPORTED,
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
