//! The page about what survives a crash.

use std::fmt::Write;

use crate::crash_counts::CrashRow;
use crate::tally::Tally;

/// Returns the page for a run of this many seeds without a failure.
pub fn page(tally: &Tally, seeds: u64) -> String {
    let mut page = String::from(
        "# What survives a crash\n\
         \n\
         `make crash-proof` runs the simulation ([crates/oms-runtime/tests/sim](../crates/oms-runtime/tests/sim))\n\
         and writes this page only if no seed fails. The simulation ends processes at every clock read of the\n\
         OMS, on real journals and lanes; other tests kill a process by a real SIGKILL. A run covers days that\n\
         end, and snapshots that are made at any time, also of a journal that then loses its tail. A day ends\n\
         before or after the days of its venues, on a disk with room for its roll or on a full disk, which\n\
         refuses the roll; and the roll is cut short between any two file operations. In every second world two\n\
         or three lines reach one of two venues, and lanes reach the other. In every second world, too, the OMS\n\
         expects answers of its venues in time, and a venue is silent at times: it loses requests or reports\n\
         without notice.\n\
         \n\
         A session asks for a durability level. At `os` nothing of its orders leaves before the operating system\n\
         has them: they survive the end of any process. At `disk` nothing leaves before they are on the disk:\n\
         they survive a loss of power.\n\
         \n",
    );
    let _ = writeln!(page, "Seeds: {seeds}. Reported orders that were not over, and how many of them were lost:\n");
    page.push_str(
        "| crash | count | reported at `os` | lost | reported at `disk` | lost |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (end, CrashRow { times, os, disk }) in tally.ends.rows() {
        let words = end.description();
        let _ =
            writeln!(page, "| {words} | {times} | {} | {} | {} | {} |", os.reported, os.lost, disk.reported, disk.lost);
    }
    let count = |what| tally.get(what);
    let _ = write!(
        page,
        "\n\
         These crashes, {} losses of a connection, {} kills of gateways, {} failed disks, {} steps of the clock,\n\
         {} cuts of lines to venues, {} lines lost for good, {} kills of venues with lines, {} silences of\n\
         venues, which lost {} requests and {} reports, and {} days that a full disk did not let end broke none\n\
         of these rules:\n\
         \n\
         * of {} requests that reached a venue, none arrived twice, and none was invented;\n\
         * each of {} fills was known to the OMS, or its order was in doubt and queried; exposure was never\n  \
         understated;\n\
         * each unanswered request put its order in doubt once its time was up; no order was booked as expired\n  \
         that its venue worked or had filled;\n\
         * each order of which a silent venue lost messages was known again without an operator once the venue\n  \
         answered, except orders that the venue had forgotten with its day or had refused before, that an\n  \
         operator had resolved, or whose fills had changed, and except in worlds whose host had lost its power;\n\
         * the simulation came to rest {} times, in the middle of a plan and at its end; each time two replays\n  \
         agreed with the OMS to the byte.\n\
         \n\
         A session's level allows for a lost order: at `os` a loss of power may take the tail of the journal. The\n\
         venue may work the order. Its id is never used again: its reports change nothing and are counted as\n\
         `strangers`, an alarm at which the desk asks its venue. A lost order may also be a retry of a known\n\
         order, which is then in doubt and counted as queried.\n",
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
