//! `feed`: frames of each exchange are replayed onto a topic, and a bad call ends with a sentence.

use std::fs;

use tempfile::tempdir;
use tickpath_log::{LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, Price, TopOfBook, Trade};
use zerocopy::FromBytes;

use crate::program::{Ran, tickpath, tickpath_with};

const OKX: &[&str] = &[
    r#"{"event":"subscribe","arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"connId":"a4d3ae55"}"#,
    r#"{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[["105252.6","0.16271274","0","5"]],"bids":[["105252.5","1.1133491","0","19"]],"ts":"1749044565306","seqId":55729075884}]}"#,
    r#"{"arg":{"channel":"trades","instId":"BTC-USDT"},"data":[{"instId":"BTC-USDT","tradeId":"130639474","px":"42219.9","sz":"0.12060306","side":"buy","ts":"1630048897897","count":"3","source":"0","seqId":1234}]}"#,
    r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"snapshot","data":[{"asks":[["8476.98","415","0","13"]],"bids":[["8476.97","256","0","12"]],"ts":"1597026383085","checksum":0,"prevSeqId":-1,"seqId":123456}]}"#,
    r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update","data":[{"asks":[],"bids":[["8476.97","0","0","0"]],"ts":"1597026383185","checksum":0,"prevSeqId":123456,"seqId":123457}]}"#,
];

const BINANCE: &[&str] = &[
    r#"{"stream":"btcusdt@bookTicker","data":{"u":400900217,"s":"BTCUSDT","b":"105252.50000000","B":"31.21000000","a":"105252.60000000","A":"40.66000000"}}"#,
    r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1672515782136,"s":"BTCUSDT","t":130639474,"p":"42219.90000000","q":"100","T":1672515782136,"m":true,"M":true}}"#,
    r#"{"stream":"btcusdt@depthSnapshot","data":{"lastUpdateId":123456,"bids":[["8476.97000000","256.00000000"]],"asks":[["8476.98000000","415.00000000"]]}}"#,
    r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1672515782136,"s":"BTCUSDT","U":123450,"u":123457,"b":[["8476.97000000","0.00000000"]],"a":[]}}"#,
];

/// Messages of the frames of each exchange; the symbol is the instrument's number.
const MESSAGES: &[&str] = &[
    "Gap",
    "Connected",
    "quote 0 105252.5 105252.6",
    "trade 0 42219.9 130639474",
    "level 0 8476.97 256 123456",
    "level 0 8476.98 415 123456",
    "BookValid",
    "level 0 8476.97 0 123457",
    "Disconnected",
    "Gap",
];

/// A topic in shared memory, removed at the test's end.
struct FeedTopic {
    url: String,
    place: LogPath,
}

impl FeedTopic {
    fn new(name: &str) -> Self {
        let prefix = format!("cli-feed-{name}-{}", std::process::id());
        let place = LogPath::shared_memory(&format!("{prefix}.ticks")).expect("the name is good");
        Self { url: format!("shm://{prefix}"), place }
    }

    /// Returns the messages as text; levels of one update are sorted.
    fn messages(&self) -> Vec<String> {
        let mut log =
            Reader::open(&self.place, ReaderStart::Oldest, Registration::Unregistered).expect("the topic was written");
        let mut messages = Vec::new();
        while let Next::Message(message) = log.next().expect("the topic is sound") {
            messages.push(message_text(message.kind, message.payload));
        }
        messages
    }
}

impl Drop for FeedTopic {
    fn drop(&mut self) {
        // A call that fails makes no topic.
        let _ = self.place.remove();
    }
}

fn message_text(kind: u8, payload: &[u8]) -> String {
    const WHOLE: &str = "a whole message";
    match Kind::from_code(kind) {
        Some(Kind::TopOfBook) => {
            let quote = TopOfBook::read_from_bytes(payload).expect(WHOLE);
            format!("quote {} {} {}", quote.symbol, quote.bid, quote.ask)
        }
        Some(Kind::Trade) => {
            let trade = Trade::read_from_bytes(payload).expect(WHOLE);
            format!("trade {} {} {}", trade.symbol, trade.price, trade.trade_id)
        }
        Some(Kind::BookLevel) => {
            let level = BookLevel::read_from_bytes(payload).expect(WHOLE);
            format!("level {} {} {} {}", level.symbol, level.price, level.quantity, level.sequence)
        }
        Some(Kind::FeedStatus) => {
            let status = FeedStatus::read_from_bytes(payload).expect(WHOLE);
            format!("{:?}", FeedCondition::from_code(status.condition).expect("a condition"))
        }
        other => format!("{other:?}"),
    }
}

/// Writes a file of frames, a millisecond apart.
fn frames_text(frames: &[&str]) -> String {
    let line = |(number, frame): (u64, &&str)| format!("{} {frame}\n", 1_700_000_000_000_000_000 + number * 1_000_000);
    (0..).zip(frames).map(line).collect()
}

