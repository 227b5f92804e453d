//! Results of a machine over time: a chart per figure, with the place of its change, as text and as a page.

use super::axis::Axis;
use super::chart::{ChartFrame, WIDTH, drawing, line_classes};
use super::html;
use super::markup::{escaped, plain};
use super::page::{self, folded, list, table};
use super::quantity::{NONE, bytes, duration, figure, short};

/// Results of a workload, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Trends {
    /// The workload.
    pub workload: String,
    /// The machine of the results.
    pub machine: String,
    /// The time and the source of each result.
    pub moments: Vec<TrendFile>,
    /// The figures.
    pub trends: Vec<Trend>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendFile {
    /// The start time of its command, in RFC 3339.
    pub started_at: String,
    /// The version of Tickpath.
    pub tickpath: String,
    /// The source commit, where known.
    pub commit: Option<String>,
}

/// A figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The setting that was run.
    pub what: String,
    /// The figure's name in results.
    pub metric: String,
    /// A value for each file; `None` where the file lacks the figure.
    pub values: Vec<Option<f64>>,
    /// The change, if there is any.
    pub step: Option<TrendStep>,
}

/// The change of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrendStep {
    /// The first file with the new value.
    pub at: usize,
    /// The median from there on, divided by the median before.
    pub ratio: f64,
    /// The share of random orders of the files that would show such a change somewhere in the table.
    pub chance: f64,
}

/// Min files for telling a change from chance.
const MIN_FILES: usize = 8;

/// Max charts that are not folded.
const OPEN: usize = 12;

/// Sizes in units of the drawing.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 134.0;
const HEIGHT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 36.0;

