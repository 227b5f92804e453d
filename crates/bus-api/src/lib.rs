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
//! * **Loss is counted**: a subscriber gets each loss as a [`SubscriptionEvent::Gap`], with the number of lost messages
//!   where the transport knows it. On brokers each message has its publisher's sequence number ([`MessageId`]), by
//!   which a subscriber detects gaps and drops duplicates.
//! * **An error states the fate of the message**: published, not published, or in doubt ([`PublishError::Unknown`]). A
//!   message in doubt can be [sent again](Publisher::resend) as the same message, and each subscriber gets it once.
//! * **A topic has one publisher** under [`Capabilities::single_publisher`]: a second publisher is refused, and
//!   the error names the first.
//! * **Start order is free**: a subscriber that starts before its publisher gets everything from the first message on,
//!   and can query meanwhile whether a publisher is alive ([`Subscriber::publisher_state`]).
//! * **Nothing is left behind**: a publisher or subscriber that is killed at any moment blocks no later start.
//! * **Resume**: where there is history, a subscriber returns [its position](Subscriber::resume_token), and another
//!   subscriber [starts after it](StartPosition::After), without duplicates; messages lost since then are a gap.
//! * **Lending**: where messages need no copy ([`Capabilities::lends`]), a subscriber can
//!   [read a message in place](Subscriber::lend) for as long as it holds it.
//!
//! A [queue](Pusher) gives each message to one of its pullers, at most once or at least once ([`DeliveryGuarantee`]).
//!
//! A program that knows this contract works with each transport:
//!
//! ```
//! use tickpath_bus_api::{Connection, Policy, StartPosition, SubscriptionEvent, TopicConfig};
//! use tickpath_clock::Wait;
//!
//! fn round_trip(bus: &dyn Connection) -> Result<usize, Box<dyn std::error::Error>> {
//!     let mut subscriber = bus.subscriber("ticks", StartPosition::Now, Wait::Block)?;
//!     let mut publisher = bus.publisher("ticks", &TopicConfig::new(Policy::Overwrite))?;
//!     publisher.publish(0, 200, b"101.5")?;
//!     subscriber.wait(1_000_000_000);
//!     let received = subscriber.poll(64, &mut |event| {
//!         if let SubscriptionEvent::Message(message) = event {
//!             println!("{} bytes of kind {}", message.payload.len(), message.kind);
//!         }
//!     })?;
//!     Ok(received)
//! }
//! ```
//!
//! An adapter exports the facts that are needed before a connection exists (URLs, port, modes) as a [`Transport`].
//! [`url`] parses all URLs, [`wire`] is the header of every message on a broker, [`Backoff`] the pause before a retry.
//!
//! # Invariants
//!
//! * A transport declares its limits in [`Capabilities`] or [`QueueCapabilities`], and refuses everything else with a
//!   clear error.
//! * Only its owner resends a message that may have arrived, or the adapter where the broker drops the second copy.
//! * A message on a broker begins with the header of [`wire`] (stamp, kind, publisher id, sequence number), so that a
//!   bridge can carry it on. A message without the header belongs to another program: a subscriber gets it as an event
//!   of its own, a puller skips or refuses it, unless it was opened to take such messages.
//! * A reconnect that may have lost messages is a gap that the subscriber sees.
//! * A lent message holds its own bytes: it needs neither its subscriber nor its connection, and a fork may read it.
//! * An adapter has one table of its server's answers: a transient one is waited for, a permanent one is reported.
//!   Other facts about a server (version, settings) come from its own adapter ([`Connection::server_description`]).

pub mod adaptive;
mod advice;
mod backoff;
pub mod conformance;
mod connection;
pub mod details;
mod error;
mod gap;
mod lending;
mod mailbox;
pub mod message_id;
mod outage;
mod queue;
mod token;
mod topic;
mod topic_names;
mod transport;
pub mod url;
pub mod wire;

pub use advice::{Advice, SettingCost};
pub use backoff::{Backoff, ReconnectBackoff};
pub use connection::{Connection, ServerDescription};
pub use error::{BatchError, ConnectError, Fate, LendError, PublishError, ReceiveError};
pub use gap::{GAP_KIND, Gap};
pub use lending::{LendOutcome, LentMessage};
pub use mailbox::Mailbox;
pub use message_id::{MessageId, MessageIdTracker, Numbering};
pub use outage::Outage;
pub use queue::{DeliveryGuarantee, PulledMessage, Puller, Pusher, QueueCapabilities, QueueConfig, dead_letter_queue};
pub use token::{InvalidToken, ResumeToken};
pub use topic::{
    Capabilities, ForeignMessage, Message, Policy, Publisher, PublisherState, StartPosition, Subscriber,
    SubscriptionEvent, TopicConfig,
};
pub use topic_names::TopicNames;
pub use transport::Transport;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