#[test]
fn frames_of_each_exchange_are_replayed_onto_a_topic() {
    for (exchange, name, frames) in [("okx", "BTC-USDT", OKX), ("binance", "BTCUSDT", BINANCE)] {
        let (folder, topic) = (tempdir().expect("a temporary folder"), FeedTopic::new(exchange));
        let file = folder.path().join("frames.txt");
        fs::write(&file, frames_text(frames)).expect("the folder is ours");
        let line = format!("feed {exchange} --instruments {name} --streams quotes,trades,books --speed max");
        let ran = tickpath(&format!("{line} --replay {} --to {} ticks", file.display(), topic.url));
        assert_eq!(ran.code, Some(0), "{exchange}: {}{}", ran.out, ran.err);
        // The order of levels in an update is the adapter's.
        let mut messages = topic.messages();
        messages[4..6].sort_unstable();
        assert_eq!(messages, MESSAGES, "{exchange}: {}", ran.err);
        for words in
            ["carried: 10 messages (1 quote, 1 trade, 2 book updates), 0 lost, 1 book gap", "connection 0: 0 rec"]
        {
            assert!(ran.out.contains(words), "{exchange}: no '{words}' in {}", ran.out);
        }
    }
}

#[test]
fn a_table_gives_a_feed_its_numbers_and_decimals() {
    let (folder, topic) = (tempdir().expect("a temporary folder"), FeedTopic::new("table"));
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("frames.txt"), frames_text(&OKX[..2])).expect("the folder is ours");
    let table = "symbol,number,venue,price_decimals,quantity_decimals\nBTC-USDT,7,OKX,10,8\nBTCUSDT,8,BINANCE,8,8\n";
    fs::write(at("instruments.csv"), table).expect("the folder is ours");
    let line = format!("feed okx --table {} --replay {}", at("instruments.csv"), at("frames.txt"));
    let ran = tickpath(&format!("{line} --to {} ticks", topic.url));
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    // Ten decimals, of which the text has eight: a hundred times the price.
    let quote = format!("quote 7 {} {}", price("10525250"), price("10525260"));
    assert_eq!(topic.messages()[2], quote);
    let ran = tickpath(&format!("{line} --to {} ticks --instruments DOGE-USDT", topic.url));
    check(&ran, 2, "'DOGE-USDT' is no instrument of the venue 'OKX'");
}

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

#[test]
fn a_bad_call_is_refused_with_a_sentence() {
    let folder = tempdir().expect("a temporary folder");
    let file = folder.path().join("frames.txt");
    fs::write(&file, "no frame\n").expect("the folder is ours");
    let (file, topic) = (file.display().to_string(), FeedTopic::new("refused"));
    let to = format!("--to {} ticks", topic.url);
    for (line, code, words) in [
        ("feed".to_owned(), 2, "EXCHANGE"),
        (format!("feed bybit --instruments A {to}"), 2, "okx, binance, binance-futures"),
        (format!("feed okx {to}"), 2, "--instruments"),
        ("feed okx --instruments A".to_owned(), 2, "--to"),
        ("feed okx --instruments A --to shm://".to_owned(), 2, "2 values required"),
        (format!("feed okx --instruments A,A {to}"), 2, "'A' is named twice"),
        (format!("feed okx --instruments A {to} --streams candles"), 2, "use some of quotes, trades, books"),
        (format!("feed okx --instruments A {to} --connections 3"), 2, "1..=2"),
        (format!("feed okx --instruments A {to} --speed 2"), 2, "--replay"),
        (format!("feed okx --instruments A {to} --replay {file} --raw x"), 2, "cannot be used with"),
        (format!("feed okx --instruments A {to} --venue OKX"), 2, "--table"),
        (format!("feed okx --table /no/such.csv {to}"), 2, "there is no such file"),
        (format!("feed okx --instruments A {to} --silence 0"), 2, "0.1 to 86400"),
        (format!("feed okx --instruments A {to} --format sbe"), 2, "--format sbe is for binance alone"),
        (format!("feed okx --instruments A {to} --key x"), 2, "--key is for binance alone"),
        (format!("feed okx --instruments A {to} --snapshot-depth 100"), 2, "is for binance and binance-futures"),
        (format!("feed binance --instruments A {to} --snapshot-depth 7"), 2, "'7' is no depth of a snapshot"),
        (format!("feed binance-futures --instruments A {to} --snapshot-depth 5000"), 2, "no snapshots of 5000 levels"),
        (format!("feed binance-futures --instruments A {to} --format sbe"), 2, "no market data as SBE"),
        (format!("feed binance --instruments A {to} --format sbe"), 2, "--format sbe needs an API key"),
        (format!("feed binance --instruments A {to} --key x"), 2, "market data as JSON needs no key"),
        (format!("feed binance --instruments A {to} --format sbe --key /no/such.toml"), 2, "/no/such.toml: the key"),
        (format!("feed binance --instruments A {to} --format sbe --key env:NO_SUCH_KEY"), 2, "NO_SUCH_KEY is not set"),
        (format!("feed okx --instruments A {to} --replay /no/such.txt"), 1, "/no/such.txt cannot be read"),
        (format!("feed okx --instruments A {to} --replay {file}"), 2, "has no frame"),
        (format!("feed okx --instruments A --to tcp://x t --replay {file}"), 2, "names no transport"),
    ] {
        check(&tickpath(&line), code, words);
    }
    let words = ["feed", "okx", "--instruments", "A,,B", "--to", "shm://", "t"];
    check(&tickpath_with(&words), 2, "a name is empty");
}

fn check(ran: &Ran, code: i32, words: &str) {
    let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ran.code, Some(code), "{}{sentence}", ran.out);
    assert!(sentence.contains(words) && !sentence.contains("panicked"), "no '{words}' in: {sentence}");
}
