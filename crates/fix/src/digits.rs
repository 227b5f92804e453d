//! Decimal digits, written two at a time into a given room.

/// Texts of 0 to 99, two digits each.
pub(crate) static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Powers of ten that fit 64 bits.
pub(crate) static POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut exponent = 1;
    while exponent < 20 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Max digits of an unsigned number of 64 bits.
pub(crate) const MAX_DIGITS: usize = 20;

/// Returns the number of decimal digits of a number: 1 to [`MAX_DIGITS`].
#[inline]
pub(crate) fn digit_count(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |exponent| exponent as usize + 1)
}

/// Writes a number without leading zeros at the begin of `room`, and returns its length in bytes.
#[inline]
pub(crate) fn write_unsigned(room: &mut [u8], value: u64) -> usize {
    let length = digit_count(value);
    write_padded(&mut room[..length], value);
    length
}

/// Fills `room` with the last digits of a number, behind zeros if the number is shorter.
#[inline]
pub(crate) fn write_padded(room: &mut [u8], mut value: u64) {
    let mut pairs = room.rchunks_exact_mut(2);
    for pair in pairs.by_ref() {
        pair.copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (value % 10) as u8;
    }
}

/// Bytes that [`write_decimal`] needs at most.
#[inline]
pub(crate) fn decimal_room(decimals: u8) -> usize {
    "-.".len() + MAX_DIGITS + usize::from(decimals)
}

/// Writes `units` of 10^-`decimals` without zeros at the end, and returns the length in bytes.
#[inline]
pub(crate) fn write_decimal(room: &mut [u8], units: i64, decimals: u8) -> usize {
    let magnitude = units.unsigned_abs();
    let (whole, fraction) = match decimals {
        // The decimals of this project's prices: a division by a constant.
        8 => (magnitude / 100_000_000, magnitude % 100_000_000),
        _ => match POWERS.get(usize::from(decimals)) {
            Some(power) => (magnitude / power, magnitude % power),
            None => (0, magnitude),
        },
    };
    let mut end = 0;
    if units < 0 {
        room[0] = b'-';
        end = 1;
    }
    end += write_unsigned(&mut room[end..], whole);
    if fraction == 0 {
        return end;
    }
    room[end] = b'.';
    let begin = end + 1;
    end = begin + usize::from(decimals);
    write_padded(&mut room[begin..end], fraction);
    while room[end - 1] == b'0' {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(units: i64, decimals: u8) -> String {
        let mut room = vec![b'x'; decimal_room(decimals)];
        let length = write_decimal(&mut room, units, decimals);
        String::from_utf8(room[..length].to_vec()).unwrap()
    }

    #[test]
    fn decimals_have_no_zeros_at_the_end() {
        for (units, decimals, text) in [
            (0, 0, "0"),
            (0, 8, "0"),
            (-1, 8, "-0.00000001"),
            (6_180_025_000_000, 8, "61800.25"),
            (6_180_000_000_000, 8, "61800"),
            (1_500, 2, "15"),
            (-1_505, 2, "-15.05"),
            (7, 3, "0.007"),
            (i64::MIN, 0, "-9223372036854775808"),
            (i64::MIN, 19, "-0.9223372036854775808"),
            (i64::MAX, 21, "0.009223372036854775807"),
        ] {
            assert_eq!(decimal(units, decimals), text, "{units} of 10^-{decimals}");
        }
        assert_eq!(decimal(1, 255).len(), 257);
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_writes_them(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut room = [b'x'; MAX_DIGITS];
            let length = write_unsigned(&mut room, value);
            let text = value.to_string();
            prop_assert_eq!(&room[..length], text.as_bytes());
            prop_assert!(room[length..].iter().all(|&byte| byte == b'x'));
        }

        #[test]
        fn padded_numbers_have_zeros_in_front(value in 0_u64..1_000_000_000, digits in 9_usize..30) {
            let mut room = vec![b'x'; digits];
            write_padded(&mut room, value);
            prop_assert_eq!(String::from_utf8(room).unwrap(), format!("{value:0digits$}"));
        }
    }
}
