//! The binary `tickpath-peers`: other people's systems measured in turn with ours.
//!
//! ```text
//!   plan ──> bench ──in turn──> lab's pubsub: two processes, one loop ──> results/peers.json ── page ──> docs/peers.md
//!                                    │ connect(url)
//!                                    ├── our log
//!                                    ├── ringfire, iceoryx2, zeromq    adapters of the same contract, a file each
//!                                    ├── rtrb                          the same, both ends threads of this process
//!                                    └── aeron, chronicle              Java, by the words of docs/clients.md
//! ```
//! The loop is the lab's, for every peer in Rust. Java's is its own, and speaks as every client of another language.

mod bench;
mod clients;
mod iceoryx2;
mod item;
mod page;
mod peer;
mod plan;
mod ringfire;
mod rtrb;
mod usage;
mod zeromq;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tickpath_lab_harness::Playable;
use tickpath_lab_result::ResultFile;

use crate::bench::{BenchArgs, Ending};

/// What the processes of a run do.
const ROLES: [&[Playable]; 2] = [tickpath_lab_harness::ROLES, tickpath_lab_bus::ROLES];

/// Other people's systems measured in turn with ours
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all of them, round after round; what was measured when a Ctrl-C comes is saved
    Bench(BenchArgs),
    /// Print docs/peers.md, made from a result file
    Page {
        /// A file that `bench --json` wrote
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// A process of a run
    #[command(hide = true)]
    Child {
        /// The process that started it
        parent: u32,
    },
}

fn main() -> ExitCode {
    tickpath_bus::add(peer::TRANSPORTS);
    match run(Args::parse().command) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("tickpath-peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<Ending> {
    match command {
        Command::Bench(args) => bench::run(&args),
        Command::Page { file } => {
            print!("{}", page::page(&ResultFile::load(&file)?));
            Ok(Ending::Done)
        }
        // Its error is told to the parent.
        Command::Child { parent } => {
            let _ = tickpath_clock::end_with_parent(parent)
                .then(|| tickpath_lab_harness::role::run(ROLES.into_iter().flatten()));
            Ok(Ending::Done)
        }
    }
}
