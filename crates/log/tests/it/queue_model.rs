//! A queue against a naive model: a list of messages, each with its holder.

use proptest::prelude::*;
use tickpath_log::{LogPublishError, OverflowPolicy, QueueDelivery, QueuePuller, Writer, queue_backlog};

use crate::{ScratchLog, payload, pull};

/// Number of pullers that join and leave.
const PLACES: usize = 4;

/// The longest payload: its frame takes 256 bytes, so that a segment of a page holds at least 15.
const LONGEST: usize = 240;
const FRAMES: usize = 15;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scripts(segments in 2_usize..6, steps in prop::collection::vec(step(), 1..500)) {
        check(segments, &steps);
    }
}

#[derive(Debug, Clone)]
enum QueueAction {
    /// Bytes of the message.
    Push(usize),
    /// Number of the puller, and the limit.
    Pull(usize, usize),
    Acknowledge(usize),
    Join(usize, QueueDelivery),
    Leave(usize),
    /// Another pusher takes over.
    Restart,
}

fn step() -> impl Strategy<Value = QueueAction> {
    let delivery = prop_oneof![3 => Just(QueueDelivery::AtLeastOnce), 1 => Just(QueueDelivery::AtMostOnce)];
    prop_oneof![
        24 => (0..=LONGEST).prop_map(QueueAction::Push),
        8 => (0..PLACES, 0_usize..50).prop_map(|(place, limit)| QueueAction::Pull(place, limit)),
        6 => (0..PLACES).prop_map(QueueAction::Acknowledge),
        3 => (0..PLACES, delivery).prop_map(|(place, delivery)| QueueAction::Join(place, delivery)),
        1 => (0..PLACES).prop_map(QueueAction::Leave),
        1 => Just(QueueAction::Restart),
    ]
}

fn check(segments: usize, steps: &[QueueAction]) {
    let mut scene = ModelledQueue::new(segments);
    for step in steps {
        scene.step(step);
        assert_eq!(
            queue_backlog(scene.scratch.place()).expect("the queue is there"),
            scene.waiting(usize::MAX).len() as u64
        );
    }
    scene.end();
}

/// State of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Unclaimed {
        redelivered: bool,
    },
    /// Held by the puller with this number.
    Held(usize),
    Done,
}

/// A queue, and its model.
struct ModelledQueue {
    scratch: ScratchLog,
    segments: usize,
    writer: Option<Writer>,
    pullers: [Option<(QueuePuller, QueueDelivery)>; PLACES],
    messages: Vec<MessageState>,
}

impl ModelledQueue {
    fn new(segments: usize) -> Self {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, segments);
        let writer = Some(scratch.queue());
        Self { scratch, segments, writer, pullers: [const { None }; PLACES], messages: Vec::new() }
    }

    fn step(&mut self, step: &QueueAction) {
        match *step {
            QueueAction::Push(length) => self.push(length),
            QueueAction::Pull(place, limit) => self.pull(place, limit),
            QueueAction::Acknowledge(place) => self.acknowledge(place),
            QueueAction::Join(place, delivery) => {
                self.leave(place);
                self.pullers[place] = Some((self.scratch.puller(delivery), delivery));
            }
            QueueAction::Leave(place) => self.leave(place),
            QueueAction::Restart => {
                self.writer = None;
                let writer = self.scratch.queue();
                assert_eq!(writer.sequence(), self.messages.len() as u64);
                self.writer = Some(writer);
            }
        }
    }

    fn push(&mut self, length: usize) {
        let number = self.messages.len() as u64;
        let writer = self.writer.as_mut().expect("there is always a pusher");
        match writer.publish(number + 7, 16, &payload(number, length)) {
            Ok(published) => {
                assert_eq!(published, number);
                self.messages.push(MessageState::Unclaimed { redelivered: false });
            }
            Err(LogPublishError::Full) => {
                let oldest = self.messages.iter().position(|state| *state != MessageState::Done);
                let there = self.messages.len() - oldest.expect("a full queue has an unfinished message");
                assert!(there > FRAMES * (self.segments - 1), "full, and only {there} messages are to be kept");
            }
            Err(e) => panic!("{e}"),
        }
    }

    /// Pulls, and checks that the puller gets the oldest waiting messages in order.
    fn pull(&mut self, place: usize, limit: usize) {
        let expected = self.waiting(limit);
        let Some((puller, delivery)) = &mut self.pullers[place] else { return };
        let pulled = pull(puller, limit);
        assert_eq!(pulled, expected, "at place {place}");
        let after = match delivery {
            QueueDelivery::AtLeastOnce => MessageState::Held(place),
            QueueDelivery::AtMostOnce => MessageState::Done,
        };
        pulled.iter().for_each(|&(number, _)| self.messages[number as usize] = after);
    }

    fn acknowledge(&mut self, place: usize) {
        if let Some((puller, _)) = &mut self.pullers[place] {
            puller.acknowledge();
            self.turn(MessageState::Held(place), MessageState::Done);
        }
    }

    fn leave(&mut self, place: usize) {
        self.pullers[place] = None;
        self.turn(MessageState::Held(place), MessageState::Unclaimed { redelivered: true });
    }

    fn turn(&mut self, from: MessageState, to: MessageState) {
        self.messages.iter_mut().filter(|state| **state == from).for_each(|state| *state = to);
    }

    /// Returns the numbers and marks of the first messages that wait.
    fn waiting(&self, limit: usize) -> Vec<(u64, bool)> {
        let mark = |(number, state): (u64, &MessageState)| match state {
            MessageState::Unclaimed { redelivered } => Some((number, *redelivered)),
            MessageState::Held(_) | MessageState::Done => None,
        };
        (0..).zip(&self.messages).filter_map(mark).take(limit).collect()
    }

    /// Checks that after all pullers have left a new one gets the rest, and the queue still works.
    fn end(mut self) {
        (0..PLACES).for_each(|place| self.leave(place));
        self.step(&QueueAction::Join(0, QueueDelivery::AtLeastOnce));
        for _ in 0..FRAMES * self.segments * 2 {
            self.pull(0, usize::MAX);
            self.acknowledge(0);
            self.push(LONGEST);
            assert_eq!(
                self.messages.last(),
                Some(&MessageState::Unclaimed { redelivered: false }),
                "nothing holds the pusher"
            );
        }
    }
}
