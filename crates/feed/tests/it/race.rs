//! The race of connections against a naive model: the same list of messages on each connection, in any interleaving.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_feed::{MessageKey, MessageStream, RECENT_MESSAGES, Race, RaceCounts};
use tickpath_market::SymbolId;

const STREAMS: [MessageStream; 3] = [MessageStream::Quote, MessageStream::Trade, MessageStream::Book];

/// A rise of a stream's number, or a reset.
#[derive(Debug, Clone, Copy)]
enum Move {
    Rise(u64),
    /// To this share of the last number, in sixteenths.
    Reset(u64),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![8 => (1_u64..4).prop_map(Move::Rise), 1 => (0_u64..16).prop_map(Move::Reset)]
}

fn key(stream: MessageStream, sequence: u64) -> MessageKey {
    MessageKey { symbol: SymbolId(1), stream, sequence }
}

/// Returns the messages of six streams. Numbers of different runs may be equal, but not in a row.
fn mixed_messages(moves: &[(usize, Move)]) -> Vec<MessageKey> {
    let mut last = HashMap::new();
    let next = |&(stream, step): &(usize, Move)| {
        let (symbol, stream) = (SymbolId(stream as u32 / 3), STREAMS[stream % 3]);
        let last = last.entry((symbol, stream)).or_insert(100);
        *last = match step {
            Move::Reset(share) if *last > 0 => *last * share / 16,
            Move::Reset(_) => 1,
            Move::Rise(by) => *last + by,
        };
        MessageKey { symbol, stream, sequence: *last }
    };
    moves.iter().map(next).collect()
}

/// Returns the numbers of one stream. No number occurs twice, as in practice.
fn distinct_numbers(moves: &[Move]) -> Vec<u64> {
    let (mut height, mut run) = (1 << 20, 0);
    let next = |step: &Move| {
        match *step {
            Move::Reset(share) if height > 2 => (height, run) = (height * share / 32, run + 1),
            Move::Reset(by) | Move::Rise(by) => height += by + 1,
        }
        height * 1024 + run
    };
    moves.iter().map(next).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_message_is_passed_on_once_and_in_order(
        moves in vec((0_usize..6, moves()), 1..200),
        turns in vec(0_usize..3, 1..1000),
    ) {
        let messages = mixed_messages(&moves);
        let (mut race, mut next, mut passed) = (Race::new(3), [0; 3], 0);
        (0..3).for_each(|connection| race.connected(connection));
        // The rest of each connection comes at the end.
        let rest = (0..3).flat_map(|connection| std::iter::repeat_n(connection, messages.len()));
        for connection in turns.iter().copied().chain(rest) {
            let Some(message) = messages.get(next[connection]) else { continue };
            let is_new = next[connection] == passed;
            let is_first = race.is_first(connection, *message);
            prop_assert_eq!(is_first, is_new, "message {} of {:?}", next[connection], &messages);
            passed += usize::from(is_new);
            next[connection] += 1;
        }
        prop_assert_eq!(passed, messages.len());
        let counts = (0..3).map(|connection| race.counts(connection));
        let (won, lost) = counts.fold((0, 0), |(won, lost), counts| (won + counts.won, lost + counts.lost));
        prop_assert_eq!((won, lost), (messages.len() as u64, 2 * messages.len() as u64));
    }

    #[test]
    fn a_connection_that_comes_and_goes_loses_and_doubles_nothing(
        moves in vec(moves(), 1..200),
        steps in vec(step(), 1..600),
        stream in 1_usize..3,
    ) {
        let numbers = distinct_numbers(&moves);
        let mut flapping = Flapping::new(STREAMS[stream], &numbers);
        for step in steps {
            flapping.step(step);
        }
        while flapping.next[0] < numbers.len() {
            flapping.receive(0);
        }
        prop_assert_eq!(flapping.passed, (0..numbers.len()).collect::<Vec<_>>());
    }

    #[test]
    fn quotes_of_a_connection_that_comes_and_goes_rise(
        rises in vec(1_u64..5, 1..200),
        steps in vec(step(), 1..600),
    ) {
        let rises: Vec<Move> = rises.into_iter().map(Move::Rise).collect();
        let numbers = distinct_numbers(&rises);
        let mut flapping = Flapping::new(MessageStream::Quote, &numbers);
        for step in steps {
            flapping.step(step);
        }
        while flapping.next[0] < numbers.len() {
            flapping.receive(0);
        }
        prop_assert!(flapping.passed.is_sorted_by(|a, b| a < b), "passed on: {:?}", flapping.passed);
        prop_assert_eq!(flapping.passed.last(), Some(&(numbers.len() - 1)));
    }

    #[test]
    fn a_connection_that_is_alone_is_never_blocked(
        history in vec((0_usize..2, 0_u64..50, 0_u8..20), 0..400),
        first in 0_u64..60,
        stream in 0_usize..3,
    ) {
        let mut race = Race::new(2);
        for (connection, sequence, kind) in history {
            match kind {
                0 => race.connected(connection),
                1 => race.disconnected(connection),
                _ => {
                    race.is_first(connection, key(STREAMS[stream], sequence));
                }
            }
        }
        race.connected(0);
        race.disconnected(1);
        let count = RECENT_MESSAGES as u64 + 10;
        let taken: Vec<bool> = (0..count).map(|n| race.is_first(0, key(STREAMS[stream], first + n))).collect();
        let begin = taken.iter().position(|&is_first| is_first).expect("a message is passed on");
        prop_assert!(taken[begin..].iter().all(|&is_first| is_first), "{:?}", taken);
    }
}

