//! The page of the command line: the help of every command.

use super::check_page;
use crate::program::tickpath_with;

const HEAD: &str = "\
# Command line

Every command of `tickpath` with its arguments and options, as `--help` prints them. The guides have the commands by
task: [the bus](../bus.md#commands), [the OMS](../oms.md#commands), [the lab](../lab.md).
";

#[test]
fn the_page_of_the_command_line_has_every_help_text() {
    let mut page = HEAD.to_owned();
    add_command(&mut page, &[]);
    check_page("command-line.md", &page);
}

/// Adds a command, which is named by these words, and its subcommands.
fn add_command(page: &mut String, words: &[&str]) {
    let help = tickpath_with(&[words, &["--help"][..]].concat());
    assert_eq!(help.code, Some(0), "{words:?}: {}", help.err);
    let name = [&["tickpath"][..], words].concat().join(" ");
    let level = "#".repeat((words.len() + 2).min(4));
    *page += &format!("\n{level} {name}\n\n```text\n{}\n```\n", help.out.trim_end());
    for command in subcommands(&help.out) {
        add_command(page, &[words, &[command][..]].concat());
    }
}

/// Returns the commands that a help text lists.
fn subcommands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The description of a command continues on lines that are indented further.
    let first_lines = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    first_lines.filter_map(|rest| rest.split_whitespace().next()).filter(|name| *name != "help").collect()
}