impl Trends {
    /// Renders for a terminal: the changes and their dates, the largest first, and a count of the rest.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", plain(&self.title()));
        let changed = self.changed();
        for trend in &changed {
            text += &format!(
                "\n  {}, {}\n    {}\n",
                plain(&trend.what),
                plain(&trend.metric),
                plain(&self.sentence(trend))
            );
        }
        text += &format!("\n{}\n", self.unchanged_sentence(changed.len()));
        for note in &self.notes {
            text += &format!("{}\n", plain(note));
        }
        text
    }

    fn title(&self) -> String {
        let ends = [self.moments.first(), self.moments.last()].map(|end| end.map_or(NONE, TrendFile::day));
        let [first, last] = ends;
        let files = self.moments.len();
        let results = if files == 1 { "1 result".to_owned() } else { format!("{files} results") };
        format!("{}: {results}, {first} to {last}, {}", self.workload, self.machine)
    }

    /// Returns the figures that changed, the largest change first.
    fn changed(&self) -> Vec<&Trend> {
        let size = |trend: &Trend| trend.step.map_or(0.0, |step| step.ratio.ln().abs());
        let mut changed: Vec<&Trend> = self.trends.iter().filter(|trend| trend.step.is_some()).collect();
        changed.sort_by(|a, b| size(b).total_cmp(&size(a)));
        changed
    }

    fn unchanged_sentence(&self, changed: usize) -> String {
        let same = self.trends.len() - changed;
        match self.moments.len() {
            files if files < MIN_FILES => {
                format!("{files} results are too few to tell a change from chance; {MIN_FILES} may do.")
            }
            _ if changed == 0 => format!("No change is seen in {same} figures."),
            _ => format!("No change is seen in the other {same} figures."),
        }
    }

    /// Returns `1.93 times as much since commit 4f2a1bc of 2026-11-12 (by chance in 0.1 % of tables)`.
    fn sentence(&self, trend: &Trend) -> String {
        let Some(TrendStep { at, ratio, chance }) = trend.step else { return String::new() };
        let since = self.moments.get(at).map_or_else(|| NONE.to_owned(), TrendFile::commit_and_day);
        let how = if ratio >= 1.0 { format!("{ratio:.2} times as much") } else { format!("{ratio:.2} of what it was") };
        format!("{how} since {since} (by chance in {:.1} % of tables)", 100.0 * chance)
    }

    fn section(&self) -> String {
        let changed = self.changed();
        let rest = self.trends.iter().filter(|trend| trend.step.is_none());
        let charts: Vec<String> = changed.iter().copied().chain(rest).map(|trend| self.chart(trend)).collect();
        let facts = list(&[
            ("what".to_owned(), self.title()),
            ("beside these".to_owned(), self.unchanged_sentence(changed.len())),
        ]);
        let notes: String =
            self.notes.iter().map(|note| format!("<p class=\"lead\">{}</p>\n", escaped(note))).collect();
        let (name, charts) = (escaped(&self.workload), folded(&charts, OPEN, "figures"));
        format!(
            "<section id=\"{name}\">\n<h2>{name}</h2>\n{facts}{notes}<div class=\"many\">\n{charts}</div>\n</section>\n"
        )
    }

    fn chart(&self, trend: &Trend) -> String {
        let remark = self.sentence(trend);
        let points: Vec<(f64, f64)> =
            trend.values.iter().enumerate().filter_map(|(index, value)| Some((index as f64, (*value)?))).collect();
        let caption = format!("{} · {}", trend.what, trend.metric);
        let Some(up) = Axis::logarithmic(points.iter().map(|(_, value)| *value)) else {
            return page::figure(&caption, &remark, "", &self.table(trend));
        };
        let last = self.moments.len().saturating_sub(1).max(1) as f64;
        let frame = ChartFrame {
            right: RIGHT,
            top: TOP,
            bottom: BOTTOM,
            x_axis: Axis::linear(std::iter::once(last)).until(last),
            y_axis: up,
        };
        let mut body = frame.y_marks(print(&trend.metric), "");
        body += &frame.x_marks(|index| self.mark(index), "");
        body += &frame.line(&points, &line_classes(0), &caption);
        if let Some(step) = trend.step {
            let x = frame.x(step.at as f64 - 0.5);
            body += &format!("<path class=\"thread {}\" d=\"M{x:.1} {TOP} V{BOTTOM}\"/>\n", line_classes(1));
        }
        let description = format!("Results along, from the oldest; up: {}. {remark}", trend.metric);
        page::figure(&caption, &remark, &drawing(HEIGHT, &caption, &description, &body), &self.table(trend))
    }

    /// Returns the day of a file, for a mark on a file.
    fn mark(&self, x: f64) -> String {
        let whole = (x.fract() == 0.0).then_some(x as usize);
        whole.and_then(|index| self.moments.get(index)).map_or_else(String::new, |moment| moment.day().to_owned())
    }

    fn table(&self, trend: &Trend) -> String {
        let row = |(moment, value): (&TrendFile, &Option<f64>)| {
            let commit = moment.commit.as_deref().map_or_else(|| NONE.to_owned(), abbreviated);
            let value = value.map_or_else(|| NONE.to_owned(), |value| figure(&trend.metric, value));
            vec![escaped(moment.day()), escaped(&commit), escaped(&value)]
        };
        let rows: Vec<Vec<String>> = self.moments.iter().zip(&trend.values).map(row).collect();
        table("over", &["day", "commit", "value"], &rows)
    }
}

impl TrendFile {
    fn day(&self) -> &str {
        self.started_at.get(..10).unwrap_or(&self.started_at)
    }

    fn commit_and_day(&self) -> String {
        match &self.commit {
            Some(commit) => format!("commit {} of {}", abbreviated(commit), self.day()),
            None => format!("version {} of {}", self.tickpath, self.day()),
        }
    }
}

/// Returns a page of several histories.
pub fn page(histories: &[Trends]) -> String {
    let sections: String = histories.iter().map(Trends::section).collect();
    let header = "<header>\n<p class=\"brand\">tickpath</p>\n<h1>history</h1>\n</header>\n";
    html::document("history", &format!("{header}{sections}"))
}

/// Returns the format of the marks of a figure's axis.
fn print(metric: &str) -> fn(f64) -> String {
    match metric {
        name if name.ends_with("_ns") => duration,
        name if name.ends_with("_bytes") => bytes,
        _ => short,
    }
}

/// Returns nine digits of the commit, and whether the tree differed from it.
fn abbreviated(commit: &str) -> String {
    let (id, differs) = commit.split_once('-').map_or((commit, String::new()), |(id, how)| (id, format!("-{how}")));
    format!("{}{differs}", id.get(..9).unwrap_or(id))
}
