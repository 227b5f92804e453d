//! The renderings of a result: each is a pure function of the file, with a module per format, and can be repeated
//! later.
//!
//! | file          | output                                                               |
//! |---------------|----------------------------------------------------------------------|
//! | `terminal.rs` | text for a terminal: a screen of headlines and ratios, or every run  |
//! | `group.rs`    | the block of an order group within it: `g1` … `g6`, `d1` …, `s1` …    |
//! | `markdown.rs` | tables for an issue or a page                                        |
//! | `csv.rs`      | a row per run and hop                                                |
//! | `json.rs`     | the result itself, for reading                                       |
//! | `svg.rs`      | percentile curves as a picture                                       |
//! | `html.rs`     | a self-contained page, with `report.css`                             |
//!
//! The contents of the runs select the sections, whatever the workload: `docs/results.md`, Sections.
//!
//! | file           | a section of the page                                               |
//! |----------------|---------------------------------------------------------------------|
//! | `waterfall.rs` | where the time of a message goes, part after part                   |
//! | `phases.rs`    | a message's way: cold, idle, steady, and round trips                |
//! | `over_time.rs` | rates and backlogs, over the time of a run                          |
//! | `load.rs`      | latency over rate: the rates that a search has tried                |
//! | `depth.rs`     | throughput over the depth of a pipeline                             |
//! | `clients.rs`   | the rate of each client library, near and far: best, worst, spread  |
//! | `bars.rs`      | comparisons as bars with intervals                                  |
//! | `spread.rs`    | percentile curves                                                   |
//! | `published.rs` | published figures, and ours                                         |
//! | `runs.rs`      | every run, as measured                                              |
//!
//! | file           | shared part                                                         |
//! |----------------|---------------------------------------------------------------------|
//! | `page.rs`      | sections, tables, figures, folds                                    |
//! | `chart.rs`     | line charts: the frame, lines, the labels beside them               |
//! | `axis.rs`      | from a value to its position, and the positions of marks            |
//! | `curve.rs`     | the points of percentile curves                                     |
//! | `path.rs`      | the path of a message, station by station, as text and as a picture |
//! | `overview.rs`  | summaries of many runs, as plain tables                             |
//! | `plain_table.rs`, `ink.rs` | a plain table; text in colour                           |
//! | `names.rs`     | titles of runs within a file, labels within a chart                 |
//! | `sentence.rs`  | headlines, facts and footnotes                                      |
//! | `quantity.rs`  | numbers with unambiguous units                                      |
//! | `markup.rs`    | escaping for SVG and HTML                                           |
//!
//! `trends.rs` and `changes.rs` render results of a machine over time.
//!
//! Invariant: a rendering depends on the result file and on nothing else.

mod axis;
mod bars;
mod changes;
mod chart;
mod clients;
mod csv;
mod curve;
mod depth;
mod group;
mod html;
mod ink;
mod json;
mod load;
mod markdown;
mod markup;
mod names;
mod over_time;
mod overview;
mod page;
mod path;
mod phases;
mod plain_table;
mod published;
mod quantity;
mod runs;
mod sentence;
mod spread;
mod svg;
mod terminal;
pub mod trends;
mod waterfall;

pub use csv::csv;
pub use html::html;
pub use ink::wrapped;
pub use json::json;
pub use markdown::{markdown, safe, table};
pub use markup::plain;
pub use path::{path_picture, path_svg};
pub use quantity::{NONE, bytes, count, duration, figure, size};
pub use sentence::invalid;
pub use svg::svg;
pub use terminal::{TerminalOptions, terminal};
