//! A strategy in a process of its own that logs on to its OMS: our client, in turn with that of another language.

use std::path::PathBuf;

use tickpath_clock::{Priority, Wait};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::{Lab, LabError, ProgressSink};
use tickpath_lab_path::TradingClient;
use tickpath_lab_path::path::{Settings, TickSource, run};
use tickpath_oms_runtime::Layout;

struct Silent;

impl ProgressSink for Silent {
    fn step(&self, _what: &str, _seconds: f64) {}
}

#[test]
fn a_strategy_that_logs_on_has_every_hop_of_its_orders() {
    const TICKS: u64 = 300;
    let lab = lab();
    let run = run(&lab, &settings(Layout::Split, TICKS)).expect("it runs");
    let counts = (run.counts.sent, run.counts.received, run.counts.lost, run.counts.left);
    assert_eq!(counts, (TICKS, TICKS, 0, 0), "{run:?}");
    assert_eq!((run.client.as_str(), run.params.text("entry").as_deref()), ("rust", Some("shm+unix://")));
    // Before the first quote there is no best price.
    let orders = run.hops["tick_to_order"].count;
    assert!(orders > TICKS / 2, "{run:?}");
    for hop in ["one_way", "service", "t0_t1", "t1_t2", "tick_to_venue", "order_ack", "order_round_trip"] {
        assert_eq!((run.hops[hop].count, run.hops[hop].negative), (orders, 0), "{hop}: {run:?}");
    }
    assert!(run.stages.iter().any(|stage| stage.name == "seen_to_sent" && stage.p50_ns.is_some_and(|ns| ns > 0.0)));
    assert!(run.figures["receiver_cpu_per_message_ns"] > 0.0, "{run:?}");
    assert!(!run.notes.iter().any(|note| note.contains("the OMS reported")), "{:?}", run.notes);
}

#[test]
fn a_strategy_shares_no_thread_with_the_core() {
    for layout in [Layout::Inline, Layout::Mutex] {
        let refused = run(&lab(), &settings(layout, 1)).map(|_| ());
        assert!(matches!(&refused, Err(LabError::Setting(what)) if what.contains("--layout split")), "{refused:?}");
    }
}

fn lab() -> Lab<'static> {
    Lab::new(PathBuf::from(env!("CARGO_BIN_EXE_tickpath")), &Silent).expect("a lab can be made")
}

fn settings(layout: Layout, count: u64) -> Settings {
    Settings {
        target: "shm://".to_owned(),
        external_client: Some(TradingClient::Rust),
        layout,
        wait: Wait::Block,
        cpus: [0, 0],
        venue_cpu: None,
        generator_wait: None,
        priority: Priority::Normal,
        ticks: TickSource {
            file: None,
            seed: 1,
            rate: Some(1_000.0),
            arrivals: ArrivalProcess::Steady,
            speed: 1.0,
            count,
        },
        repeat: 1,
    }
}
