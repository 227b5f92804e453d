//! A table of a file, read key by key.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Mistakes;

/// A table of a file: its top, a `[section]`, or one of several `[[sections]]`.
///
/// A key that is missing, or whose value is wrong, is `None`. The `require_…` calls report a missing key as a
/// mistake: the file is then refused, and nothing reads the value that they return.
pub struct Section<'a> {
    file: &'a SourceFile<'a>,
    /// None if the section is not in the file: then all its keys are missing.
    table: Option<&'a DeTable<'a>>,
    /// The section's name as in the file, with a space behind; empty at the top.
    title: String,
    /// Byte offset of its begin in the file.
    begin: usize,
    known_keys: Vec<String>,
}

/// Numbers that fit a setting.
pub trait Number: Copy + PartialOrd + Display + TryFrom<i128> {}

impl<N: Copy + PartialOrd + Display + TryFrom<i128>> Number for N {}

impl<'a> Section<'a> {
    /// Reads a text.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.with(key, |value| match value {
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(format!("must be text in quotes, not {}", kind(other))),
        })
    }

    /// Reads a required text.
    pub fn require_text(&mut self, key: &str) -> String {
        self.require(key);
        self.text(key).unwrap_or_default()
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.with(key, |value| match value {
            DeValue::Boolean(flag) => Ok(*flag),
            other => Err(format!("must be true or false, not {}", kind(other))),
        })
    }

    /// Reads a whole number in this range.
    pub fn number<N: Number>(&mut self, key: &str, range: RangeInclusive<N>) -> Option<N> {
        self.with(key, |value| number(value, &range))
    }

    /// Reads a required whole number in this range.
    pub fn require_number<N: Number>(&mut self, key: &str, range: RangeInclusive<N>) -> N {
        self.require(key);
        let low = *range.start();
        self.number(key, range).unwrap_or(low)
    }

    /// Reads a value that its type parses from a text, or from a number as written in the file, so that a decimal loses
    /// no digit.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.with(key, |value| literal(value)?.parse().map_err(|reason: T::Err| reason.to_string()))
    }

    /// Reads a required value that its type parses from a text or a number.
    pub fn require_parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.require(key);
        self.parsed(key)
    }

    /// Reads one of these words, and returns its value.
    pub fn one_of<T: Clone>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.with(key, |value| {
            let DeValue::String(text) = value else {
                return Err(format!("must be {} in quotes, not {}", any_of(words), kind(value)));
            };
            let found = words.iter().find(|(word, _)| word == text).map(|(_, meaning)| meaning.clone());
            found.ok_or_else(|| format!("'{text}' is not allowed; use {}", any_of(words)))
        })
    }

    /// Reads one of these words, which is required, and returns its value.
    pub fn require_one_of<T: Clone>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.require(key);
        self.one_of(key, words)
    }

    /// Reads a path; a relative path starts at the file's folder.
    pub fn path(&mut self, key: &str) -> Option<PathBuf> {
        let text = self.text(key)?;
        if text.is_empty() {
            self.add_mistake(key, "an empty path names nothing; write one, or leave the key out");
            return None;
        }
        let folder = self.file.path.parent().unwrap_or(Path::new(""));
        Some(folder.join(text))
    }

    /// Reads a required path.
    pub fn require_path(&mut self, key: &str) -> PathBuf {
        self.require(key);
        self.path(key).unwrap_or_default()
    }

    /// Reads a list of values that their type parses from a text or a number; each wrong item is reported at its line.
    pub fn list<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<Vec<T>> {
        self.items(key, |item| literal(item)?.parse().map_err(|reason: T::Err| reason.to_string()))
    }

    /// Reads a list of whole numbers in this range.
    pub fn numbers<N: Number>(&mut self, key: &str, range: RangeInclusive<N>) -> Option<Vec<N>> {
        self.items(key, |item| number(item, &range))
    }

    /// Reads a `[section]`; a missing section counts as empty.
    pub fn section<T>(&mut self, key: &str, take: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let (table, begin) = self.inner(key).map_or((None, self.begin), |(table, begin)| (Some(table), begin));
        Section::with_section(self.file, table, format!("[{key}] "), begin, take)
    }

    /// Reads a `[section]`, if it exists.
    pub fn section_if<T>(&mut self, key: &str, take: impl FnOnce(&mut Section<'_>) -> T) -> Option<T> {
        let (table, begin) = self.inner(key)?;
        Some(Section::with_section(self.file, Some(table), format!("[{key}] "), begin, take))
    }

    /// Reads all `[[sections]]` of this name, in the file's order.
    pub fn sections<T>(&mut self, key: &str, mut take: impl FnMut(&mut Section<'_>) -> T) -> Vec<T> {
        let wanted = format!("must be written as [[{key}]], once for each, not as");
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            self.add_mistake(key, format!("{wanted} {}", kind(value.get_ref())));
            return Vec::new();
        };
        let mut values = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) => {
                    let title = format!("[[{key}]] ");
                    values.push(Section::with_section(self.file, Some(table), title, item.span().start, &mut take));
                }
                other => {
                    self.file.record(item.span().start, false, format!("{}{key}: {wanted} {}", self.title, kind(other)))
                }
            }
        }
        values
    }

    /// Reports a mistake if the key is missing.
    pub fn require(&mut self, key: &str) {
        if self.value(key).is_none() {
            self.file.record(self.begin, true, format!("{}'{key}' is missing", self.title));
        }
    }

    /// Returns whether the key exists.
    pub fn has(&mut self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Returns the line of a key, from 1; that of the section if the key is missing.
    pub fn line(&self, key: &str) -> usize {
        self.file.line(self.position(key))
    }

    /// Returns the file's path.
    pub fn file(&self) -> &Path {
        self.file.path
    }

    /// Reports a mistake at a key, or at the section if the key is missing.
    pub fn add_mistake(&mut self, key: &str, sentence: impl Display) {
        self.file.record(self.position(key), false, format!("{}{key}: {sentence}", self.title));
    }

    /// Reports a mistake of the whole section.
    pub fn add_section_mistake(&mut self, sentence: impl Display) {
        self.file.record(self.begin, false, format!("{}{sentence}", self.title));
    }

    fn with_section<T>(
        file: &'a SourceFile<'a>,
        table: Option<&'a DeTable<'a>>,
        title: String,
        begin: usize,
        take: impl FnOnce(&mut Section<'_>) -> T,
    ) -> T {
        let mut section = Section { file, table, title, begin, known_keys: Vec::new() };
        let value = take(&mut section);
        section.report_unknown_keys();
        value
    }

    fn value(&mut self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.known_keys.iter().any(|known| known == key) {
            self.known_keys.push(key.to_owned());
        }
        self.table?.get(key)
    }

    fn with<T>(&mut self, key: &str, take: impl FnOnce(&DeValue<'_>) -> Result<T, String>) -> Option<T> {
        let value = self.value(key)?;
        take(value.get_ref()).map_err(|sentence| self.add_mistake(key, sentence)).ok()
    }

    fn items<T>(&mut self, key: &str, take: impl Fn(&DeValue<'_>) -> Result<T, String>) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.add_mistake(key, format!("must be a list in brackets, not {}", kind(value.get_ref())));
            return None;
        };
        let mut values = Vec::new();
        for item in items {
            match take(item.get_ref()) {
                Ok(value) => values.push(value),
                Err(sentence) => self.file.record(item.span().start, false, format!("{}{key}: {sentence}", self.title)),
            }
        }
        (values.len() == items.len()).then_some(values)
    }

    fn inner(&mut self, key: &str) -> Option<(&'a DeTable<'a>, usize)> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some((table, self.position(key))),
            other => {
                self.add_mistake(key, format!("must be one section, written as [{key}], not {}", kind(other)));
                None
            }
        }
    }

    fn position(&self, key: &str) -> usize {
        self.table.and_then(|table| table.get_key_value(key)).map_or(self.begin, |(key, _)| key.span().start)
    }

    fn report_unknown_keys(&self) {
        for key in self.table.into_iter().flat_map(|table| table.keys()) {
            let name = key.get_ref().as_ref();
            if !self.known_keys.iter().any(|known| known == name) {
                let remedy = remedy(name, &self.known_keys);
                self.file.record(key.span().start, true, format!("{}unknown key '{name}'; {remedy}", self.title));
            }
        }
    }
}

