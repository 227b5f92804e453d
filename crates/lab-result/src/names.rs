//! The names that a result may use, each with its sentence, and the check that refuses others.
//!
//! `docs/results.md` shows these tables to the reader; a test holds the two together.

use crate::hop::{Hop, PERCENTILES};
use crate::shape::{ResultFile, Run, SCHEMA, Series};

/// Every hop but [`OWN_HOP`], in the order of the path: its name, and from where to where it goes.
pub const HOPS: &[(&str, &str)] = &[
    ("lateness", "From the intended publish time until the actual send: how late the generator was."),
    ("one_way", "From the intended publish time until the reader has copied the payload."),
    ("service", "From the actual send until the reader has copied the payload."),
    ("tick_to_order", "From the tick's intended publish time until the order is released (T2)."),
    ("tick_to_venue", "From the tick's intended publish time until the venue has the order."),
    ("t0_t1", "From the first attempt to send (T0) until a thread of the OMS sees the frame (T1)."),
    (
        "t1_handed",
        "From the OMS seeing the frame (T1) until the order is handed to the thread of its venue's line, which sends it after that.",
    ),
    ("t0_handed", "From the first attempt to send (T0) until the order is handed to the thread of its venue's line."),
    ("handed_t2", "From the hand-over to the thread of the venue's line until its send has returned (T2)."),
    (
        "t1_t2",
        "From the OMS seeing the frame (T1) until it is released: risk, journal and venue send (T2); of what left at once.",
    ),
    (
        "t0_t2",
        "From the first attempt to send (T0) until release (T2), of what left at once; compare this one in bursts.",
    ),
    ("t0_t2_denied", "From the first attempt to send (T0) until the OMS has denied the request (T2)."),
    (
        "t0_t2_kept",
        "From the first attempt to send (T0) until the OMS has put away a request that did not leave then (T2): it waits for its venue or its trigger, or the OMS answered it alone.",
    ),
    ("t0_gap", "Between the sends (T0) of neighbouring orders."),
    ("t1_gap", "Between the receipts (T1) of neighbouring orders."),
    ("t2_gap", "Between the releases (T2) of neighbouring orders."),
    ("order_ack", "From the first attempt to send (T0) until the client has the OMS's first report."),
    ("order_round_trip", "From the first attempt to send (T0) until the client has the venue's first report."),
    (
        "packet_to_packet",
        "From the exchange's send of a tick until the kernel at the exchange has the packet of its order: both stamps are of the exchange's process.",
    ),
    (
        "wire_to_written",
        "From the kernel's receipt of a tick's packet until the call that sends its order has returned.",
    ),
    ("wire_to_read", "From the kernel's receipt of a packet until the call that reads it has returned."),
    ("read_to_framed", "From the return of that call until the message is decrypted and without its frame."),
    ("framed_to_parsed", "From the message's text until it is a typed message."),
    ("parsed_to_sent", "From the typed message until the strategy sends its order (T0)."),
    (
        "sent_to_handed",
        "From the first attempt to send (T0) until the core hands the order to its line: risk, journal, lanes.",
    ),
    ("handed_to_encoded", "From the hand-over to the line until the order is the text of the exchange's protocol."),
    ("encoded_to_ready", "From that text until its bytes are framed and encrypted."),
    ("ready_to_written", "From these bytes until the call that sends them has returned."),
    ("own_work", "From the text of a tick until the text of its order: parsing, strategy, core, encoding."),
    (
        "own_work_with_tls",
        "From the return of the call that reads a tick until the bytes of its order are ready for the socket.",
    ),
    ("publish", "The publish call itself."),
    ("round_trip", "From a message's send until its answer is there."),
    ("push", "The push call itself."),
    ("pop", "The pop call itself."),
    ("in_queue", "From the return of push until the return of the pop that took the message."),
    ("spin_gap", "Between two readings of a loop that only reads the clock: what the host takes away."),
    ("wake_call", "The call that wakes a thread whose CPU has gone idle."),
    ("wake_up", "From before the call that wakes a thread whose CPU has gone idle until that thread runs."),
    ("wake_up_awake", "From before the call that wakes a thread until it runs, on a CPU that is kept from going idle."),
];

/// How hops of a user's own code begin.
pub const OWN_PREFIX: &str = "own.";

