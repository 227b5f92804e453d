//! The log through its public interface: a naive model, laps, gates, kills, recovery, sleep and the documented bytes;
//! and queues on it.

mod backpressure;
mod counters;
mod fork;
mod format;
mod group_access;
mod hostile_writer;
mod kill;
mod lanes;
mod lap;
mod lent;
mod locks;
mod lost_pieces;
mod mandatory;
mod model;
mod other_users;
mod owner;
mod process;
mod queue;
mod queue_kill;
mod queue_model;
mod recover;
mod scratch;
mod wake;
mod warm_up;

use scratch::{ALL_POLICIES, Dice, ScratchLog, payload, pull, read_on, seed, tiny};

/// Does nothing, unless a test started this program anew to have a process to kill.
#[test]
fn child_main() {
    kill::child();
}
