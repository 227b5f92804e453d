//! The mistakes of a file.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// All mistakes of one file, by line. As text, each mistake is a line of its own: `oms.toml:3: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    /// The file.
    pub file: PathBuf,
    /// Line numbers, from 1, each with a sentence.
    pub list: Vec<(usize, String)>,
}

impl Mistakes {
    /// Creates an empty list for a file.
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), list: Vec::new() }
    }

    /// Adds a mistake.
    pub fn add(&mut self, line: usize, sentence: impl Into<String>) {
        self.list.push((line, sentence.into()));
    }

    /// Returns the value if there was no mistake, else the mistakes in the order of their lines.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Self> {
        self.list.sort_by_key(|&(line, _)| line);
        if self.list.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, sentence)) in self.list.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}: {sentence}", self.file.display())?;
        }
        Ok(())
    }
}

impl Error for Mistakes {}
