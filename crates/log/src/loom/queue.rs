//! Models of the claim protocol: pullers that share, one that dies, and the writer behind them. Three threads have too
//! many orders to try them all: at most two preemptions, unless `LOOM_MAX_PREEMPTIONS` is set.

use ::loom::model::Builder;
use ::loom::sync::Arc;
use ::loom::thread;

use super::{RingModel, enter, message};
use crate::claim::{Claim, ClaimOwner, ClaimTable, QueueDelivery};
use crate::control::{CONTROL_BYTES, ControlFile};
use crate::follow::CursorStep;
use crate::layout::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering, fence};

const MESSAGES: u64 = 2;
/// States of the lock of the puller that dies.
const HELD: u64 = 0;
const RELEASED: u64 = 1;

#[test]
fn each_message_goes_to_one_puller_and_the_cursor_follows() {
    bounded(|| {
        let claims = group(ControlFile { region: Region::heap(CONTROL_BYTES) });
        let other_claims = claims.clone();
        let other = thread::spawn(move || {
            let owner = other_claims.join(1, QueueDelivery::AtLeastOnce);
            claim_and_finish(&other_claims, owner)
        });
        let owner = claims.join(0, QueueDelivery::AtMostOnce);
        let mut all = claim_and_finish(&claims, owner);
        all.extend(other.join().expect("the other puller ends"));
        all.sort_unstable();
        assert_eq!((all, claims.cursor()), (vec![0, 1], MESSAGES));
    });
}

/// One puller claims as many messages as it can, finishes some and dies at any moment; the other receives the rest,
/// each message once, and knows which of them the first had.
#[test]
fn messages_of_a_dead_puller_are_redelivered() {
    for finishes in 0..=2 {
        bounded(move || {
            let claims = group(ControlFile { region: Region::heap(CONTROL_BYTES) });
            let lock = Arc::new(AtomicU64::new(HELD));
            let (other_claims, held) = (claims.clone(), lock.clone());
            let dying =
                thread::spawn(move || claim_and_die(&other_claims, &held, QueueDelivery::AtLeastOnce, finishes));
            let owner = claims.join(0, QueueDelivery::AtLeastOnce);
            let mut received = Vec::new();
            take(&claims, owner, &mut received);
            if end_dead_puller(&claims, &lock) {
                take(&claims, owner, &mut received);
            }
            let claimed = dying.join().expect("the dying puller ends");
            claims.leave(1);
            take(&claims, owner, &mut received);
            check_shares(&claimed, finishes, &received);
            received.iter().for_each(|&(sequence, _)| claims.finish(sequence));
            claims.advance();
            assert_eq!(claims.cursor(), MESSAGES);
        });
    }
}

/// Messages handed over for good are never redelivered, and block no puller.
#[test]
fn messages_handed_over_by_a_dead_puller_are_done() {
    bounded(|| {
        let claims = group(ControlFile { region: Region::heap(CONTROL_BYTES) });
        let lock = Arc::new(AtomicU64::new(HELD));
        let (other_claims, held) = (claims.clone(), lock.clone());
        let dying = thread::spawn(move || claim_and_die(&other_claims, &held, QueueDelivery::AtMostOnce, 0));
        let owner = claims.join(0, QueueDelivery::AtLeastOnce);
        let mut all = claim_and_finish(&claims, owner);
        if end_dead_puller(&claims, &lock) {
            all.extend(claim_and_finish(&claims, owner));
        }
        all.extend(dying.join().expect("the dying puller ends"));
        claims.leave(1);
        all.extend(claim_and_finish(&claims, owner));
        all.sort_unstable();
        assert_eq!((all, claims.cursor()), (vec![0, 1], MESSAGES));
    });
}

/// The writer needs the segment of the first message while one puller dies with it and the other takes it over: the
/// segment stays unchanged until the message is done, and is then recycled.
#[test]
fn the_writer_recycles_only_done_messages() {
    bounded(|| {
        let mut ring = RingModel::new(2, 1, true);
        assert!(ring.append(0) && ring.append(1));
        let (claims, regions) = (group(ring.control.clone()), ring.regions.clone());
        let lock = Arc::new(AtomicU64::new(HELD));
        let (other_claims, held) = (claims.clone(), lock.clone());
        let dying = thread::spawn(move || claim_and_die(&other_claims, &held, QueueDelivery::AtLeastOnce, 1));
        let writer = thread::spawn(move || {
            let recycled = ring.append(2);
            (ring, recycled)
        });
        let owner = claims.join(0, QueueDelivery::AtLeastOnce);
        let mut received = read_and_finish(&regions, &claims, owner);
        if end_dead_puller(&claims, &lock) {
            received.extend(read_and_finish(&regions, &claims, owner));
        }
        let claimed = dying.join().expect("the dying puller ends");
        let (mut ring, recycled) = writer.join().expect("the writer ends");
        claims.leave(1);
        received.extend(read_and_finish(&regions, &claims, owner));
        check_shares(&claimed, 1, &received);
        assert_eq!(claims.cursor(), MESSAGES);
        assert!(recycled || ring.append(2), "all is done, and yet there is no room");
    });
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    // A whole ring takes more steps than the default allows.
    builder.max_branches = builder.max_branches.max(10_000);
    builder.check(model);
}