struct SourceFile<'a> {
    path: &'a Path,
    /// Byte offset of each line's begin.
    lines: Vec<usize>,
    /// Reported mistakes: the byte offset, whether it is about a missing or unknown key, and the sentence.
    mistakes: RefCell<Vec<(usize, bool, String)>>,
}

impl SourceFile<'_> {
    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|&begin| begin <= offset).max(1)
    }

    fn record(&self, offset: usize, of_keys: bool, sentence: String) {
        self.mistakes.borrow_mut().push((self.line(offset), of_keys, sentence));
    }
}

/// Parses a file's text as [`read`](crate::read) does; `path` begins each mistake and is the base of relative paths.
pub fn parse<T>(text: &str, path: &Path, take: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, Mistakes> {
    let breaks = text.match_indices('\n').map(|(index, _)| index + 1);
    let file = SourceFile { path, lines: [0].into_iter().chain(breaks).collect(), mistakes: RefCell::default() };
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut mistakes = Mistakes::new(path);
    for error in errors {
        let Range { start, .. } = error.span().unwrap_or_default();
        mistakes.add(file.line(start), format!("this is no TOML: {}", error.message()));
    }
    let value = Section::with_section(&file, Some(table.get_ref()), String::new(), 0, take);
    // Where the file does not parse, keys seem missing or in the wrong section.
    let unread: Vec<usize> = mistakes.list.iter().map(|&(line, _)| line).collect();
    for (line, of_keys, sentence) in file.mistakes.into_inner() {
        if unread.is_empty() || !(of_keys || unread.contains(&line)) {
            mistakes.add(line, sentence);
        }
    }
    mistakes.into_result(value)
}

fn number<N: Number>(value: &DeValue<'_>, range: &RangeInclusive<N>) -> Result<N, String> {
    let DeValue::Integer(digits) = value else {
        return Err(format!("must be a whole number without quotes, not {}", kind(value)));
    };
    let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok().and_then(|number| N::try_from(number).ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("{digits} is out of range; use {} to {}", range.start(), range.end()))
}

/// Returns a value as written in the file.
fn literal<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    match value {
        DeValue::String(text) => Ok(text),
        DeValue::Integer(digits) if digits.radix() == 10 => Ok(digits.as_str()),
        DeValue::Float(digits) => Ok(digits.as_str()),
        other => Err(format!("must be text or a decimal number, not {}", kind(other))),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn any_of<T>(words: &[(&str, T)]) -> String {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the known key that was probably meant, if one is close enough, else all known keys.
fn remedy(name: &str, known: &[String]) -> String {
    let distance = |key: &String| strsim::osa_distance(name, key);
    match known.iter().min_by_key(|key| distance(key)) {
        None => "nothing is set here".to_owned(),
        Some(nearest) if distance(nearest) <= name.len().max(nearest.len()) / 3 => {
            format!("did you mean '{nearest}'?")
        }
        Some(_) => format!("known here: {}", known.join(", ")),
    }
}
