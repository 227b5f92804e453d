//! Results of one machine over time: a chart a figure, with the place where it changed, as text and as a page.

use super::axis::Axis;
use super::chart::{Frame, WIDTH, drawing, look};
use super::html;
use super::markup::{escaped, plain};
use super::page::{self, folded, list, table};
use super::quantity::{NONE, bytes, duration, figure, short};

/// Results of one workload, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Trends {
    /// The workload.
    pub workload: String,
    /// The machine that they are of.
    pub machine: String,
    /// When each was made, and of which source.
    pub moments: Vec<Moment>,
    /// The figures.
    pub trends: Vec<Trend>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When its command began, in RFC 3339.
    pub started_at: String,
    /// The version of Tickpath.
    pub tickpath: String,
    /// The source commit, where known.
    pub commit: Option<String>,
}

/// A figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// What was run.
    pub what: String,
    /// The name that a result gives the figure.
    pub metric: String,
    /// A place for each file; empty where it lacks the figure.
    pub values: Vec<Option<f64>>,
    /// Where it changed, if it did.
    pub step: Option<Step>,
}

/// Where a figure changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The first file with the new value.
    pub at: usize,
    /// The median from there on over the median before.
    pub ratio: f64,
    /// How often files in any order would show such a change somewhere in the table.
    pub chance: f64,
}

/// Below so many files nothing can be told from chance.
const TELLING: usize = 8;

/// Charts that are not folded.
const OPEN: usize = 12;

/// A chart's measures, in its own units.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 134.0;
const HEIGHT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 36.0;

impl Trends {
    /// For a terminal: what changed and since when, the largest change first, and a count of the rest.
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
        text += &format!("\n{}\n", self.rest(changed.len()));
        for note in &self.notes {
            text += &format!("{}\n", plain(note));
        }
        text
    }

    fn title(&self) -> String {
        let ends = [self.moments.first(), self.moments.last()].map(|end| end.map_or(NONE, Moment::day));
        let [first, last] = ends;
        let files = self.moments.len();
        let results = if files == 1 { "1 result".to_owned() } else { format!("{files} results") };
        format!("{}: {results}, {first} to {last}, {}", self.workload, self.machine)
    }

    /// The figures that changed, the largest change first.
    fn changed(&self) -> Vec<&Trend> {
        let size = |trend: &Trend| trend.step.map_or(0.0, |step| step.ratio.ln().abs());
        let mut changed: Vec<&Trend> = self.trends.iter().filter(|trend| trend.step.is_some()).collect();
        changed.sort_by(|a, b| size(b).total_cmp(&size(a)));
        changed
    }

    fn rest(&self, changed: usize) -> String {
        let same = self.trends.len() - changed;
        match self.moments.len() {
            files if files < TELLING => {
                format!("{files} results are too few to tell a change from chance; {TELLING} may do.")
            }
            _ if changed == 0 => format!("No change is seen in {same} figures."),
            _ => format!("No change is seen in the other {same} figures."),
        }
    }

    /// `1.93 times as much since commit 4f2a1bc of 2026-11-12 (by chance in 0.1 % of tables)`.
    fn sentence(&self, trend: &Trend) -> String {
        let Some(Step { at, ratio, chance }) = trend.step else { return String::new() };
        let since = self.moments.get(at).map_or_else(|| NONE.to_owned(), Moment::named);
        let how = if ratio >= 1.0 { format!("{ratio:.2} times as much") } else { format!("{ratio:.2} of what it was") };
        format!("{how} since {since} (by chance in {:.1} % of tables)", 100.0 * chance)
    }

    fn section(&self) -> String {
        let changed = self.changed();
        let rest = self.trends.iter().filter(|trend| trend.step.is_none());
        let charts: Vec<String> = changed.iter().copied().chain(rest).map(|trend| self.chart(trend)).collect();
        let facts = list(&[("what".to_owned(), self.title()), ("beside these".to_owned(), self.rest(changed.len()))]);
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
            trend.values.iter().enumerate().filter_map(|(place, value)| Some((place as f64, (*value)?))).collect();
        let caption = format!("{} · {}", trend.what, trend.metric);
        let Some(up) = Axis::logarithmic(points.iter().map(|(_, value)| *value)) else {
            return page::figure(&caption, &remark, "", &self.table(trend));
        };
        let last = self.moments.len().saturating_sub(1).max(1) as f64;
        let frame = Frame {
            right: RIGHT,
            top: TOP,
            bottom: BOTTOM,
            along: Axis::linear(std::iter::once(last)).until(last),
            up,
        };
        let mut body = frame.rows(print(&trend.metric), "");
        body += &frame.columns(|place| self.mark(place), "");
        body += &frame.line(&points, &look(0), &caption);
        if let Some(step) = trend.step {
            let x = frame.x(step.at as f64 - 0.5);
            body += &format!("<path class=\"thread {}\" d=\"M{x:.1} {TOP} V{BOTTOM}\"/>\n", look(1));
        }
        let description = format!("Results along, from the oldest; up: {}. {remark}", trend.metric);
        page::figure(&caption, &remark, &drawing(HEIGHT, &caption, &description, &body), &self.table(trend))
    }

    /// The day of a file, at a mark that is one.
    fn mark(&self, place: f64) -> String {
        let whole = (place.fract() == 0.0).then_some(place as usize);
        whole.and_then(|place| self.moments.get(place)).map_or_else(String::new, |moment| moment.day().to_owned())
    }

    fn table(&self, trend: &Trend) -> String {
        let row = |(moment, value): (&Moment, &Option<f64>)| {
            let commit = moment.commit.as_deref().map_or_else(|| NONE.to_owned(), abbreviated);
            let value = value.map_or_else(|| NONE.to_owned(), |value| figure(&trend.metric, value));
            vec![escaped(moment.day()), escaped(&commit), escaped(&value)]
        };
        let rows: Vec<Vec<String>> = self.moments.iter().zip(&trend.values).map(row).collect();
        table("over", &["day", "commit", "value"], &rows)
    }
}

impl Moment {
    fn day(&self) -> &str {
        self.started_at.get(..10).unwrap_or(&self.started_at)
    }

    /// The commit and the day, or the version and the day.
    fn named(&self) -> String {
        match &self.commit {
            Some(commit) => format!("commit {} of {}", abbreviated(commit), self.day()),
            None => format!("version {} of {}", self.tickpath, self.day()),
        }
    }
}

/// One page of several histories.
pub fn page(histories: &[Trends]) -> String {
    let sections: String = histories.iter().map(Trends::section).collect();
    let header = "<header>\n<p class=\"brand\">tickpath</p>\n<h1>history</h1>\n</header>\n";
    html::document("history", &format!("{header}{sections}"))
}

/// How the marks of a figure's axis are printed.
fn print(metric: &str) -> fn(f64) -> String {
    match metric {
        name if name.ends_with("_ns") => duration,
        name if name.ends_with("_bytes") => bytes,
        _ => short,
    }
}

/// Nine digits, and whether the tree differed from it.
fn abbreviated(commit: &str) -> String {
    let (id, differs) = commit.split_once('-').map_or((commit, String::new()), |(id, how)| (id, format!("-{how}")));
    format!("{}{differs}", id.get(..9).unwrap_or(id))
}
