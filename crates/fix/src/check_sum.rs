//! The value of CheckSum (10): the sum of all bytes before its field, modulo 256, as three digits.

use crate::digits::write_padded;

/// Returns the sum of the bytes modulo 256.
#[inline]
pub fn check_sum(bytes: &[u8]) -> u8 {
    // A plain fold: the compiler makes 16 or more additions at once of it.
    bytes.iter().fold(0, |sum: u8, &byte| sum.wrapping_add(byte))
}

/// Returns the three digits of a sum.
#[inline]
pub fn check_sum_digits(sum: u8) -> [u8; 3] {
    let mut digits = [0; 3];
    write_padded(&mut digits, u64::from(sum));
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_and_have_three_digits() {
        assert_eq!(check_sum(b""), 0);
        assert_eq!(check_sum(&[255; 257]), 255);
        for (sum, digits) in [(0, b"000"), (7, b"007"), (42, b"042"), (255, b"255")] {
            assert_eq!(&check_sum_digits(sum), digits);
        }
    }
}
