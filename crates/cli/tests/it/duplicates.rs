//! A second publisher repeats a message on the topic of a workload: its run reports the number, and is not valid.

use std::path::PathBuf;
use std::thread::JoinHandle;

use tickpath_bus::{StartPosition, SubscriptionEvent, TopicConfig, connect};
use tickpath_clock::{Priority, Wait};
use tickpath_lab_bus::pubsub::{Settings, measure_cold, round_trip};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::{Lab, ProgressSink};
use tickpath_lab_path::path::{self, TickSource};
use tickpath_lab_result::Run;
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};
use tickpath_oms_runtime::Layout;

struct Silent;

impl ProgressSink for Silent {
    fn step(&self, _what: &str, _seconds: f64) {}
}

#[test]
fn a_duplicate_message_makes_a_run_invalid() {
    let lab = Lab::new(PathBuf::from(env!("CARGO_BIN_EXE_tickpath")), &Silent).expect("a lab can be made");
    let server = ScratchServer::start(lab.folder(), &ServerSettings::default(), &lab.clock);
    let server = server.expect("it starts").expect("redis-server is installed");
    let (url, name) = (server.url(), &lab.name);
    let settings = Settings { count: 1_000_000, ..Settings::new(&url, [0, 0]) };

    let twice = publish_twice(&url, &format!("tickpath:{name}:pubsub"));
    duplicate_note(measure_cold(&lab, &settings, 5).expect("it runs"), twice);

    let twice = publish_twice(&url, &format!("tickpath:{name}:pubsub.answer"));
    duplicate_note(round_trip(&lab, &settings, 0.5).expect("it runs"), twice);

    let ticks = TickSource {
        file: None,
        seed: 1,
        rate: Some(1_000.0),
        arrivals: ArrivalProcess::Steady,
        speed: 1.0,
        count: 200,
    };
    let settings = path::Settings {
        target: url.clone(),
        external_client: None,
        layout: Layout::Inline,
        wait: Wait::Block,
        cpus: [0, 0],
        venue_cpu: None,
        generator_wait: None,
        priority: Priority::Normal,
        ticks,
        repeat: 1,
    };
    let twice = publish_twice(&url, &format!("tickpath:{name}.path0"));
    duplicate_note(path::run(&lab, &settings).expect("it runs"), twice);
}

/// Checks that the run reports one duplicate, and no loss.
#[track_caller]
fn duplicate_note(run: Run, twice: JoinHandle<()>) {
    twice.join().expect("it was said again");
    assert_eq!((run.valid, run.counts.duplicated, run.counts.lost), (false, 1, 0), "{run:?}");
    assert!(run.notes.iter().any(|note| note.contains("messages came twice")), "{:?}", run.notes);
}

/// Publishes the first message of a topic again.
fn publish_twice(url: &str, topic: &str) -> JoinHandle<()> {
    let connection = connect(url).expect("the server answers");
    let config = TopicConfig::new(connection.capabilities().policies[0]);
    let mut hears = connection.subscriber(topic, StartPosition::Now, Wait::Block).expect("anybody may subscribe");
    let mut says = connection.publisher(topic, &config).expect("anybody may publish");
    std::thread::spawn(move || {
        let mut is_said = false;
        while !is_said {
            let heard = hears.poll(1, &mut |event| {
                if let SubscriptionEvent::Message(message) = event {
                    says.publish(message.stamp, message.kind, message.payload).expect("the server answers");
                    is_said = true;
                }
            });
            heard.expect("the server answers");
            hears.wait(10_000_000);
        }
    })
}
