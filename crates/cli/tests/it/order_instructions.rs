//! Instructions of a new order, from the command line over the OMS to the simulated exchange.

use crate::desk::{ASK, Desk};

/// Codes of the exchange's rejections.
const POST_ONLY: &str = "reason=11";
const UNSUPPORTED: &str = "reason=12";

#[test]
fn the_exchange_honours_or_rejects_each_instruction() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let check = |line: &str, code: i32, words: [&str; 2]| {
        let ran = desk.order(line);
        let text = format!("{}{}", ran.out, ran.err);
        let has_all = words.iter().all(|word| text.contains(word));
        assert!(ran.code == Some(code) && has_all, "{line}: {:?} {text}", ran.code);
    };
    let rejected = "rejected rejected side=buy leaves=0";
    check(&format!("new BTCUSDT buy 1 {ASK} --post-only --session 2 --id 1"), 1, [rejected, POST_ONLY]);
    check("new BTCUSDT buy 1 --post-only --session 2 --id 2", 1, [rejected, POST_ONLY]);
    check("new BTCUSDT buy 1 60000 --post-only --tif ioc --session 2 --id 3", 1, [rejected, POST_ONLY]);
    check("new BTCUSDT buy 1 60000 --post-only --session 2 --id 4", 0, ["new new side=buy leaves=1", ""]);
    check(&format!("replace 4 1 {ASK} --session 2 --id 5"), 1, ["cancel_rejected new side=buy leaves=1", POST_ONLY]);
    check("replace 4 2 60001 --session 2 --id 6", 0, ["replaced new side=buy leaves=2", ""]);
    check("new BTCUSDT buy 1 60000 --reduce-only --session 2 --id 7", 1, [rejected, UNSUPPORTED]);
    check("new BTCUSDT buy 1 60000 --self-trade cancel-both --session 2 --id 8", 1, [rejected, UNSUPPORTED]);
    check("new BTCUSDT buy 1 60000 --trade-mode isolated --session 2 --id 9", 1, [rejected, UNSUPPORTED]);
    check("new BTCUSDT buy 1 60000 --self-trade both", 2, ["use cancel-maker, cancel-taker or cancel-both", ""]);
    check("new BTCUSDT buy 1 60000 --trade-mode margin", 2, ["use cash, cross or isolated", ""]);
    let journal = desk.tickpath("log cat @/journal").out;
    for words in
        ["instructions=post_only ", "instructions=reduce_only ", "self_trade_mode=cancel_both trade_mode=default "]
    {
        assert!(journal.contains(words), "{words}: {journal}");
    }
    assert!(journal.contains("self_trade_mode=default trade_mode=isolated "), "{journal}");
}
