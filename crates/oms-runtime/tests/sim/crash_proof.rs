//! The page about what survives a crash.

use std::fmt::Write;

use crate::crash_counts::CrashRow;
use crate::tally::Tally;

/// Returns the page for a run of this many seeds without a failure.
pub fn page(tally: &Tally, seeds: u64) -> String {
    let mut page = String::from(
        "# What survives a crash\n\n\
         Made by `make crash-proof`, which runs the simulation ([crates/oms-runtime/tests/sim](../crates/oms-runtime/tests/sim)) and \
         writes this page\nonly if no seed fails. What ends there is ended at every moment that the OMS reads its \
         clock, on real journals and lanes; a process\nthat is killed by a real SIGKILL is in the tests beside it. The world goes on \
         through days that end and snapshots that are made at\nany time, also of a journal that then loses its tail. A day ends \
         before or after those of its venues, on a disk with room for\nits roll or on a full one, which refuses it; and it is cut short \
         between any two file operations of the roll. In every second\nworld one of two venues is reached by two or three lines, the \
         other one by lanes. In every second world, too, the OMS expects\nanswers of its venues in time, and a venue is silent now and \
         then: it loses requests or reports, and nobody is told.\n\n\
         A session asks for a level. At `os` nothing of its orders leaves before the operating system has them: they \
         survive the end\nof any process. At `disk` nothing leaves before they are on the disk: they survive the loss of \
         power.\n\n",
    );
    let _ = writeln!(
        page,
        "Seeds: {seeds}. Orders that clients had been told of and that were not over, and how many of them were gone:\n"
    );
    page.push_str(
        "| what ended | how often | told at `os` | gone | told at `disk` | gone |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for (end, CrashRow { times, os, disk }) in tally.ends.rows() {
        let words = end.description();
        let _ =
            writeln!(page, "| {words} | {times} | {} | {} | {} | {} |", os.reported, os.lost, disk.reported, disk.lost);
    }
    let count = |what| tally.get(what);
    let _ = write!(
        page,
        "\nIn all of these, and through {} losses of a connection, {} kills of gateways, {} failed disks and {} steps of \
         the clock,\nand with {} lines to venues cut, {} gone for good, and {} kills of a venue that is reached by lines, {} silences \
         of venues, in which\n{} requests and {} reports were lost, and {} days that a full disk did not let end:\n\n\
         * of {} requests that reached a venue none came twice, and none was invented;\n\
         * each of {} fills was known to the OMS, or its order was held in doubt and asked for; no exposure was understated;\n\
         * each request without an answer put its order in doubt once its time was up; no order was booked as expired that its venue \
         worked or had filled;\n\
         * each order of which a silent venue lost messages was known again without an operator once the venue answered. Left out are \
         orders that the\n  venue had forgotten with its day or had refused before, that an operator had resolved, or whose fills had \
         changed, and worlds whose host had\n  lost its power;\n\
         * {} times, in the middle of a plan and at its end, all came to rest; each time two replays agreed with the OMS to the byte.\n\n\
         An order that is gone is one that the session's level allows to go: at `os` the tail of the journal that the \
         power took.\nThe venue may work it. Its id is never used again: its reports change nothing and are counted as strangers, an alarm at which\nthe desk asks its venue.\n\
         What is gone may be a later try of an order that is known: that is in doubt then, and counted as it was asked for.\n",
        count("connections lost"),
        count("gateways killed"),
        count("disks failed"),
        count("clock stepped"),
        count("lines cut"),
        count("lines away for good"),
        count("venues killed"),
        count("venues silent"),
        count("requests lost in silence"),
        count("reports lost in silence"),
        count("days refused for lack of room"),
        count("requests arrived"),
        count("fills"),
        count("settled and checked"),
    );
    page
}
