//! The command line. The help texts come from here, and from the module of each command.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use tickpath_cli_terminal::args::OutputArgs;

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
    /// Measure the path from a tick to an order on this machine, with and without a broker, and show where the time
    /// goes
    Demo(crate::demo::DemoArgs),
    /// Measure a workload
    Bench(BenchCommandArgs),
    /// Render result files again
    Report(crate::report::ReportArgs),
    /// Explain where the time of a message goes for a broker and a client, and what each change would gain
    Explain(crate::explain::ExplainArgs),
    /// Compare two builds: what changed, by how much, and what is only noise
    Compare(crate::compare::CompareArgs),
    /// Plant known faults in measurements, and check that the results report each of them
    Check(crate::check::CheckArgs),
    /// Show the results of one machine over time: each figure, and the commit at which it changed
    History(crate::history::HistoryArgs),
    /// Send an order to an OMS, replace or cancel it, or query its status
    Order(crate::order::OrderCommandArgs),
    /// List the open orders of an order journal, and follow their reports; safe while its OMS trades
    Orders(crate::orders::OpenOrdersArgs),
    /// Print orders, fills and profit of a day from an order journal, as tables, CSV or JSON; safe while its OMS trades
    Blotter(tickpath_oms_blotter::command::BlotterArgs),
    /// Print the reports of other sessions, one a line, as a user with a drop copy
    DropCopy(crate::drop_copy::DropCopyArgs),
    /// Run an OMS as a server, write or check its configuration, change its users, send admin commands
    Oms(crate::oms::OmsArgs),
    /// Show a running OMS: orders, positions, sessions, lines, current latency
    Top(crate::top::TopArgs),
    /// Run a simulated exchange as a process: one that receives its orders from an OMS, or with --as one that speaks the
    /// protocols of a real exchange
    Exchange(crate::exchange::ExchangeArgs),
    /// Check an account of an exchange before the first order of an OMS
    Venue(tickpath_cli_exchanges::venue_check::VenueArgs),
    /// Carry market data of an exchange onto a topic of a bus: best bids and offers, trades, order books
    Feed(tickpath_cli_exchanges::feed::FeedArgs),
    /// Fetch the list of an exchange's instruments
    Instruments(tickpath_cli_exchanges::instruments_fetch::InstrumentsArgs),
    /// Inspect, record, import, export, replay and bridge logs and journals
    Log(LogArgs),
    /// Find settings of this host and its brokers that cost latency or safety, with the remedy of each
    Doctor(crate::doctor::DoctorArgs),
    /// Print the completion script of a shell
    Completions(crate::manual::CompletionsArgs),
    /// Write a man page for each command
    Man(crate::manual::ManArgs),
    /// A process of a bench
    #[command(hide = true)]
    Child {
        /// Process id of the parent, with which the child ends
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
    /// Measure the floor of the host: clock, cache line, loopback, and the time that a spinning thread loses to the
    /// host
    Host(crate::bench::host::HostArgs),
    /// Measure messages from a publisher to subscribers, from one process to another
    Pubsub(crate::bench::pubsub::PubsubArgs),
    /// Measure a queue: messages from one pusher to pullers that share the work
    Queue(crate::bench::queue::QueueArgs),
    /// Measure pipelines of 1 to 1,000,000 commands to a Redis server: throughput, memory, system calls, the knee
    Pipeline(crate::bench::pipeline::PipelineArgs),
    /// Measure SET and GET of a key through each client library of a Redis server, near and far
    Clients(crate::bench::clients::ClientsArgs),
    /// Measure every hop from a tick to an order at a venue
    Path(crate::bench::path::PathArgs),
    /// Measure batches of orders through an OMS, in the form of the f9omstw benchmark
    Orders(crate::bench::orders::OrdersArgs),
}

#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// List the topics in shared memory, or one log: policy, sequence numbers, writer, and readers with their positions
    Ls {
        /// shm://NAME, file:///PATH or a folder
        log: Option<String>,
    },
    /// Remove a topic or a recording that no process has open; the logs of an OMS are refused
    Rm {
        /// shm://NAME, file:///PATH or a folder
        log: String,
    },
    /// Print messages, one a line
    Cat(crate::log::cat::CatArgs),
    /// Read a log to its end and check its frames and checksums; for a journal also the digests of a replay, and the
    /// snapshots
    Verify {
        /// shm://NAME, file:///PATH or a folder
        log: String,
    },
    /// Print the latency tables of an order journal, from the journal alone
    Analyse {
        /// Folder of the journal
        dir: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write a snapshot of an order journal up to its end: the next start of the OMS reads it and the records after it
    Snapshot {
        /// Folder of the journal
        dir: PathBuf,
    },
    /// Record the messages of a topic in a folder as they arrive, gaps included
    Record(crate::log::record::RecordArgs),
    /// Import files of market data into a folder, as a recording with the times of the files
    Import(crate::log::import::ImportArgs),
    /// Export the market data of a recording to CSV, Parquet or hftbacktest's npz
    Export(crate::log::export::ExportArgs),
    /// Publish a recording on a bus, at its own times or at another rate
    Replay(crate::log::replay::ReplayArgs),
    /// Copy topics from one bus to another, until Ctrl-C; a target topic that exists is appended to
    Bridge(crate::log::bridge::BridgeArgs),
}
