//! The binary `tickpath-peers`: systems of other projects, measured in turn with our log.
//!
//! ```text
//!   plan ──> bench ──in turn──> lab's pubsub: two processes, one loop ──> results/peers.json ── page ──> docs/peers.md
//!                                    │ connect(url), in `transport`
//!                                    ├── our log
//!                                    ├── ringfire, iceoryx2, zeromq    adapters of the bus's contract, a file each
//!                                    ├── rtrb                          the same; both ends are threads of this process
//!                                    └── aeron, chronicle              `java`: processes, protocol of docs/clients.md
//! ```
//! The measuring loop of every peer in Rust is the lab's. The peers in Java have a loop of their own, and follow the
//! protocol of clients in other languages.

mod bench;
mod iceoryx2;
mod java;
mod page;
mod peer;
mod plan;
mod ringfire;
mod rtrb;
mod slot;
mod transport;
mod usage;
mod zeromq;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tickpath_lab_harness::RoleEntry;
use tickpath_lab_result::ResultFile;

use crate::bench::{BenchArgs, BenchOutcome};

/// Roles of the processes of a run.
const ROLES: [&[RoleEntry]; 2] = [tickpath_lab_harness::ROLES, tickpath_lab_bus::ROLES];

/// Measure systems of other projects in turn with our log
#[derive(Parser)]
struct PeersArgs {
    #[command(subcommand)]
    command: PeersCommand,
}

#[derive(Subcommand)]
enum PeersCommand {
    /// Measure all systems, round after round; a Ctrl-C ends the bench and saves the result so far
    Bench(BenchArgs),
    /// Print docs/peers.md from a result file
    Page {
        /// Result file that `bench --json` wrote
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Process of a run
    #[command(hide = true)]
    Child {
        /// Id of the parent process
        parent: u32,
    },
}

fn main() -> ExitCode {
    tickpath_bus::add_transports(transport::TRANSPORTS);
    match run(PeersArgs::parse().command) {
        Ok(BenchOutcome::Done) => ExitCode::SUCCESS,
        Ok(BenchOutcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("tickpath-peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: PeersCommand) -> anyhow::Result<BenchOutcome> {
    match command {
        PeersCommand::Bench(args) => bench::run(&args),
        PeersCommand::Page { file } => {
            print!("{}", page::page(&ResultFile::load(&file)?));
            Ok(BenchOutcome::Done)
        }
        // The child reports its error to the parent.
        PeersCommand::Child { parent } => {
            let _ = tickpath_clock::end_with_parent(parent)
                .then(|| tickpath_lab_harness::role::run(ROLES.into_iter().flatten()));
            Ok(BenchOutcome::Done)
        }
    }
}
