//! The contract of every transport: what publishing and subscribing mean, whoever carries the message.
//!
//! ```text
//!   connect(url) ──> Connection ──publisher(topic)──>  Publisher ── publish(stamp, kind, payload)
//!                        └────────subscriber(topic)──> Subscriber ─ poll(handler) ─> Message | Foreign | Gap
//! ```
//!
//! The promises, which [`conformance`] runs against each transport:
//!
//! * **Order**: a subscriber sees one publisher's messages in the order of publishing, each whole and at most once.
//! * **Loss is counted**: what a subscriber misses it learns as an [`Event::Gap`]; a transport that knows how many says so.
//!   On brokers each message has a number of its publisher ([`Origin`]), by which a subscriber sees what is missing.
//! * **An error says what became of the message**: it is published, it is not, or nobody knows
//!   ([`PublishError::Unknown`]). What was unknown can be [sent again](Publisher::resend) as the same message, and comes once.
//! * **A topic has one publisher** where [`Capabilities::single_publisher`] says so: a second one is refused by name.
//! * **Start order is free**: a subscriber that starts before its publisher gets everything from the first message on, and
//!   can ask meanwhile whether anybody publishes ([`Subscriber::publisher`]).
//! * **Nothing is left behind**: killing a publisher or a subscriber at any moment stops nobody's next start.
//!
//! * **Who stops can go on**: where there is history, a subscriber says [where it stands](Subscriber::token), and another
//!   one [starts behind it](Start::After), with nothing twice, and what is gone since told.
//!
//! * **What is lent stays**: where messages need not be copied ([`Capabilities::lends`]), one can be
//!   [read where it lies](Subscriber::lend) for as long as it is held.
//!
//! A [queue](Pusher) gives each message to one of its pullers, once or at least once, by name.
//!
//! What a transport truly cannot do it declares in [`Capabilities`]; the suite then checks that it refuses, in words.
//! What is to be known before anybody connects (URLs, port, ways) its adapter tells in a [`Transport`].

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
