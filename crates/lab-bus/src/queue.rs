//! `queue`: messages from one pusher to one or more pullers.
//!
//! ```text
//!   pusher (generator's CPU)            queue              pullers (the other CPUs)
//!   number ─ called ─ push ─ returned ───────────────────── called ─ pull ─ returned ─ acknowledge
//!                               └──────────── in_queue ─────────────────────────┘
//! ```
//! A message is a JSON record with its number in it. It cannot carry the return time of its own push, so each process
//! records its calls, pullers also the numbers, and the parent joins both. All messages of a batch count from the
//! batch's return; messages that a transport prefetched while its puller waited return from `pull` without another
//! round trip.
//!
//! A run is valid only if every message arrived, once where the delivery promises that, and, at a rate, if the
//! generator kept it. At full speed the loop is closed, and the result says so: the next push begins when the last push
//! is confirmed.
//!
//! | file          | contents                                                       |
//! |---------------|----------------------------------------------------------------|
//! | `record.rs`   | the messages                                                   |
//! | `settings.rs` | settings, and the rules that refuse impossible ones            |
//! | `queues.rs`   | making, inspecting and removing queues                         |
//! | `rows.rs`     | the rows that the processes record                             |
//! | `processes.rs`, `pusher.rs`, `puller.rs` | the processes of a run              |
//! | `redis_py.rs` | the same two processes in Python                               |
//! | `series.rs`   | rates and backlog over the time of the run                     |
//! | `verdict.rs`  | the run's rules, and whether the pullers kept up               |
//! | `run.rs`, `join.rs` | a whole run; from the recorded rows to a run             |
//! | `ratios.rs`         | the ratios of targets that took turns                   |
//! | `plan.rs`     | the number of messages that fits the time                      |
//! | `standalone.rs` | one side alone, for containers                                 |

mod join;
mod plan;
mod processes;
mod puller;
mod pusher;
mod queues;
mod ratios;
mod record;
mod redis_py;
mod rows;
mod run;
mod series;
mod settings;
mod standalone;
mod verdict;

pub use plan::{QueuePlan, plan_count};
pub use puller::QueuePullerRole;
pub use pusher::QueuePusherRole;
pub use ratios::compare_rates;
pub use record::MIN_RECORD_BYTES;
pub use run::run;
pub use settings::{DEFAULT_S, PullVariant, PushVariant, QueueClient, QueueSharing, RedisPy, Settings, is_list};
pub use standalone::{StandaloneSettings, pull_standalone, push_standalone};
