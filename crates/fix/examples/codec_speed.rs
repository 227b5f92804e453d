//! Cost of reading and checking a NewOrderSingle of 160 bytes with 15 tags, and of writing an ExecutionReport, without
//! a socket: `cargo run --release -p tickpath-fix --example codec_speed -- [DICTIONARY]`
//!
//! DICTIONARY is FIX44.xml of QuickFIX. Each turn takes the steps one after the other, with different messages, and the
//! time of each 64 messages. The table has the medians over the turns, of a turn's median and of its 99th percentile,
//! and the range of the turns' medians.

use std::error::Error;
use std::hint::black_box;

use tickpath_clock::{Clock, HostClock};
use tickpath_fix::{
    Dictionary, FieldTable, FrameReader, MessageWriter, TimePrecision, ValidationRules, ValidationScratch, tags,
    validate,
};

/// Turns of each step.
const TURNS: usize = 9;
/// Samples of a turn.
const SAMPLES: usize = 500;
/// Messages that one sample spans: a call of the clock costs a part of a message.
const MESSAGES_PER_SAMPLE: usize = 64;
/// Dictionary of QuickFIX's sources, where `scripts/quickfix-definitions` leaves them.
const DICTIONARY: &str = "target/quickfix/source/spec/FIX44.xml";
/// Time of the first message, in nanoseconds since the Unix epoch.
const BEGIN_NS: u64 = 1_709_208_000_000_000_000;
/// Time between two messages.
const INTERVAL_NS: u64 = 10_000;
/// Decimals of prices.
const DECIMALS: u8 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| DICTIONARY.to_owned());
    let xml = std::fs::read_to_string(&path).map_err(|e| {
        format!("the dictionary {path} cannot be read: {e}; name another file, or run scripts/quickfix-definitions")
    })?;
    let mut decoder = Decoder::new(Dictionary::parse(&xml, &path)?);
    let mut encoder = Encoder::new();
    let orders: Vec<Vec<u8>> = (0..SAMPLES * MESSAGES_PER_SAMPLE).map(order).collect();
    let clock = HostClock::get()?;
    let mut steps =
        ["order: frame", "order: frame, fields", "order: frame, fields, validation", "report: encoding"].map(Step::new);
    for _ in 0..TURNS {
        let [frame, fields, validation, encoding] = &mut steps;
        frame.take_turn(&clock, |number| assert!(decoder.has_frame(black_box(&orders[number]))));
        fields.take_turn(&clock, |number| assert!(decoder.has_fields(black_box(&orders[number]))));
        validation.take_turn(&clock, |number| assert!(decoder.is_valid(black_box(&orders[number]))));
        encoding.take_turn(&clock, |number| {
            black_box(encoder.report(black_box(number)));
        });
    }
    println!("{:<34} {:>8} {:>8} {:>18}", "step", "p50 ns", "p99 ns", "p50 of turns, ns");
    for step in &mut steps {
        step.print();
    }
    let report = encoder.report(7).to_vec();
    println!("{TURNS} turns of {} messages; order: {}", orders.len(), shown(&orders[7]));
    println!("report: {}", shown(&report));
    assert!(decoder.is_valid(&report), "the report is not valid by {path}");
    Ok(())
}

/// Readers of messages, each used again.
struct Decoder {
    frames: FrameReader,
    table: FieldTable,
    dictionary: Dictionary,
    scratch: ValidationScratch,
}

impl Decoder {
    fn new(dictionary: Dictionary) -> Self {
        let (frames, table, scratch) = (FrameReader::new(1 << 20), FieldTable::new(), ValidationScratch::new());
        Self { frames, table, dictionary, scratch }
    }

    /// Returns whether the received bytes are a frame with a right length and sum.
    fn has_frame(&mut self, bytes: &[u8]) -> bool {
        self.frames.extend(bytes);
        matches!(self.frames.next(), Some(Ok(frame)) if black_box(frame.bytes).len() == bytes.len())
    }

    /// Returns whether the received bytes are a frame with fields.
    fn has_fields(&mut self, bytes: &[u8]) -> bool {
        self.frames.extend(bytes);
        let Some(Ok(frame)) = self.frames.next() else { return false };
        black_box(self.table.read(frame.bytes, self.dictionary.data_tags())).is_ok()
    }

    /// Returns whether the received bytes are a message by the dictionary.
    fn is_valid(&mut self, bytes: &[u8]) -> bool {
        self.frames.extend(bytes);
        let Some(Ok(frame)) = self.frames.next() else { return false };
        let Ok(message) = self.table.read(frame.bytes, self.dictionary.data_tags()) else { return false };
        validate(&self.dictionary, ValidationRules::default(), black_box(&message), &mut self.scratch).is_ok()
    }
}

/// Writer of reports.
struct Encoder(MessageWriter);

impl Encoder {
    fn new() -> Self {
        Self(MessageWriter::new("FIX.4.4"))
    }

