//! Plain English in comments, counted per crate: lines that begin with a relative word, and everyday words that stand in
//! for the terms of the field. The counts may only fall.

use super::{check, crates, files, has_word, read};

/// Words that begin a comment without naming the thing that it documents.
const OPENERS: [&str; 5] = ["What", "Who", "Whoever", "Whatever", "Of"];

/// Everyday words for what programs do, and pronouns for actors that have a name.
const EVERYDAY: [&str; 10] = ["say", "says", "said", "hear", "hears", "tell", "tells", "told", "whoever", "somebody"];

/// The same, of two words.
const EVERYDAY_PAIRS: [&str; 2] = ["goes on", "stood still"];

/// Comment lines of each crate, tests included: those that begin with an opener, and those with an everyday word.
const COUNTS: &[(&str, usize, usize)] = &[
    ("bus", 0, 0),
    ("bus-amqp", 0, 0),
    ("bus-api", 0, 0),
    ("bus-kafka", 0, 2),
    ("bus-log", 0, 0),
    ("bus-nats", 0, 1),
    ("bus-redis", 0, 2),
    ("capi", 0, 0),
    ("cli", 0, 0),
    ("clock", 0, 0),
    ("lab-bus", 0, 1),
    ("lab-check", 0, 3),
    ("lab-compare", 0, 0),
    ("lab-doctor", 0, 0),
    ("lab-explain", 0, 2),
    ("lab-harness", 0, 0),
    ("lab-path", 0, 1),
    ("lab-redis", 0, 1),
    ("lab-report", 0, 0),
    ("lab-result", 0, 3),
    ("lab-tools", 0, 0),
    ("log", 0, 0),
    ("market", 0, 0),
    ("oms-blotter", 0, 0),
    ("oms-client", 0, 1),
    ("oms-core", 0, 0),
    ("oms-journal", 0, 0),
    ("oms-protocol", 0, 3),
    ("oms-records", 0, 0),
    ("oms-risk", 0, 0),
    ("oms-runtime", 0, 0),
    ("oms-server", 0, 0),
    ("oms-slots", 0, 0),
    ("oms-text", 0, 0),
    ("oms-web", 0, 0),
    ("python", 0, 3),
    ("relay", 0, 0),
    ("settings", 0, 0),
    ("tls", 0, 0),
    ("venue", 0, 0),
    ("venue-native", 0, 0),
    ("venue-sim", 0, 0),
];

#[test]
fn comments_get_plainer() {
    let mut wrong = Vec::new();
    let files = files();
    for (name, _) in crates() {
        let folder = format!("crates/{name}/");
        let sources = files.iter().filter(|path| path.starts_with(&folder) && path.ends_with(".rs"));
        let (mut openers, mut everyday) = (0, 0);
        for path in sources {
            for line in read(path).lines() {
                let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
                let comment = comment.trim_start_matches(['/', '!']).trim_start();
                let first = comment.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                openers += usize::from(OPENERS.contains(&first));
                let has_everyday = EVERYDAY.iter().any(|word| has_word(comment, word));
                everyday += usize::from(has_everyday || EVERYDAY_PAIRS.iter().any(|pair| comment.contains(pair)));
            }
        }
        let (_, known_openers, known_everyday) = COUNTS.iter().find(|row| row.0 == name).unwrap_or(&("", 0, 0));
        if (openers, everyday) != (*known_openers, *known_everyday) {
            wrong.push(format!(
                "{name}: {openers} comments begin with one of {OPENERS:?} and {everyday} have a word of {EVERYDAY:?} or \
                 {EVERYDAY_PAIRS:?}; the table has {known_openers} and {known_everyday}: rewrite what is new, or lower the table"
            ));
        }
    }
    check(wrong);
}
