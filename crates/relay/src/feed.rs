//! Carrier of market data from an exchange onto a topic.
//!
//! ```text
//!   connection 0 ── frames, parser ──┐   first arrivals   ┌── quotes, trades ────────────┐
//!                                    ├──> race ───────────┤                              ├──> topic
//!   connection 1 ── frames, parser ──┘                    └── updates ──> book order ────┘
//! ```
//!
//! One thread polls one or two connections of a [`Feed`](tickpath_feed::Feed), connects them again when they are lost,
//! and publishes each message once, from the connection that brings it first. A spare one takes over before an announced
//! end. Best bids and offers are published as `TopOfBook`, trades as `Trade`, an update of a book as a `BookLevel` a
//! level in one batch, and events of the feed as `FeedStatus`. [`replay_frames`] does so with a file of raw frames.
//!
//! # Validity of books
//!
//! * A book is valid from its `BookValid` to its next `Gap`. Nothing of it is published in between except the snapshot
//!   and its updates, which end with `BookValid`.
//! * A carrier begins with a `Gap` of all instruments: an earlier one may have been killed.
//! * A message that cannot be read, and a channel that the exchange ends, are a `Gap` of their instrument. Its last best
//!   bid and offer is out of date, too, until the next one.
//! * After a gap one connection is asked for another snapshot. If that connection ends first, the other one is asked.
//! * When the last connection ends, each valid book gets a `Gap` after the `Disconnected`. So does each valid book at
//!   the end of the carrier.
//!
//! # Losses
//!
//! A carrier of market data cannot wait for a topic: an exchange ends a connection that is not read, and late data
//! misleads. A message that the topic does not accept at once is lost, and so is one that stays in doubt after it was
//! sent again. Losses are counted, and published as a gap message as soon as the topic accepts messages again. Each
//! book is then invalid until its next snapshot, because a subscriber cannot know the instrument of a lost message.

mod config;
mod frame_replay;
mod live;
mod market_carrier;
mod market_order;
mod meter;
mod publication;

pub use config::FeedRelayConfig;
pub use frame_replay::replay_frames;
pub use live::run;
pub use meter::{ConnectionTotals, FeedMeter, FeedTotals, StageDelays};
