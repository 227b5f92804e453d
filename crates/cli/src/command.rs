//! The command line. The help texts come from here, and from the module of each command.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::args::OutputArgs;

/// Carries a market tick to an order at a venue, and shows where each nanosecond went.
#[derive(Debug, Parser)]
#[command(name = "tickpath", version, propagate_version = true, max_term_width = 100)]
pub struct CliArgs {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value a process")]
pub enum CliCommand {
    /// The path on this machine, with and without a broker, and where the time goes
    Demo(crate::demo::DemoArgs),
    /// Measure a workload
    Bench(BenchCommandArgs),
    /// Render result files again
    Report(crate::report::ReportArgs),
    /// Where the time goes for this broker and client, and what each change would gain
    Explain(crate::explain::ExplainArgs),
    /// Two builds side by side: what changed, by how much, and what is only noise
    Compare(crate::compare::CompareArgs),
    /// Every lie that the instrument must catch, planted and told
    Check(crate::check::CheckArgs),
    /// Results of one machine over time: each figure, and at which commit it changed
    History(crate::history::HistoryArgs),
    /// Send an order to an OMS, change it, take it back
    Order(crate::order::OrderCommandArgs),
    /// The open orders of an order journal, and what becomes of them; safe while its OMS trades
    Orders(crate::orders::OpenOrdersArgs),
    /// Orders, fills and profit of a day, from an order journal: tables, CSV, JSON; safe while its OMS trades
    Blotter(tickpath_oms_blotter::command::BlotterArgs),
    /// Reports of other sessions, a line each, by the session of a user with a drop copy
    DropCopy(crate::drop_copy::DropCopyArgs),
    /// An OMS as a server: check its configuration, make a first one, change its users
    Oms(crate::oms::OmsArgs),
    /// A running OMS at a glance: orders, positions, sessions, lines, latency now
    Top(crate::top::TopArgs),
    /// A simulated exchange as a process: its orders come from an OMS
    Exchange(crate::exchange::ExchangeArgs),
    /// Look into logs and journals
    Log(LogArgs),
    /// Settings of this host and its brokers that cost latency or safety, and the remedy of each
    Doctor(crate::doctor::DoctorArgs),
    /// A process of a bench
    #[command(hide = true)]
    Child {
        /// The process to end with
        parent: u32,
    },
}

#[derive(Debug, ClapArgs)]
pub struct BenchCommandArgs {
    #[command(subcommand)]
    pub workload: Workload,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value a process")]
pub enum Workload {
    /// The floor: clock, cache line, loopback, and what the host steals from a spinning thread
    Host(crate::bench::host::HostArgs),
    /// Messages from one process to another
    Pubsub(crate::bench::pubsub::PubsubArgs),
    /// Messages from one pusher to pullers that share the work
    Queue(crate::bench::queue::QueueArgs),
    /// Commands in pipelines of 1 to 1,000,000 to a Redis server: throughput, memory, system calls, the knee
    Pipeline(crate::bench::pipeline::PipelineArgs),
    /// Set a key, get it again: what each client library gets out of a Redis server, near and far
    Clients(crate::bench::clients::ClientsArgs),
    /// From a tick to an order at a venue, every hop
    Path(crate::bench::path::PathArgs),
    /// Batches of orders through an OMS, in the form of the f9omstw benchmark
    Orders(crate::bench::orders::OrdersArgs),
}

#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// The topics in shared memory, or one log: policy, sizes, writer, readers and how far they are
    Ls {
        /// shm://NAME, file:///PATH or a folder
        log: Option<String>,
    },
    /// Remove a topic or a recording that no process has open. What an OMS made stays
    Rm {
        /// shm://NAME, file:///PATH or a folder
        log: String,
    },
    /// Print messages, one a line
    Cat(crate::log::cat::CatArgs),
    /// Read everything and check it: frames, checksums, and, in a journal, that a replay comes to the same digests and its
    /// snapshots are good
    Verify {
        /// shm://NAME, file:///PATH or a folder
        log: String,
    },
    /// The latency tables of an order journal, from the journal alone
    Analyse {
        /// The journal's folder
        dir: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Make a snapshot of an order journal as far as it goes: the next start of the OMS reads it, and what came since
    Snapshot {
        /// The journal's folder
        dir: PathBuf,
    },
    /// Write a topic's messages to a folder as they come, losses included
    Record(crate::log::record::RecordArgs),
    /// Write a file of market data to a folder, as a recording with the times of the file
    Import(crate::log::import::ImportArgs),
    /// Publish a recording again, at its own times or others
    Replay(crate::log::replay::ReplayArgs),
    /// Carry topics from one bus to another, until Ctrl-C. Into a topic that is there already they go behind what it holds
    Bridge(crate::log::bridge::BridgeArgs),
}
