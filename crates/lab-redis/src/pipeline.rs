//! `pipeline`: Redis commands one by one and in pipelines, over sockets of our own.
//!
//! ```text
//!   generator (generator's CPU)                        server (system's CPU)
//!   depth commands ───────── one write ──────────────> read, execute each, keep the replies
//!   depth replies  <── as few reads as it goes ─────── write
//!     └──────────────── round_trip ───────────────┘
//! ```
//! Each connection waits for all replies before it sends the next batch: a closed loop, which shows the time of a
//! service and not that of a queue, and the run says so. With a rate, batches leave at intended times instead. Valid
//! only if every reply came and was no error, numbers that count up came in their order, the number at the end is
//! right, and, with a rate, the generator kept it and was punctual.
//!
//! | file              | what it holds                                                              |
//! |-------------------|----------------------------------------------------------------------------|
//! | `run.rs`          | one run, from the key to the result                                        |
//! | `settings.rs`     | what it is to be, and what is possible                                     |
//! | `target.rs`       | the server, and the key that a run has on it                               |
//! | `command.rs`      | what is sent                                                               |
//! | `load.rs`         | what is to be sent, over which connections, and how far it is              |
//! | `generator.rs`    | the process that sends it                                                  |
//! | `in_turn.rs`, `side_by_side.rs` | how it does: over one connection, over many                  |
//! | `replies.rs`      | what comes back, counted                                                   |
//! | `usage.rs`        | processor time, system calls and context switches of both ends             |
//! | `assemble.rs`     | a run of all that                                                          |
//! | `long.rs`         | a million commands in one pipeline, and what the server holds for it       |
//! | `against.rs`      | the same beside redis-benchmark                                            |
//! | `findings.rs`     | what the runs say together: gain, knee, why one by one is slow             |
//! | `control.rs`      | logging in; asking the server one thing at a time                          |

mod against;
mod assemble;
mod command;
mod control;
mod findings;
mod generator;
mod in_turn;
mod load;
mod long;
mod replies;
mod run;
mod settings;
mod side_by_side;
mod target;
mod usage;

pub use against::against_redis_benchmark;
pub use command::{Command, ParseCommandError};
pub use findings::{compare, place_knees, why_depth_one_is_slow};
pub use load::PipelineRole;
pub use long::{BATCH, LONG, long};
pub use run::run;
pub use settings::{Client, ParseClientError, Part, Settings};
pub use target::Target;