/// Builds the words of a queue of two messages, both present.
fn group(control: ControlFile) -> ClaimTable {
    let claims = ClaimTable::new(Region::heap(ClaimTable::bytes(MESSAGES)), control, MESSAGES);
    claims.restore(0, MESSAGES);
    claims
}

/// Claims as many messages as it can, finishes the first `finishes` of them, and drops its lock last.
fn claim_and_die(claims: &ClaimTable, lock: &AtomicU64, delivery: QueueDelivery, finishes: usize) -> Vec<u64> {
    let owner = claims.join(1, delivery);
    let claimed: Vec<u64> = (0..MESSAGES).filter(|&sequence| claims.claim(sequence, owner).is_some()).collect();
    claimed.iter().take(finishes).for_each(|&sequence| claims.finish(sequence));
    lock.store(RELEASED, Ordering::Release);
    claimed
}

/// Ends the dead puller's slot; returns true if its lock was free.
fn end_dead_puller(claims: &ClaimTable, lock: &AtomicU64) -> bool {
    let is_dead = lock.load(Ordering::Acquire) == RELEASED;
    if is_dead {
        let before = claims.rescan_count();
        claims.leave(1);
        assert_ne!(claims.rescan_count(), before, "no puller would walk again");
    }
    is_dead
}

/// Claims as many messages as it can.
fn take(claims: &ClaimTable, owner: ClaimOwner, taken: &mut Vec<(u64, Claim)>) {
    taken.extend((0..MESSAGES).filter_map(|sequence| Some((sequence, claims.claim(sequence, owner)?))));
}

fn claim_and_finish(claims: &ClaimTable, owner: ClaimOwner) -> Vec<u64> {
    let mut taken = Vec::new();
    take(claims, owner, &mut taken);
    taken.iter().for_each(|&(sequence, _)| claims.finish(sequence));
    claims.advance();
    taken.into_iter().map(|(sequence, _)| sequence).collect()
}

/// Reads each message in place, after it was claimed, as pullers do.
fn read_and_finish(regions: &[Region], claims: &ClaimTable, owner: ClaimOwner) -> Vec<(u64, Claim)> {
    let mut taken = Vec::new();
    for sequence in 0..MESSAGES {
        let Some(mut cursor) = enter(regions, sequence, 1) else {
            // Pairs with the writer's release of the generation, which it changes after its check of the cursor.
            fence(Ordering::Acquire);
            assert!(claims.cursor() > sequence, "message {sequence} is gone, and was not done");
            continue;
        };
        if !matches!(cursor.skip_frame().expect("nothing is damaged"), CursorStep::Frame(_)) {
            continue;
        }
        let Some(claim) = claims.claim(sequence, owner) else { continue };
        let mut lent = [0; 16];
        regions[sequence as usize].copy_out(SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES, &mut lent);
        assert_eq!(lent, message(sequence), "a claimed message has changed");
        claims.finish(sequence);
        taken.push((sequence, claim));
    }
    claims.advance();
    taken
}

/// Checks that the dead puller finished each message, or the other received it once, marked if the dead one had it.
fn check_shares(claimed: &[u64], finishes: usize, received: &[(u64, Claim)]) {
    let (finished, left) = claimed.split_at(finishes.min(claimed.len()));
    for sequence in 0..MESSAGES {
        let shares: Vec<Claim> = received.iter().filter(|(s, _)| *s == sequence).map(|&(_, claim)| claim).collect();
        let expected: &[Claim] = match (finished.contains(&sequence), left.contains(&sequence)) {
            (true, _) => &[],
            (false, true) => &[Claim::Redelivered],
            (false, false) => &[Claim::First],
        };
        assert_eq!(shares, expected, "message {sequence}, claimed {claimed:?}, finished {finishes}");
    }
}
