//! `pipeline`: Redis commands one by one and in pipelines, over sockets of our own.
//!
//! ```text
//!   generator (generator's CPU)                        server (system's CPU)
//!   depth commands ───────── one write ──────────────> read, execute each, keep the replies
//!   depth replies  <── as few reads as it goes ─────── write
//!     └──────────────── round_trip ───────────────┘
//! ```
//! Each connection waits for all replies before it sends the next batch: a closed loop, which shows the service time
//! without queueing, and the run says so. With a rate, batches leave at intended times instead. A run is valid only if
//! every reply arrived and was no error, counting replies came in order, the final number is right, and, with a rate,
//! the generator kept it and was punctual.
//!
//! | file              | contents                                                                   |
//! |-------------------|----------------------------------------------------------------------------|
//! | `run.rs`          | one run, from the key to the result                                        |
//! | `settings.rs`     | settings, and the rules that refuse impossible ones                        |
//! | `target.rs`       | the server, and the key of a run on it                                     |
//! | `command.rs`      | the commands                                                               |
//! | `load.rs`         | the generator's work, its connections and its progress                     |
//! | `generator.rs`    | the generator's process                                                    |
//! | `sequential.rs`, `concurrent.rs` | its loop: over one connection, over many                     |
//! | `replies.rs`      | parsing and counting replies                                               |
//! | `usage.rs`        | CPU time, system calls and context switches of both ends                   |
//! | `assemble.rs`     | from all reports to a run                                                  |
//! | `long.rs`         | a million commands in one pipeline, and the server's memory for it         |
//! | `redis_benchmark.rs`      | the same load beside redis-benchmark                                       |
//! | `findings.rs`     | findings over all runs: gain, knee, why one by one is slow                 |
//! | `control.rs`      | logging in; sending the server one command at a time                       |

mod assemble;
mod command;
mod concurrent;
mod control;
mod findings;
mod generator;
mod load;
mod long;
mod redis_benchmark;
mod replies;
mod run;
mod sequential;
mod settings;
mod target;
mod usage;

pub use command::{ParseCommandError, RedisCommand};
pub use findings::{add_knees, compare, why_depth_one_is_slow};
pub use load::PipelineRole;
pub use long::{BATCH, LONG_PIPELINE, compare_long};
pub use redis_benchmark::compare_redis_benchmark;
pub use run::run;
pub use settings::{BenchPart, PipelineClient, PipelineClientError, Settings};
pub use target::PipelineTarget;
