//! Records of any content are refused, or read, written again to the same bytes, and applied.
//!
//! Input: one record after the other, each a kind, a length below 128 and so many bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tickpath_oms_core::{At, Config, Core, Input, Outputs, RECORD_BYTES};

/// A journal longer than this shows nothing that a shorter one does not.
const MAX_RECORDS: u64 = 4096;

fuzz_target!(|input: &[u8]| {
    let (mut core, mut out) = (Core::new(Config::default()), Outputs::new());
    let mut rest = input;
    for sequence in 1..=MAX_RECORDS {
        let Some((&[kind, length], behind)) = rest.split_first_chunk::<2>() else { break };
        let (record, behind) = behind.split_at(behind.len().min(usize::from(length) % (RECORD_BYTES + 1)));
        rest = behind;
        if let Ok(Some(input)) = Input::read(kind, record) {
            assert_eq!(input.kind().code(), kind);
            // A definition of an older version is shorter: its end is what that had none of.
            let mut buffer = [0; RECORD_BYTES];
            assert!(input.write(&mut buffer).starts_with(record));
            core.apply(At { sequence, stamp: sequence * 3 }, &input, &mut out);
        }
    }
    let digest = core.digest();
    assert_eq!(digest.outputs > 0, digest.digest != 0);
});
