//! Numbers with unambiguous units: three digits, always with the unit.

/// The placeholder for a missing number.
pub const NONE: &str = "–";

/// Separator of groups of three digits: narrow, and without line breaks.
const THIN: char = '\u{202f}';

/// Formats a time: `187 ns`, `6.02 µs`, `13.5 ms`, `1.2 s`.
pub fn duration(ns: f64) -> String {
    scaled(ns, &[" ns", " µs", " ms"], " s")
}

/// Formats a whole number in groups of three digits: `100 000`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(THIN);
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats an amount of memory in decimal units: `563 B`, `1.6 MB`.
pub fn bytes(number: f64) -> String {
    scaled(number, &[" B", " kB", " MB", " GB"], " TB")
}

/// Formats the size of a message, exactly: `200 B`, `64 KiB`.
pub fn size(bytes: f64) -> String {
    let whole = bytes.max(0.0).round() as u64;
    let units = [(1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| whole >= *unit && whole.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", count(whole / unit)),
        None => format!("{} B", count(whole)),
    }
}

/// Formats a figure with the unit that its name ends in.
pub fn figure(name: &str, value: f64) -> String {
    if name.ends_with("_ns") {
        duration(value)
    } else if name.ends_with("_bytes") || name.ends_with("bytes_per_order") {
        bytes(value)
    } else if name.ends_with("_per_s") {
        format!("{}/s", number(value))
    } else if name.ends_with("_percent") {
        format!("{} %", number(value))
    } else if name.ends_with("_ratio") {
        multiple(value)
    } else {
        number(value)
    }
}

/// Returns a figure's name without the unit of its value: `writer_cost_ns` is the `writer cost`.
pub(super) fn figure_name(name: &str) -> String {
    let units = ["_ns", "_per_s", "_bytes", "_percent", "_ratio"];
    units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name).replace('_', " ")
}

/// Formats a multiple: `31.2×`.
pub(super) fn multiple(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

/// Formats a number without a unit: whole from one hundred on, three digits below.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let sign = if value < 0.0 { "−" } else { "" };
    let size = value.abs();
    if size < 100.0 { format!("{sign}{}", three_digits(size)) } else { format!("{sign}{}", count(size.round() as u64)) }
}

/// Formats a number for the mark of an axis: `500`, `20 k`, `1.5 M`.
pub(super) fn short(value: f64) -> String {
    scaled(value, &["", "\u{202f}k", "\u{202f}M", "\u{202f}G"], "\u{202f}T")
}

/// Formats a part of a whole in percent: `49 %`, `1.6 %`, `<0.1 %`.
pub(super) fn share(percent: f64) -> String {
    if !percent.is_finite() {
        NONE.to_owned()
    } else if percent.abs() < 0.05 {
        if percent == 0.0 { "0 %".to_owned() } else { "<0.1 %".to_owned() }
    } else if percent.abs() < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Formats a time in whole nanoseconds that may be missing.
pub(super) fn duration_or_none(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), |ns| duration(ns as f64))
}

/// Formats a number with the first of the units that leaves it below one thousand; otherwise with the last one.
fn scaled(number: f64, units: &[&str], last: &str) -> String {
    if !number.is_finite() {
        return NONE.to_owned();
    }
    let sign = if number < 0.0 { "−" } else { "" };
    let mut value = three_digits(number.abs());
    for unit in units {
        if value < 1_000.0 {
            return format!("{sign}{value}{unit}");
        }
        value = three_digits(value / 1_000.0);
    }
    format!("{sign}{value}{last}")
}

/// Rounds to three significant digits.
fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}
