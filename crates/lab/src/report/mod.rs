//! The renderings of a result: each is a pure function of the file, one format a file, and can be made again later.
//!
//! | file          | what it makes                                                        |
//! |---------------|----------------------------------------------------------------------|
//! | `terminal.rs` | text for a terminal, as wide as it is, with or without colours       |
//! | `group.rs`    | the block of an order group within it: `g1` … `g6`, `d1` …, `s1` …    |
//! | `markdown.rs` | tables for an issue or a page                                        |
//! | `csv.rs`      | a row a run and hop                                                  |
//! | `json.rs`     | the result itself, for reading                                       |
//! | `svg.rs`      | percentile curves as one picture                                     |
//! | `html.rs`     | one page that needs nothing beside itself, with `report.css`         |
//!
//! | file          | what those share                                                     |
//! |---------------|----------------------------------------------------------------------|
//! | `path.rs`     | the path of a message, station by station, as text and as a picture  |
//! | `curve.rs`    | percentile curves and their axes                                     |
//! | `bars.rs`     | comparisons as bars with intervals, stages as shares                 |
//! | `sentence.rs` | titles, headlines, facts and footnotes                               |
//! | `quantity.rs` | numbers with units that a person cannot misread                      |
//! | `markup.rs`   | escaping for SVG and HTML                                            |

mod bars;
mod csv;
mod curve;
mod group;
mod html;
mod json;
mod markdown;
mod markup;
mod path;
mod quantity;
mod sentence;
mod svg;
mod terminal;

pub use csv::csv;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use path::path_picture;
pub use quantity::{bytes, count, duration, figure};
pub use svg::svg;
pub use terminal::terminal;
