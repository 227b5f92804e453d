//! Digest over every output: it checks that two runs gave the same outputs, and is no defence against forgers. A
//! message is folded in two chains (`docs/design/bulk-reading.md`).

use tickpath_market::Kind;
use zerocopy::IntoBytes;

use crate::{Digest, Output};

/// Odd constants with about half of the bits set, one for each factor, so that words of zero still count.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xd6e8_feb8_6659_fd93;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputDigest(pub(crate) Digest);

impl OutputDigest {
    /// Adds the outputs of the input with this journal sequence.
    pub(crate) fn add(&mut self, sequence: u64, outputs: &[Output]) {
        let Self(digest) = self;
        digest.inputs += 1;
        digest.outputs += outputs.len() as u64;
        for (index, output) in outputs.iter().enumerate() {
            digest.digest = fold(digest.digest, sequence, message(index as u64, output));
        }
    }
}

/// Folds one message from its own start and in two chains, so that the processor works on several folds at once.
fn message(index: u64, output: &Output) -> u64 {
    let (kind, to, bytes) = match output {
        Output::Venue { venue, request, .. } => (request.kind().code(), venue.0, request.as_bytes()),
        Output::Report { session, report } => (Kind::ExecutionReport.code(), *session, report.as_bytes()),
        Output::Denied { session, denied } => (Kind::OrderDenied.code(), *session, denied.as_bytes()),
        Output::Extension { session, extension } => (Kind::OrderExtension.code(), *session, extension.as_bytes()),
    };
    let mut state = index | (u64::from(kind) << 8) | (u64::from(to) << 16);
    let mut second = bytes.len() as u64;
    let mut quads = bytes.chunks_exact(32);
    for quad in &mut quads {
        state = fold(state, read_word(&quad[..8]), read_word(&quad[8..16]));
        second = fold(second, read_word(&quad[16..24]), read_word(&quad[24..]));
    }
    // The length of every message is a whole number of words.
    for last in quads.remainder().chunks(16) {
        let (low, high) = last.split_at(8);
        state = fold(state, read_word(low), read_word(high));
    }
    fold(state, second, bytes.len() as u64)
}

fn read_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn fold(state: u64, a: u64, b: u64) -> u64 {
    let product = u128::from(state.rotate_left(29) ^ a ^ FIRST) * u128::from(b ^ SECOND);
    (product as u64) ^ ((product >> 64) as u64) ^ state.rotate_left(17)
}
