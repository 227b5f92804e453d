//! The one place that writes to standard output and standard error: no command prints by itself.
//!
//! A reader that closed the pipe has read enough: the command continues, prints nothing more, and ends with the exit
//! code of its work. Any other write error is reported once the command's work is done.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use tickpath_lab_explain as explain;
use tickpath_lab_report::TerminalOptions;
use tickpath_lab_result::ResultFile;

/// Columns of a terminal whose width is unknown, and of a paragraph.
const WIDTH: usize = 80;

/// Returns the result as text for this terminal: one screen, or all of it.
pub fn render_terminal(result: &ResultFile, all: bool) -> String {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(WIDTH);
    let report = || tickpath_lab_report::terminal(result, &TerminalOptions { width, colour, all });
    match (result.workload.as_str(), all) {
        (explain::WORKLOAD, false) => explain::text(result, width),
        (explain::WORKLOAD, true) => explain::text(result, width) + "\n" + &report(),
        _ => report(),
    }
}

/// Returns a text behind a label, in lines of at most 80 columns; the second and later lines begin below the text. The
/// label ends with a space.
pub fn paragraph(label: &str, text: &str) -> String {
    let (mut out, mut used) = (label.to_owned(), label.chars().count());
    let indent = used;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && used + 1 + length > WIDTH {
            out += &format!("\n{:indent$}", "");
            used = indent;
        } else if index > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += length;
    }
    out + "\n"
}

/// Returns a number with its noun: `1 order`, `2 orders`.
pub fn count_text(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Set once the reader of standard output has closed it.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Prints a text on standard output, and flushes it. A closed pipe is no error; [`is_closed`] then holds.
pub fn print_text(text: &str) -> anyhow::Result<()> {
    if is_closed() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    accept_closed_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Turns the result of a write to standard output into this module's: a closed pipe is noted and is no error.
pub fn accept_closed_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(why) if why.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(why) => {
            bail!(
                "standard output cannot be written: {why}; make room on its device. The command may have taken effect: \
                 check `tickpath orders` or the log before you run it again"
            )
        }
    }
}

/// Returns whether the reader of standard output has closed it: a follower ends then.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Prints a line on standard error. A failure is ignored: its report would go to standard error, too.
pub fn print_note(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A printer for work that must be finished even if the output fails: the first failure ends the printing, and
/// [`Printer::end`] returns it.
#[derive(Debug, Default)]
pub struct Printer {
    failed: Option<anyhow::Error>,
}

impl Printer {
    /// Prints a text on standard output, as [`print_text`] does.
    pub fn print(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = print_text(text).err();
        }
    }

    /// Returns the result of the work, or the error of the output. An error of the work takes precedence.
    pub fn end<T>(self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        match (done, self.failed) {
            (Ok(_), Some(why)) => Err(why),
            (Err(error), Some(why)) => {
                print_note(&format!("tickpath: {why:#}"));
                Err(error)
            }
            (done, None) => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, paragraph};

    #[test]
    fn a_paragraph_begins_each_line_behind_its_label_and_keeps_the_width() {
        let text = paragraph("    why: ", "word ".repeat(40).trim_end());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[0].starts_with("    why: word"), "{text}");
        assert!(lines[1..].iter().all(|line| line.starts_with("         word")), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
    }
}