/// Form of the name of such a hop, and its meaning; [`is_own`] checks a name.
pub const OWN_HOP: (&str, &str) = ("own.NAME", "A user's own code, from one stamp that it took to another.");

/// Letters of that name, at most.
const MAX_NAME_LETTERS: usize = 40;

/// Whether it is a hop of a user's own code: its name is of lower case letters, digits and underscores.
pub fn is_own(hop: &str) -> bool {
    let is_letter = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
    hop.strip_prefix(OWN_PREFIX)
        .is_some_and(|name| (1..=MAX_NAME_LETTERS).contains(&name.len()) && name.bytes().all(is_letter))
}

/// Whether a hop may be called so.
pub fn is_hop(name: &str) -> bool {
    is_listed(HOPS, name) || is_own(name)
}

/// Every figure: what is neither a hop nor a count.
pub const FIGURES: &[(&str, &str)] = &[
    ("bytes_per_order", "Memory of the OMS an order: after minus before, divided by the orders."),
    ("journal_bytes_per_order", "Bytes that the journal grew by, divided by the orders."),
    ("first_t0_to_last_t2_ns", "From the first order's send (T0) until the last order's release (T2)."),
    ("last_t2_to_last_report_ns", "From the last order's release (T2) until the client has the last report."),
    ("last_order_t0_ns", "When the last order was sent (T0), from the first order's T0."),
    ("last_order_t1_ns", "When the OMS saw the last order (T1), from the first order's T0."),
    ("last_order_t2_ns", "When the last order was released (T2), from the first order's T0."),
    ("orders_sending", "Orders that ended as sent to the venue."),
    ("orders_queued", "Orders that had to wait for a line to the venue."),
    ("orders_rejected", "Orders that ended refused."),
    ("orders_denied", "Requests that the OMS denied; their T2 is in no hop of what was released."),
    ("orders_lost", "Orders that the strategy sent and the journal does not hold; only there if there were any."),
    (
        "acked_per_s",
        "Orders that the client has the OMS's first report of, a second: from the first T0 to the last such report.",
    ),
    (
        "send_ns",
        "One send of an order's frame on a loopback TCP connection whose other end is read, from the OMS's CPU: the median.",
    ),
    (
        "memory_per_session_bytes",
        "What the OMS's memory grew by when its clients connected, divided by their sessions.",
    ),
    (
        "connected_cpu_percent",
        "Processor time of the OMS with all clients connected and no client sending; 100 is one processor.",
    ),
    ("beside_reports", "Reports of its own day that the client beside the measured ones has received."),
    ("resume_ns", "From before the connect of a client that lacks a whole day until it has the last report of it."),
    ("resume_reports_per_s", "Reports of that day, divided by that time."),
    ("restart_to_ready_ns", "From the start of the process of an OMS that was killed until it is ready."),
    ("replay_inputs_per_s", "Journal inputs that a restart replays a second."),
    ("writer_cost_ns", "What one publish costs the writer: the mean of the faster nine tenths of the calls."),
    ("reconnects", "Number of reconnects of either end: the notes name the end."),
    ("cpu_quota", "Processors' worth of time that the run's cgroup may use, where it has a quota."),
    ("throttled_ns", "For how long that quota stopped the group during the run, summed over its processors."),
    ("record_cost_ns", "What recording one sample costs the generator."),
    ("syscalls_per_command", "Reads and writes of the server, divided by the commands; its waits are not counted."),
    ("context_switches_per_command", "Context switches of the server, divided by the commands."),
    ("clock_cost_ns", "The cost of one stamp."),
    ("spin_average_ns", "One turn of a loop that only reads the clock, on average."),
    ("spin_worst_ns", "The longest turn of that loop."),
    ("spin_worst_times_average_ratio", "The longest turn of that loop divided by the average one."),
    ("spin_loops", "Turns of that loop."),
    ("cache_line_transfer_ns", "One cache line between two processes: the median of half a round trip."),
    ("one_way_over_transfer_ratio", "The median of one_way divided by cache_line_transfer_ns of the same run."),
    ("lateness_p50_ns", "How late the generator sent, against its own plan: the median."),
    ("lateness_p99_ns", "How late the generator sent, against its own plan: the 99th percentile."),
    (
        "connect_ns",
        "Connecting: until a topic is open in a new process (the median), or, for clients, until each connection has answered a PING.",
    ),
    ("tcp_connect_ns", "Opening one TCP connection to the target."),
    ("publish_one_process_ns", "One publish from a new process, its lazy connection included."),
    ("message_one_process_ns", "One message from such a process, until a subscriber that spins has it."),
    ("path_share_percent", "The path's share of the way from tick to venue, half a TCP connect being the network's."),
    ("loopback_round_trip_ns", "A round trip of one message over a loopback socket: the median."),
    ("throughput_with_connect_per_s", "Pairs a second, the time to connect among it."),
    ("proxy_cost_ns", "What the delaying proxy adds to a round trip beside its delay."),
    ("push_rate_per_s", "Messages pushed a second, from the first push called to the last one returned."),
    (
        "pull_rate_per_s",
        "Messages pulled a second by all pullers, from the first push called to the last pop returned.",
    ),
    ("kept_up_percent", "Messages already pulled when the last push returned, of all pushed."),
    ("drain_ns", "From the last push returned until the last pop returned."),
    ("full_pushes", "Pushes that found the queue full and waited for room; only there if there were any."),
    ("latency_per_command_ns", "A batch's round trip (median), divided by its commands."),
    ("server_cpu_per_command_ns", "Processor time of the server, divided by the commands."),
    ("client_cpu_per_command_ns", "Processor time of the client, divided by the commands."),
    ("client_context_switches_per_command", "Context switches of the client, divided by the commands."),
    ("client_syscalls_per_command", "System calls of the client (reads, writes, waits), divided by the commands."),
    ("reply_memory_bytes", "The most that the server held of replies for a client that had not read."),
    ("clients_memory_bytes", "What the server's memory for its clients grew by meanwhile."),
    ("knee_depth", "The smallest depth with nine tenths of the best throughput."),
    (
        "message_ns",
        "From the publish call until the script has the message, or until the reply if no subscriber is watched; from the intended time on our own bus: the median. Of calls to an exchange until they return, and of its messages from their read: the mean of the middle half.",
    ),
    (
        "stages_sum_percent",
        "What is measured or bounded of a message, as a share of message_ns, as it came out: what was had elsewhere may make it more than the whole.",
    ),
    ("server_publish_ns", "Time of one PUBLISH meanwhile as the server reports it: the mean over all clients."),
    ("server_push_ns", "Time of one push to a list meanwhile as the server reports it: the mean over all clients."),
    (
        "socket_one_way_ns",
        "The same message over bare sockets, from the return of the write to the return of the read.",
    ),
    ("socket_round_trip_ns", "PUBLISH and its reply over bare sockets."),
    ("spin_turn_ns", "One turn of a subscriber that asks again and again, its sleep included."),
    ("reader_pause_ns", "What passes from an empty call of get_message to the next one: the median."),
    ("empty_polls_per_message", "Calls of get_message that only looked and returned nothing, for each message."),
    ("subscriber_cpu_percent", "Processor time of the subscriber; 100 is one processor."),
    ("cpu_per_message_ns", "Processor time of both ends while messages went, divided by the messages."),
    (
        "receiver_cpu_per_message_ns",
        "Processor time of the process that waits for messages sent at a rate (the subscriber, strategy and OMS, the strategy alone where it logs on, or the OMS), divided by those that it got.",
    ),
    ("connect_commands", "Commands that connecting sent before the first PUBLISH or push."),
    ("subscribe_ns", "From the subscribe call until its confirmation."),
    ("payload_clock_step_ns", "The step of a clock whose times are the payloads."),
    ("message_by_payload_clock_ns", "The same message by that clock, as the script sees it."),
    ("hook_cost_per_message_ns", "What the stamps of one message cost."),
    ("hook_cost_per_process_ns", "What the stamps cost a process; may come out negative."),
    (
        "lateness_own_p99_ns",
        "How late the generator sent for no other reason than itself: without the time that gaps of the host took, and not while the call before was still out: the 99th percentile.",
    ),
    ("steal_percent", "The share of time that the hypervisor gave to others during the run."),
];

