//! The contract of every transport: topics, queues, and the promises that each adapter keeps.
//!
//! ```text
//!   connect(url) ──> Connection ──publisher(topic)──>  Publisher ── publish(stamp, kind, payload)
//!                        └────────subscriber(topic)──> Subscriber ─ poll(handler) ─> Message | Foreign | Gap
//! ```
//!
//! The promises, which [`conformance`] runs against each transport:
//!
//! * **Order**: a subscriber sees one publisher's messages in the order of publishing, each whole and at most once.
//! * **Loss is counted**: a subscriber gets each loss as an [`Event::Gap`], with the number of lost messages where the
//!   transport knows it. On brokers each message has its publisher's sequence number ([`Origin`]), by which a
//!   subscriber detects gaps.
//! * **An error states the fate of the message**: published, not published, or in doubt ([`PublishError::Unknown`]). A
//!   message in doubt can be [sent again](Publisher::resend) as the same message, and each subscriber gets it once.
//! * **A topic has one publisher** where [`Capabilities::single_publisher`] says so: a second publisher is refused, and
//!   the error names the first.
//! * **Start order is free**: a subscriber that starts before its publisher gets everything from the first message on,
//!   and can query meanwhile whether a publisher is alive ([`Subscriber::publisher`]).
//! * **Nothing is left behind**: a publisher or subscriber that is killed at any moment blocks no later start.
//! * **Resume**: where there is history, a subscriber returns [its position](Subscriber::token), and another subscriber
//!   [starts after it](Start::After), without duplicates; messages lost since then are a gap.
//! * **Lending**: where messages need no copy ([`Capabilities::lends`]), a subscriber can
//!   [read a message in place](Subscriber::lend) for as long as it holds it.
//!
//! A [queue](Pusher) gives each message to one of its pullers, at most once or at least once ([`Delivery`]).
//!
//! An adapter declares the limits of its transport in [`Capabilities`]; the suite checks that it refuses the rest with
//! a clear error. Facts needed before a connection exists (URLs, port, modes) are in the adapter's [`Transport`].

pub mod adaptive;
mod advice;
pub mod conformance;
mod connection;
pub mod details;
mod error;
mod gap;
mod lent;
mod mailbox;
mod names;
pub mod origin;
mod outage;
mod pause;
mod queue;
mod token;
mod topic;
mod transport;
pub mod url;
pub mod wire;

pub use advice::{Advice, Cost};
pub use connection::{About, Connection};
pub use error::{BatchError, ConnectError, Fate, LendError, PublishError, ReceiveError};
pub use gap::{GAP_KIND, Gap};
pub use lent::{Lending, Lent};
pub use mailbox::Mailbox;
pub use names::Names;
pub use origin::{Numbering, Origin, OriginTracker};
pub use outage::Outage;
pub use pause::{Pause, Pauses};
pub use queue::{Delivery, Pulled, Puller, Pusher, QueueCapabilities, QueueConfig, dead_letter_queue};
pub use token::{NoToken, ResumeToken};
pub use topic::{
    Capabilities, Event, Foreign, Message, Policy, Publisher, PublisherState, Start, Subscriber, TopicConfig,
};
pub use transport::Transport;
