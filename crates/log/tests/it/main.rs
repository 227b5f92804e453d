//! The log through its public interface: a naive model, laps, gates, kills, recovery, sleep and the documented bytes; and
//! queues on it.

mod counters;
mod fork;
mod format;
mod gate;
mod group;
mod hostile;
mod kill;
mod lanes;
mod lap;
mod lent;
mod locks;
mod mandatory;
mod model;
mod owner;
mod pieces;
mod process;
mod queue;
mod queue_kill;
mod queue_model;
mod recover;
mod rehearsal;
mod scratch;
mod strangers;
mod wake;

use scratch::{ALL_POLICIES, Dice, Scratch, payload, pull, read_on, seed, tiny};

/// Does nothing, unless a test started this program anew to have a process to kill.
#[test]
fn child_main() {
    kill::child();
}
