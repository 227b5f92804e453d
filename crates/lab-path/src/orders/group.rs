//! Groups of orders, by number as the journal has them, and by name.

/// The group of orders that answer ticks.
pub const PATH_GROUP: u32 = 60;
/// The groups of whole days.
pub(crate) const RESUME_GROUP: u32 = 42;
pub(crate) const RESTART_GROUP: u32 = 43;

/// Returns a group's name by its number.
pub fn group_name(number: u32) -> String {
    match number {
        1..=6 => format!("g{number}"),
        11..=16 => format!("d{}", number - 10),
        21..=23 => format!("s{}", number - 20),
        31..=33 => format!("e{}", number - 30),
        40 => "paced".to_owned(),
        41 => "burst".to_owned(),
        RESUME_GROUP => "resume".to_owned(),
        RESTART_GROUP => "restart".to_owned(),
        51..=55 => format!("m{}", number - 50),
        PATH_GROUP => "path".to_owned(),
        other => other.to_string(),
    }
}