/// Every count: what became of the messages.
pub const COUNTS: &[(&str, &str)] = &[
    ("sent", "Handed to the transport."),
    ("received", "Taken by the receiver."),
    ("lost", "Sent and never received."),
    ("duplicated", "Received more than once."),
    ("reordered", "Received after a later one."),
    ("left", "Still waiting when the run ended."),
    ("errors", "Calls that failed."),
];

/// Every unit: how a key ends, and what its number means. A figure with another ending is a bare count.
pub const UNITS: &[(&str, &str)] = &[
    ("_ns", "nanoseconds"),
    ("_per_s", "a second"),
    ("_bytes", "bytes"),
    ("_per_order", "an order"),
    ("_per_command", "a command"),
    ("_per_message", "a message"),
    ("_percent", "percent: 0 to 100"),
    ("_ratio", "one divided by the other, without a unit"),
];

/// Why a result does not keep the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The file names another schema.
    #[error("the schema is '{0}'; write tickpath.result/1")]
    Schema(String),
    /// A hop that the contract does not know.
    #[error("the run of {target} has the hop '{name}', which is not listed; use one of docs/results.md or add it")]
    Hop {
        /// Which run.
        target: String,
        /// The name found.
        name: String,
    },
    /// A figure that the contract does not know.
    #[error("the run of {target} has the figure '{name}', which is not listed; use one of docs/results.md or add it")]
    Figure {
        /// Which run.
        target: String,
        /// The name found.
        name: String,
    },
    /// A figure that JSON cannot hold.
    #[error("the figure '{name}' of the run of {target} is infinite or no number; leave it out")]
    NotFinite {
        /// Which run.
        target: String,
        /// The figure.
        name: String,
    },
    /// A percentile that too few samples carry.
    #[error("{key} of the hop '{hop}' of the run of {target} stands on {count} samples; write null below {needed}")]
    TooFewSamples {
        /// Which run.
        target: String,
        /// Which hop.
        hop: String,
        /// Which percentile.
        key: &'static str,
        /// The samples there are.
        count: u64,
        /// The samples there must be.
        needed: u64,
    },
    /// A series whose times and values do not pair, or whose values JSON cannot hold.
    #[error("the series '{name}' of the run of {target} needs one finite value a time")]
    Series {
        /// Which run.
        target: String,
        /// The series.
        name: String,
    },
}

