//! `queue`: messages from one pusher to one or more pullers.
//!
//! ```text
//!   pusher (generator's CPU)            queue              pullers (the other CPUs)
//!   number ─ called ─ push ─ returned ───────────────────── called ─ pull ─ returned ─ acknowledge
//!                               └──────────── in_queue ─────────────────────────┘
//! ```
//! A message is a JSON record with its number in it. It cannot carry when its own push will have returned: so each
//! process writes down its calls, pullers also the numbers, and the parent joins the two. All messages of a batch count
//! from the batch's return. What a transport fetches while its puller waits, `pull` hands over without another trip.
//!
//! Valid only if every message came, once where that is promised, and, at a rate, if the generator kept it. At full
//! speed the loop is closed, and says so: the next push begins when the last one is confirmed.
//!
//! | file          | what it holds                                                  |
//! |---------------|----------------------------------------------------------------|
//! | `record.rs`   | the messages                                                   |
//! | `settings.rs` | how it is run, and which settings make no run                  |
//! | `queues.rs`   | how queues are made, looked at and removed                     |
//! | `rows.rs`     | what the processes wrote down                                  |
//! | `pusher.rs`   | the pusher's process                                           |
//! | `puller.rs`   | a puller's process                                             |
//! | `ends.rs`     | both at work, and what they report                             |
//! | `redis_py.rs` | the same two in Python                                         |
//! | `series.rs`   | rates and backlog over the time of the run                     |
//! | `verdict.rs`  | whether the run kept the rules, and the pullers up             |
//! | `join.rs`     | from what they wrote down to a run                             |
//! | `run.rs`      | all of it, once                                                |
//! | `plan.rs`     | how many messages fit the time                                 |
//! | `alone.rs`    | one side alone, for containers                                 |

mod alone;
mod ends;
mod join;
mod plan;
mod puller;
mod pusher;
mod queues;
mod record;
mod redis_py;
mod rows;
mod run;
mod series;
mod settings;
mod verdict;

pub use alone::{Alone, pull_alone, push_alone};
pub use plan::{Plan, plan};
pub use puller::QueuePullerRole;
pub use pusher::QueuePusherRole;
pub use record::LEAST_BYTES;
pub use run::run;
pub use settings::{Client, Keys, PullVariant, PushVariant, RedisPy, Settings, USUAL_S, is_list};
