//! The in-place reader and the complete reader agree on whatever the first accepts. A space before a frame leaves it to
//! the complete reader.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tickpath_feed::Frame;
use tickpath_feed_binance::TimeUnit;

use crate::frames::{parse, parser};

/// Bytes that a JSON message consists of.
const BYTES: &[u8] = br#"0123456789."-+eE[]{}:,\ tfuBTCS"#;

fn decimal() -> impl Strategy<Value = String> {
    prop_oneof![
        (any::<u32>(), 0u32..1_000).prop_map(|(whole, fraction)| format!("{whole}.{fraction:03}")),
        any::<u32>().prop_map(|whole| whole.to_string()),
        select(vec!["0", "0.00000000", "0.1", "10.50000000", "92233720368.54775807", "92233720369"])
            .prop_map(str::to_owned),
    ]
}

fn levels() -> impl Strategy<Value = String> {
    vec((decimal(), decimal()), 0..4).prop_map(|levels| {
        let levels: Vec<String> =
            levels.iter().map(|(price, quantity)| format!(r#"["{price}","{quantity}"]"#)).collect();
        format!("[{}]", levels.join(","))
    })
}

/// Messages of all hot forms, with any numbers.
fn message() -> impl Strategy<Value = String> {
    let number = || prop_oneof![any::<u64>(), 0u64..10, 1_600_000_000_000u64..2_000_000_000_000];
    let symbol = select(vec!["BTCUSDT", "BNBBTC", "BNBUSDT", "ETHUSDT"]);
    let numbers = [number(), number(), number(), number(), number()];
    let decimals = [decimal(), decimal(), decimal(), decimal()];
    let flags = any::<(bool, bool)>();
    (0usize..8, symbol, numbers, decimals, [levels(), levels()], flags).prop_map(
        |(form, s, [a, b, c, d, e], [p, q, r, t], [bids, asks], (m, is_new))| {
            let (pair, kind) = if is_new { (format!(r#","ps":"{s}""#), r#","st":1"#) } else { (String::new(), "") };
            match form {
                0 => format!(r#"{{"u":{a},"s":"{s}","b":"{p}","B":"{q}","a":"{r}","A":"{t}"}}"#),
                1 => format!(
                    r#"{{"e":"bookTicker","u":{a},"s":"{s}"{pair},"b":"{p}","B":"{q}","a":"{r}","A":"{t}","T":{b},"E":{c}{kind}}}"#
                ),
                2 => format!(
                    r#"{{"e":"trade","E":{a},"s":"{s}","t":{b},"p":"{p}","q":"{q}","T":{c},"m":{m},"M":true}}"#
                ),
                3 => format!(
                    r#"{{"e":"trade","E":{a},"T":{b},"s":"{s}","t":{c},"p":"{p}","q":"{q}","X":"MARKET","m":{m}{kind}}}"#
                ),
                4 => format!(
                    r#"{{"e":"aggTrade","E":{a},"a":{b},"s":"{s}","p":"{p}","q":"{q}","nq":"{r}","f":{c},"l":{d},"T":{e},"m":{m}{kind}}}"#
                ),
                5 => format!(
                    r#"{{"e":"depthUpdate","E":{a},"s":"{s}","U":{b},"u":{c},"b":{bids},"a":{asks}}}"#
                ),
                6 => format!(
                    r#"{{"e":"depthUpdate","E":{a},"T":{b},"s":"{s}"{pair},"U":{c},"u":{d},"pu":{e},"b":{bids},"a":{asks}{kind}}}"#
                ),
                _ => format!(
                    r#"{{"stream":"btcusdt@depthSnapshot","data":{{"lastUpdateId":{a},"E":{b},"T":{c},"bids":{bids},"asks":{asks}}}}}"#
                ),
            }
        },
    )
}

/// A place in a frame, and the byte to put there.
fn change() -> impl Strategy<Value = (Index, u8)> {
    (any::<Index>(), prop_oneof![8 => select(BYTES), 1 => any::<u8>()])
}

proptest! {
    #[test]
    fn both_readers_agree_on_whatever_the_scan_accepts(
        message in message(),
        is_combined in any::<bool>(),
        changes in vec(change(), 0..4),
        is_micro in any::<bool>(),
    ) {
        let text = if is_combined { format!(r#"{{"stream":"btcusdt@any","data":{message}}}"#) } else { message };
        let mut frame = text.into_bytes();
        for (place, byte) in changes {
            let place = place.index(frame.len());
            frame[place] = byte;
        }
        let mut spaced = vec![b' '];
        spaced.extend_from_slice(&frame);
        let mut parser = parser(if is_micro { TimeUnit::Microsecond } else { TimeUnit::Millisecond });
        let read = parse(&mut parser, Frame::Text(&frame));
        let read_completely = parse(&mut parser, Frame::Text(&spaced));
        prop_assert_eq!(read.ok(), read_completely.ok(), "{}", String::from_utf8_lossy(&frame));
        prop_assert!(parser.complete_reads() >= 1);
    }
}
