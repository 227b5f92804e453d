//! The last part of `tickpath demo`: a short run of our own client at OKX, as a few lines of text.

use tickpath_clock::Priority;
use tickpath_lab_report::duration;
use tickpath_lab_result::Run;

use crate::client::ExchangeClient;
use crate::protocol::ViaExchange;
use crate::settings::Settings;

/// The approximate duration of the part, in seconds.
pub const DEMO_SECONDS: u32 = 10;

/// Ticks a second, each answered by an order, and their number.
const RATE: f64 = 20.0;
const TICKS: u64 = 100;

/// The steps of the path, each with what happens in it.
const STEPS: [(&str, &str); 8] = [
    ("wire_to_read", "from the kernel's receive time until recv returns"),
    ("read_to_framed", "decrypt, take off the WebSocket frame"),
    ("framed_to_parsed", "JSON to a best bid and offer"),
    ("parsed_to_sent", "the strategy"),
    ("sent_to_handed", "the OMS: risk checks and journal"),
    ("handed_to_encoded", "the order to JSON"),
    ("encoded_to_ready", "put on the frame, encrypt"),
    ("ready_to_written", "until send returns"),
];

/// Returns the settings of the run: from a tick of OKX to an order at OKX, by our own client.
pub fn demo_settings(cpus: [usize; 2]) -> Settings {
    let (via, client, priority) = (ViaExchange::Okx, ExchangeClient::Rust, Priority::Normal);
    Settings { via, client, cpus, rate: RATE, count: TICKS, priority, repeat: 1 }
}

/// Returns the medians of a run, a step a line.
pub fn demo_text(run: &Run) -> String {
    let p50 = |name: &str| {
        let measured = run.hops.get(name).and_then(|hop| hop.p50_ns);
        measured.map_or("–".to_owned(), |ns| duration(ns as f64))
    };
    let mut text = format!(
        "\nFrom the packet with a tick to the packet with an order, by OKX's protocols\n(TLS, WebSocket, JSON), {RATE} \
         orders a second at a simulated OKX, p50:\n"
    );
    for (name, what) in STEPS {
        text += &format!("  {name:<18}{:>10}  {what}\n", p50(name));
    }
    if !run.valid {
        text += &format!("NOT VALID: {}\n", run.notes.last().map_or("", String::as_str));
    }
    text + &format!(
        "{}: {} with TLS and {} without are our own work, the rest is the kernel's.\n\
         In turn with ccxt and redis-py: tickpath bench path --via okx\n\
         --client rust,ccxt --target redis://HOST:PORT\n",
        p50("wire_to_written"),
        p50("own_work_with_tls"),
        p50("own_work")
    )
}
