//! A disk that is full while clients trade over sockets. The OMS's own tests cover a full disk with lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_clock::sleep_ns;
use tickpath_log::LogPath;
use tickpath_market::{ExecType, OrdStatus, Request};
use tickpath_oms_core::{Core, Input, Output};
use tickpath_oms_runtime::journal;

use crate::trader::{LOW, ProcessFixture, Trader};

/// Journal and history have segments of 16 MiB, and the limit leaves no room for a second segment.
const FILE_BYTES: u64 = 17 << 20;

#[test]
fn a_full_disk_ends_the_server_with_a_sentence_and_loses_no_order() {
    // The larger of two growing logs fills first: a denied order takes more of the journal.
    for (layout, too_large, line) in
        [("inline", 0, "the history accepts no reports ("), ("split", 6, "the journal accepts no records (")]
    {
        let desk = ProcessFixture::new(1, "", true);
        desk.lay_out(layout);
        let exchange = desk.start("exchange");
        let log = desk.folder.path().join("told");
        let mut oms = desk.start_full(FILE_BYTES / 512, &log);
        let mut traders = [Trader::new(&desk), Trader::of(&desk.oms, 1)];
        for trader in &mut traders {
            trader.too_large = too_large;
            (0..2).for_each(|_| trader.send_new(LOW));
            trader.until("both rest", |trader| trader.open.values().all(|status| *status == OrdStatus::New.code()));
        }
        trade_until_end(&mut traders, &mut oms.0);
        let fills = traders.iter().map(|trader| trader.fills.len()).sum::<usize>();
        assert!(fills > 1_000, "too little was traded: {fills}");
        let sentence = fs::read_to_string(log).expect("it has said something");
        assert_eq!(sentence.matches(line).count(), 1, "{sentence}");
        assert!(sentence.contains("free space on its disk and start again"), "{sentence}");
        drop(oms);
        let _oms = desk.start_full(u64::MAX >> 20, &desk.folder.path().join("told then"));
        for trader in &mut traders {
            let filled = trader.fills.len() + 50;
            trader.trade("orders fill again", |trader| trader.fills.len() >= filled);
            trader.until("what rests is left", |trader| trader.open.len() == 2);
            trader.cancel_all();
            trader.until("nothing is left", |trader| trader.open.is_empty());
        }
        let fills = traders.iter().map(|trader| trader.fills.len()).sum::<usize>();
        assert_eq!(desk.orders().len(), fills + 4, "orders at the exchange, and fills that were told, {line}");
        assert_agreed(&desk, &traders);
        drop(exchange);
    }
}

/// Lets all clients trade until this process has ended.
fn trade_until_end(traders: &mut [Trader], process: &mut Child) {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let trades = |trader: &mut Trader| trader.trade("the disk is full", |_| has_ended.load(Ordering::SeqCst));
        let threads: Vec<_> = traders.iter_mut().map(|trader| scope.spawn(move || trades(trader))).collect();
        while process.try_wait().expect("it can be asked after").is_none()
            && threads.iter().any(|thread| !thread.is_finished())
        {
            sleep_ns(1_000_000);
        }
        has_ended.store(true, Ordering::SeqCst);
    });
}

/// Checks that the OMS's journal agrees with each client's own list, by its session: no more, no less, and each order
/// once.
fn assert_agreed(desk: &ProcessFixture, traders: &[Trader]) {
    let mut lists = vec![(Vec::new(), BTreeMap::new(), BTreeSet::new()); traders.len()];
    let mut core = Core::new(tickpath_oms_core::Config { expected_orders: 0, key: 0 });
    let place = LogPath::folder(desk.folder.path().join("journal"));
    let replayed = journal::replay(&place, &mut core, |input, outputs| {
        if let Input::Request { envelope, request: Request::New(new) } = input {
            lists[usize::from(envelope.session)].0.push(new.client_order_id.0);
        }
        for output in outputs {
            match output {
                Output::Report { session, report } if report.exec_type == ExecType::Trade.code() => {
                    lists[usize::from(*session)].1.insert(report.exec_id.0, report.client_order_id.0);
                }
                Output::Denied { session, denied } => {
                    lists[usize::from(*session)].2.insert(denied.client_order_id.0);
                }
                _ => {}
            }
        }
    });
    replayed.expect("it is whole");
    for (trader, (mut sent, fills, denied)) in traders.iter().zip(lists) {
        sent.sort_unstable();
        // The client's last two requests are cancels.
        let came = sent.len();
        assert!(sent.into_iter().eq(1..trader.next_id - 2), "each order once: {came} of {}", trader.next_id - 3);
        assert!(fills == trader.fills, "{} fills, and {} were told", fills.len(), trader.fills.len());
        assert!(denied == trader.denied, "{} denied, and {} were told", denied.len(), trader.denied.len());
    }
}