    /// Writes a partial fill with its header, as a session would.
    fn report(&mut self, number: usize) -> &[u8] {
        let (number, writer) = (number as u64, &mut self.0);
        let ns = BEGIN_NS + number * INTERVAL_NS;
        let [price, filled] = [price(number), 1 + number as i64 % 97];
        writer.begin(b"8");
        writer.unsigned(tags::MSG_SEQ_NUM, 100_000 + number);
        writer.raw(b"49=OMS\x01");
        writer.time(tags::SENDING_TIME, ns, TimePrecision::Millis);
        writer.raw(b"56=CLIENT1\x01");
        writer.decimal(tags::AVG_PX, price, DECIMALS);
        writer.text(tags::CL_ORD_ID, "ORD000001");
        writer.signed(tags::CUM_QTY, filled);
        writer.unsigned(tags::EXEC_ID, 7_000_000 + number);
        writer.decimal(tags::LAST_PX, price, DECIMALS);
        writer.signed(tags::LAST_QTY, filled);
        writer.unsigned(tags::ORDER_ID, 5_000_000 + number);
        writer.unsigned(tags::ORDER_QTY, 1_000);
        writer.byte(tags::ORD_STATUS, b'1');
        writer.byte(tags::ORD_TYPE, b'2');
        writer.decimal(tags::PRICE, price, DECIMALS);
        writer.byte(tags::SIDE, b'1');
        writer.text(tags::SYMBOL, "BTCUSDT");
        writer.time(tags::TRANSACT_TIME, ns, TimePrecision::Millis);
        writer.byte(tags::EXEC_TYPE, b'F');
        writer.signed(tags::LEAVES_QTY, 1_000 - filled);
        writer.finish()
    }
}

/// Returns an order of 160 bytes with 15 tags, at another price each time.
fn order(number: usize) -> Vec<u8> {
    let number = number as u64;
    let ns = BEGIN_NS + number * INTERVAL_NS;
    let mut writer = MessageWriter::new("FIX.4.4");
    writer.begin(b"D");
    writer.unsigned(tags::MSG_SEQ_NUM, 100_000 + number);
    writer.text(tags::SENDER_COMP_ID, "CLIENT1");
    writer.time(tags::SENDING_TIME, ns, TimePrecision::Millis);
    writer.text(tags::TARGET_COMP_ID, "OMS");
    writer.text(tags::CL_ORD_ID, &format!("ORD{number:06}"));
    writer.unsigned(tags::ORDER_QTY, 1_000);
    writer.byte(tags::ORD_TYPE, b'2');
    writer.decimal(tags::PRICE, price(number), DECIMALS);
    writer.byte(tags::SIDE, b'1');
    writer.text(tags::SYMBOL, "BTCUSDT");
    writer.time(tags::TRANSACT_TIME, ns, TimePrecision::Millis);
    writer.finish().to_vec()
}

/// Returns a price with two decimals that are not zero at the end, in units of 10^-8.
fn price(number: u64) -> i64 {
    (6_180_001 + (number as i64 % 997) * 10) * 1_000_000
}

/// Returns a message with `|` for the delimiter, its length and the number of its tags.
fn shown(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message).replace('\x01', "|");
    format!("{} bytes, {} tags: {text}", message.len(), text.matches('|').count())
}

/// Times of a step.
struct Step {
    name: &'static str,
    /// Medians of the turns, in nanoseconds a message.
    medians: Vec<f64>,
    /// 99th percentiles of the turns, in nanoseconds a message.
    tails: Vec<f64>,
}

impl Step {
    fn new(name: &'static str) -> Self {
        Self { name, medians: Vec::new(), tails: Vec::new() }
    }

    /// Does the work for each message once, and notes the times of its samples.
    fn take_turn(&mut self, clock: &HostClock, mut work: impl FnMut(usize)) {
        let mut samples: Vec<f64> = (0..SAMPLES)
            .map(|sample| {
                let began = clock.ticks();
                for number in 0..MESSAGES_PER_SAMPLE {
                    work(sample * MESSAGES_PER_SAMPLE + number);
                }
                clock.ns_between(began, clock.ticks()) as f64 / MESSAGES_PER_SAMPLE as f64
            })
            .collect();
        samples.sort_by(f64::total_cmp);
        self.medians.push(samples[SAMPLES / 2]);
        self.tails.push(samples[SAMPLES * 99 / 100]);
    }

    /// Prints the row of the step.
    fn print(&mut self) {
        self.medians.sort_by(f64::total_cmp);
        self.tails.sort_by(f64::total_cmp);
        let (median, tail) = (self.medians[TURNS / 2], self.tails[TURNS / 2]);
        let range = format!("{:.0} to {:.0}", self.medians[0], self.medians[TURNS - 1]);
        println!("{:<34} {median:>8.0} {tail:>8.0} {range:>18}", self.name);
    }
}
