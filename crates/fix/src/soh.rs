//! The delimiter behind each field, and a scan for it that takes 64 bytes at once.
//!
//! A scan makes a mask of 64 bytes with a bit a delimiter. A field then costs a few instructions, however long it is,
//! and no branch depends on the length of a value.

/// The byte behind each field: start of heading.
pub const SOH: u8 = 1;

/// Bytes of a mask.
const BLOCK: usize = 64;
/// The delimiter in each byte of a word.
const SOHS: u64 = u64::from_le_bytes([SOH; 8]);
/// The lowest bit of each byte.
const ONES: u64 = u64::from_le_bytes([1; 8]);
/// The low seven bits of each byte.
const LOW_BITS: u64 = u64::from_le_bytes([0x7F; 8]);
/// Brings bit 8·n of a word to bit 56 + n.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// A scan for delimiters from the begin of some bytes to their end.
#[derive(Debug, Clone)]
pub(crate) struct SohScan<'a> {
    bytes: &'a [u8],
    /// Offset behind the block of the mask.
    ahead: usize,
    /// Offset of the mask's lowest bit.
    base: usize,
    /// Delimiters of the block that were not returned yet.
    mask: u64,
}

impl<'a> SohScan<'a> {
    /// Makes a scan from the first byte on.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, ahead: 0, base: 0, mask: 0 }
    }

    /// Returns the offset of the next delimiter.
    #[inline]
    pub fn next_soh(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.load_block()?;
        }
        let offset = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(offset)
    }

    /// Continues at an offset.
    #[inline]
    pub fn seek(&mut self, offset: usize) {
        self.ahead = offset;
        self.mask = 0;
    }

    /// Makes the mask of the next block; `None` at the end.
    #[inline]
    fn load_block(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.ahead..).filter(|rest| !rest.is_empty())?;
        self.base = self.ahead;
        self.ahead += BLOCK;
        self.mask = match (rest.first_chunk(), self.bytes.last_chunk()) {
            (Some(block), _) => mask_of(block),
            // The last 64 bytes: those that were scanned already are shifted out.
            (None, Some(block)) => mask_of(block) >> (BLOCK - rest.len()),
            (None, None) => {
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                mask_of(&block)
            }
        };
        Some(())
    }
}

/// Returns whether one of the eight bytes of a word is a delimiter.
#[inline]
pub(crate) fn has_soh(word: u64) -> bool {
    let difference = word ^ SOHS;
    (difference.wrapping_sub(ONES) & !difference & !LOW_BITS) != 0
}

/// Returns a mask of 64 bytes: bit n is set if byte n is a delimiter.
#[inline]
fn mask_of(block: &[u8; BLOCK]) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    let mut mask = 0;
    for (number, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ SOHS;
        // No carry crosses a byte: exact for every byte, unlike the test for any byte in `has_soh`.
        let is_other = ((difference & LOW_BITS) + LOW_BITS) | difference;
        let is_soh = (!is_other & !LOW_BITS) >> 7;
        mask |= (is_soh.wrapping_mul(GATHER) >> 56) << (8 * number);
    }
    mask
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Bytes of which many are delimiters or differ from them by a bit.
    fn close_bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(SOH), Just(0), Just(2), Just(0x81), Just(0x80), any::<u8>()], 0..300)
    }

    proptest! {
        #[test]
        fn every_delimiter_is_found_from_any_offset(bytes in close_bytes(), begin in 0_usize..310) {
            let expected: Vec<usize> = (0..bytes.len()).filter(|&at| at >= begin && bytes[at] == SOH).collect();
            let mut scan = SohScan::new(&bytes);
            scan.next_soh();
            scan.seek(begin);
            let found: Vec<usize> = std::iter::from_fn(|| scan.next_soh()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_word_with_a_delimiter_is_known(word in vec(prop_oneof![Just(SOH), Just(0), any::<u8>()], 8)) {
            let bytes: [u8; 8] = word.clone().try_into().unwrap();
            prop_assert_eq!(has_soh(u64::from_le_bytes(bytes)), word.contains(&SOH));
        }
    }
}