/// Step of two connections, of which the second comes and goes.
#[derive(Debug, Clone, Copy)]
enum Step {
    Receive(usize),
    /// Connects the second one so many messages behind the first one, or ahead of it if the number is negative.
    Connect(i64),
    Disconnect,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0_usize..2).prop_map(Step::Receive),
        1 => (-6_i64..6).prop_map(Step::Connect),
        1 => Just(Step::Disconnect),
    ]
}

struct Flapping<'a> {
    race: Race,
    stream: MessageStream,
    numbers: &'a [u64],
    /// Index of the next message of each connection.
    next: [usize; 2],
    is_up: [bool; 2],
    /// Indexes of the messages that were passed on.
    passed: Vec<usize>,
}

impl<'a> Flapping<'a> {
    fn new(stream: MessageStream, numbers: &'a [u64]) -> Self {
        let mut race = Race::new(2);
        race.connected(0);
        Self { race, stream, numbers, next: [0; 2], is_up: [true, false], passed: Vec::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Receive(connection) => self.receive(connection),
            // A connection before the stream's first message would bring that message.
            Step::Connect(behind) if self.next[0] > 0 => {
                self.race.connected(1);
                (self.is_up[1], self.next[1]) = (true, (self.next[0] as i64 - behind).max(0) as usize);
            }
            Step::Connect(_) => {}
            Step::Disconnect => {
                self.race.disconnected(1);
                self.is_up[1] = false;
            }
        }
    }

    fn receive(&mut self, connection: usize) {
        let index = self.next[connection];
        let Some(&number) = self.numbers.get(index).filter(|_| self.is_up[connection]) else { return };
        self.next[connection] += 1;
        if self.race.is_first(connection, key(self.stream, number)) {
            self.passed.push(index);
        }
    }
}

/// Passes numbers of a stream of trades, and compares whether each is first.
fn check(race: &mut Race, arrivals: &[(usize, u64, bool)]) {
    for (at, &(connection, number, is_first)) in arrivals.iter().enumerate() {
        let found = race.is_first(connection, key(MessageStream::Trade, number));
        assert_eq!(found, is_first, "arrival {at}: {number} on connection {connection}");
    }
}

#[test]
fn a_reset_is_recognised_on_each_connection() {
    let mut race = Race::new(2);
    (0..2).for_each(|connection| race.connected(connection));
    check(&mut race, &[(0, 14, true), (0, 15, true), (0, 3, true), (1, 14, false), (1, 15, false), (0, 5, true)]);
    check(&mut race, &[(1, 3, false), (1, 5, false), (1, 9, true), (0, 9, false), (0, 4, true), (1, 4, false)]);
}

#[test]
fn after_all_connections_were_down_any_number_is_taken() {
    let mut race = Race::new(2);
    (0..2).for_each(|connection| race.connected(connection));
    check(&mut race, &[(0, 14, true), (1, 14, false)]);
    race.disconnected(0);
    check(&mut race, &[(1, 15, true)]);
    race.disconnected(1);
    race.connected(1);
    check(&mut race, &[(1, 14, true), (1, 15, true)]);
}

#[test]
fn messages_of_an_ended_connection_stay_duplicates() {
    let mut race = Race::new(2);
    (0..2).for_each(|connection| race.connected(connection));
    check(&mut race, &[(0, 14, true), (0, 15, true), (0, 3, true)]);
    race.disconnected(0);
    check(&mut race, &[(1, 14, false), (1, 15, false), (1, 3, false), (1, 4, true)]);
}

#[test]
fn a_joined_connection_waits_until_the_other_one_has_reached_it() {
    let mut race = Race::new(2);
    race.connected(0);
    check(&mut race, &[(0, 14, true)]);
    race.connected(1);
    check(&mut race, &[(1, 16, false), (0, 15, true), (0, 16, true), (1, 17, true), (0, 17, false)]);
}

#[test]
fn a_joined_connection_takes_over_from_a_stalled_one() {
    let mut race = Race::new(2);
    race.connected(0);
    check(&mut race, &[(0, 14, true)]);
    race.connected(1);
    let waits = RECENT_MESSAGES as u64;
    for number in 0..waits {
        check(&mut race, &[(1, 100 + number, false)]);
    }
    check(&mut race, &[(1, 100 + waits, true), (0, 15, false)]);
}

#[test]
fn a_quote_of_a_joined_connection_wins_at_once() {
    let mut race = Race::new(2);
    race.connected(0);
    assert!(race.is_first(0, key(MessageStream::Quote, 14)));
    race.connected(1);
    assert!(race.is_first(1, key(MessageStream::Quote, 16)));
    assert!(!race.is_first(0, key(MessageStream::Quote, 15)));
    assert!(race.is_first(0, key(MessageStream::Quote, 17)));
}

#[test]
fn each_message_is_counted_once() {
    let mut race = Race::new(2);
    race.connected(0);
    check(&mut race, &[(0, 1, true), (0, 1, false), (0, 2, true)]);
    race.connected(1);
    check(&mut race, &[(1, 2, false), (1, 3, true), (0, 3, false), (0, 4, true)]);
    assert_eq!(race.counts(0), RaceCounts { won: 1, lost: 1, alone: 2 });
    assert_eq!(race.counts(1), RaceCounts { won: 1, lost: 1, alone: 0 });
}