impl ResultFile {
    /// Whether the file keeps the contract: its schema, its names, and percentiles with enough samples only.
    pub fn check(&self) -> Result<(), CheckError> {
        if self.schema != SCHEMA {
            return Err(CheckError::Schema(self.schema.clone()));
        }
        self.runs.iter().try_for_each(|run| {
            check_hops(run)?;
            check_figures(run)?;
            run.series.iter().try_for_each(|series| check_series(run, series))
        })
    }
}

fn check_hops(run: &Run) -> Result<(), CheckError> {
    for (name, hop) in &run.hops {
        if !is_hop(name) {
            return Err(CheckError::Hop { target: run.target.clone(), name: name.clone() });
        }
        for (percentile, value) in PERCENTILES.iter().zip(hop.percentiles()) {
            if value.is_some() && hop.count < percentile.samples {
                return Err(CheckError::TooFewSamples {
                    target: run.target.clone(),
                    hop: name.clone(),
                    key: percentile.key,
                    count: hop.count,
                    needed: percentile.samples,
                });
            }
        }
    }
    Ok(())
}

fn check_figures(run: &Run) -> Result<(), CheckError> {
    for (name, value) in &run.figures {
        if !is_listed(FIGURES, name) {
            return Err(CheckError::Figure { target: run.target.clone(), name: name.clone() });
        }
        if !value.is_finite() {
            return Err(CheckError::NotFinite { target: run.target.clone(), name: name.clone() });
        }
    }
    Ok(())
}

fn check_series(run: &Run, series: &Series) -> Result<(), CheckError> {
    let paired = series.t_ns.len() == series.value.len();
    if paired && series.value.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(CheckError::Series { target: run.target.clone(), name: series.name.clone() })
}

fn is_listed(table: &[(&str, &str)], name: &str) -> bool {
    table.iter().any(|(listed, _)| *listed == name)
}

impl Run {
    /// The hops in the order of the path; names that [`HOPS`] does not know come last, as a user's own.
    pub fn hops_in_path_order(&self) -> Vec<(&str, &Hop)> {
        let mut hops: Vec<_> = self.hops.iter().map(|(name, hop)| (name.as_str(), hop)).collect();
        hops.sort_by_key(|(name, _)| HOPS.iter().position(|(known, _)| known == name).unwrap_or(HOPS.len()));
        hops
    }
}
