//! Grouping of runs, and the samples of each metric.

use std::collections::{BTreeMap, BTreeSet};

use super::error::CompareError;
use super::losses::LossFindings;
use super::noise::Design;
use tickpath_lab_result::{PERCENTILES, ResultFile, Run, median};

/// Measured results, and the order of their two sides in time.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparedResults {
    /// Two result files: the repeats do not show the drift between them.
    Apart(Box<ResultPair>),
    /// Calls that took turns; the two calls of a pair ran in direct succession.
    InTurn(Vec<ResultPair>),
}

/// A result of each side.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultPair {
    /// The old build's result.
    pub old: ResultFile,
    /// The new build's result.
    pub new: ResultFile,
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildSide {
    /// The old build.
    Old,
    /// The new build.
    New,
}

/// The measurements of both sides.
pub(super) struct ComparisonSamples {
    /// A row for each metric of each setting, in the order of the runs.
    pub rows: Vec<MetricSamples>,
    /// The title of each setting: only the parts that distinguish it from the others.
    pub titles: Vec<String>,
    /// Samples of each side, the old first.
    pub sample_counts: [usize; 2],
    pub notes: Vec<String>,
    /// Settings of both sides without a valid run on each.
    pub unjudged: Vec<String>,
    /// Metrics that only one side has, of settings that both ran: the metric, the setting, and the side.
    pub one_sided: Vec<(String, String, BuildSide)>,
    /// The invalid part of each setting.
    pub excluded: Vec<ExcludedRuns>,
    pub losses: Vec<String>,
}

/// The invalid part of a setting: pairs with a missing half, or runs of the side that lacks more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExcludedRuns {
    missing: usize,
    all: usize,
}

/// At most one in this number may be left out: a build's failures to keep its time are no chance.
const EXCLUSION_DIVISOR: usize = 4;

pub(super) struct MetricSamples {
    /// The setting's index in the titles.
    pub setting: usize,
    /// The metric's name in results: `one_way.p99_ns`, `throughput_per_s`, a figure.
    pub metric: String,
    /// A value for each sample of each side, the old first; `None` where a sample lacks the metric.
    pub sides: [Vec<Option<f64>>; 2],
}

/// Pairs up the measurements of both sides; invalid runs are left out, and reported.
pub(super) fn collect_samples(measured: &ComparedResults) -> Result<ComparisonSamples, CompareError> {
    let strays = measured.pairs().iter().find(|pair| pair.old.workload != pair.new.workload);
    if let Some(ResultPair { old, new }) = strays {
        return Err(CompareError::Workloads { old: old.workload.clone(), new: new.workload.clone() });
    }
    let telling = distinguishing_params(measured);
    let mut settings = Vec::new();
    let placed = BuildSide::BOTH.map(|side| place_runs(measured, side, &telling, &mut settings));
    let titles = titles(&settings);
    let known = placed.each_ref().map(|runs| runs.iter().map(|one| one.setting).collect::<BTreeSet<_>>());
    if known[0].is_disjoint(&known[1]) {
        let [old, new] = known.map(|of| of.first().map_or("nothing".to_owned(), |setting| titles[*setting].clone()));
        return Err(CompareError::NothingInCommon { old, new });
    }
    let not_valid: Vec<String> =
        BuildSide::BOTH.iter().zip(&placed).filter_map(|(side, runs)| invalid_runs(*side, runs)).collect();
    let losses = losses(&placed, &titles);
    let units = placed.each_ref().map(|runs| sample_keys(measured, runs));
    let both = |setting: usize| known.iter().all(|of| of.contains(&setting));
    let (mut rows, mut lone) = (Vec::new(), Vec::new());
    for row in gather_rows(&placed, &units) {
        match row.only_side() {
            None => rows.extend(row.keep_pairs(measured.design())),
            Some(side) if both(row.setting) => lone.push((row.metric, titles[row.setting].clone(), side)),
            Some(_) => {}
        }
    }
    if rows.is_empty() {
        let why = if not_valid.is_empty() { "no metric is common to both".to_owned() } else { not_valid.join("; ") };
        return Err(CompareError::NothingValid { why, losses: losses.failures });
    }
    let judged: BTreeSet<usize> = rows.iter().map(|row| row.setting).collect();
    let unjudged = known[0].intersection(&known[1]).filter(|setting| !judged.contains(*setting));
    let unjudged: Vec<String> = unjudged.map(|setting| titles[*setting].clone()).collect();
    let left_out: Vec<ExcludedRuns> =
        (0..titles.len()).map(|setting| ExcludedRuns::of(setting, &placed, measured)).collect();
    let mut notes = not_valid;
    notes.extend(excluded_bounds(&left_out, &titles, both, measured.design()));
    notes.extend(losses.notes);
    notes.extend(only_in(BuildSide::Old, known[0].difference(&known[1]), &titles));
    notes.extend(only_in(BuildSide::New, known[1].difference(&known[0]), &titles));
    notes.extend(
        (!unjudged.is_empty())
            .then(|| format!("not judged, for no run of it is valid on both sides: {}", unjudged.join("; "))),
    );
    let (units, losses) = (units.map(|of| of.len()), losses.failures);
    Ok(ComparisonSamples {
        rows,
        titles,
        sample_counts: units,
        notes,
        unjudged,
        one_sided: lone,
        excluded: left_out,
        losses,
    })
}

impl BuildSide {
    /// Both sides: old, then new.
    pub const BOTH: [Self; 2] = [Self::Old, Self::New];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "OLD",
            Self::New => "NEW",
        }
    }
}

impl ResultPair {
    /// Returns the result of a side.
    pub fn of(&self, side: BuildSide) -> &ResultFile {
        match side {
            BuildSide::Old => &self.old,
            BuildSide::New => &self.new,
        }
    }
}

impl ComparedResults {
    /// Returns the pairs in the order in which they ran; two files are a single pair.
    pub fn pairs(&self) -> &[ResultPair] {
        match self {
            Self::Apart(pair) => std::slice::from_ref(pair.as_ref()),
            Self::InTurn(pairs) => pairs,
        }
    }

    pub(super) fn design(&self) -> Design {
        match self {
            Self::Apart(_) => Design::Apart,
            Self::InTurn(_) => Design::InTurn,
        }
    }

    /// Returns the runs of a side, each with the index of its pair.
    fn runs(&self, side: BuildSide) -> impl Iterator<Item = (usize, &Run)> {
        let pairs = self.pairs().iter().enumerate();
        pairs.flat_map(move |(index, pair)| pair.of(side).runs.iter().map(move |run| (index, run)))
    }
}

/// The setting of a run, as names and values in reading order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunSetting(Vec<(String, String)>);

/// A run, the index of its setting, and its sample.
struct PlacedRun<'a> {
    run: &'a Run,
    setting: usize,
    unit: SampleKey,
}

/// A sample: for calls in turn the index of the call; for a file the number of earlier runs of the setting with this
/// repeat (merged files may have several), and the repeat.
type SampleKey = (usize, u32);

/// Returns the settings that distinguish runs: not measured ones, and not those that only one version records, always
/// with the same value.
fn distinguishing_params(measured: &ComparedResults) -> BTreeSet<String> {
    let all = BuildSide::BOTH.into_iter().flat_map(|side| measured.runs(side));
    let names: BTreeSet<&String> = all.flat_map(|(_, run)| run.params.0.keys()).collect();
    let tells = |name: &String| {
        let values = |side| measured.runs(side).map(|(_, run)| run.params.text(name)).collect::<BTreeSet<_>>();
        let (old, new) = (values(BuildSide::Old), values(BuildSide::New));
        let unknown = BTreeSet::from([None]);
        let is_news = (old == unknown && new.len() == 1) || (new == unknown && old.len() == 1);
        !name.starts_with("measured_") && !is_news
    };
    names.into_iter().filter(|name| tells(name)).cloned().collect()
}

fn place_runs<'a>(
    measured: &'a ComparedResults,
    side: BuildSide,
    telling: &BTreeSet<String>,
    settings: &mut Vec<RunSetting>,
) -> Vec<PlacedRun<'a>> {
    let mut counts: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    let mut placed = Vec::new();
    let servers = servers(measured.runs(side).map(|(_, run)| run.target.as_str()));
    for (call, run) in measured.runs(side) {
        let of_run = RunSetting::of(run, servers.get(run.target.as_str()).copied(), telling);
        let setting = settings.iter().position(|known| *known == of_run).unwrap_or_else(|| {
            settings.push(of_run);
            settings.len() - 1
        });
        let before = counts.entry((setting, run.repeat)).or_default();
        let unit = match measured.design() {
            Design::InTurn => (call, 0),
            Design::Apart => (*before, run.repeat),
        };
        *before += 1;
        placed.push(PlacedRun { run, setting, unit });
    }
    placed
}

/// Returns the targets that took turns with others that differ only in their ports, each with its number: merged files
/// name their servers in succession, and those are repeats.
fn servers<'a>(targets: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    // Per name: the targets in order of arrival, the last target, and whether a target returned after another.
    let mut by_target: BTreeMap<String, (Vec<&str>, &str, bool)> = BTreeMap::new();
    for target in targets {
        let (known, last, takes_turns) = by_target.entry(target_without_port(target)).or_default();
        if !known.contains(&target) {
            known.push(target);
        } else if *last != target {
            *takes_turns = true;
        }
        *last = target;
    }
    let in_turns = by_target.into_values().filter(|(_, _, takes_turns)| *takes_turns);
    in_turns.flat_map(|(known, ..)| known.into_iter().zip(1..)).collect()
}

/// Returns the samples of a side in order. A pair keeps its index even if a call of it was not valid.
fn sample_keys(measured: &ComparedResults, placed: &[PlacedRun<'_>]) -> Vec<SampleKey> {
    match measured {
        ComparedResults::InTurn(pairs) => (0..pairs.len()).map(|call| (call, 0)).collect(),
        ComparedResults::Apart(_) => {
            let valid = placed.iter().filter(|one| one.run.valid);
            valid.map(|one| one.unit).collect::<BTreeSet<_>>().into_iter().collect()
        }
    }
}

/// A setting's index, a metric, and its values by side and sample.
type GatheredRow = (usize, String, [Vec<Vec<f64>>; 2]);

impl MetricSamples {
    /// Returns the side that alone has samples.
    fn only_side(&self) -> Option<BuildSide> {
        let is_there = |side: usize| self.sides[side].iter().any(Option::is_some);
        match (is_there(0), is_there(1)) {
            (true, false) => Some(BuildSide::Old),
            (false, true) => Some(BuildSide::New),
            _ => None,
        }
    }

    /// Reduces calls in turn to complete pairs; returns `None` without any.
    fn keep_pairs(self, design: Design) -> Option<Self> {
        let sides = if design == Design::InTurn { complete_pairs(self.sides) } else { self.sides };
        sides.iter().all(|side| side.iter().any(Option::is_some)).then_some(Self { sides, ..self })
    }
}

/// Returns a row for each metric of each setting. Repeats within a call become a single sample: their median.
fn gather_rows(placed: &[Vec<PlacedRun<'_>>; 2], units: &[Vec<SampleKey>; 2]) -> Vec<MetricSamples> {
    let mut index: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut gathered: Vec<GatheredRow> = Vec::new();
    for (side, runs) in placed.iter().enumerate() {
        for PlacedRun { run, setting, unit } in runs.iter().filter(|one| one.run.valid) {
            let unit = units[side].binary_search(unit).expect("every valid run has its sample");
            for (metric, value) in values(run) {
                let position = *index.entry((*setting, metric.clone())).or_insert_with(|| {
                    let empty = units.each_ref().map(|of| vec![Vec::new(); of.len()]);
                    gathered.push((*setting, metric, empty));
                    gathered.len() - 1
                });
                gathered[position].2[side][unit].push(value);
            }
        }
    }
    let row = |(setting, metric, sides): GatheredRow| MetricSamples {
        setting,
        metric,
        sides: sides.map(|of| of.into_iter().map(median).collect()),
    };
    gathered.into_iter().map(row).collect()
}

/// Clears pairs with a missing half: they give no ratio.
fn complete_pairs(sides: [Vec<Option<f64>>; 2]) -> [Vec<Option<f64>>; 2] {
    let [old, new] = sides;
    let whole = old
        .into_iter()
        .zip(new)
        .map(|(old, new)| if old.is_some() && new.is_some() { (old, new) } else { (None, None) });
    let (old, new) = whole.unzip();
    [old, new]
}

/// Returns the measurements of a run in the order of the path: the percentiles of its hops, its throughput, its
/// figures.
pub(super) fn values(run: &Run) -> Vec<(String, f64)> {
    let mut values = Vec::new();
    for (name, hop) in run.hops_in_path_order() {
        let known = PERCENTILES.iter().zip(hop.percentiles());
        values.extend(known.filter_map(|(percentile, ns)| Some((format!("{name}.{}", percentile.key), ns? as f64))));
    }
    values.extend(run.throughput_per_s.map(|rate| ("throughput_per_s".to_owned(), rate)));
    values.extend(run.figures.iter().map(|(name, value)| (name.clone(), *value)));
    values
}

impl RunSetting {
    pub(super) fn of(run: &Run, server: Option<usize>, telling: &BTreeSet<String>) -> Self {
        let mut parts = vec![
            ("target".to_owned(), target_without_port(&run.target)),
            ("client".to_owned(), run.client.clone()),
            ("phase".to_owned(), run.phase.name().to_owned()),
        ];
        parts.extend(server.map(|number| ("server".to_owned(), number.to_string())));
        parts.extend(run.layout.clone().map(|layout| ("layout".to_owned(), layout)));
        parts.extend(run.batch_text().map(|batch| ("batch".to_owned(), batch)));
        parts.extend(telling.iter().filter_map(|name| Some((name.clone(), run.params.text(name)?))));
        Self(parts)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns a target without user and port, and a socket without its path: these differ for each scratch server.
fn target_without_port(target: &str) -> String {
    let Some((scheme, rest)) = target.split_once("://") else { return target.to_owned() };
    if scheme.ends_with("unix") {
        let way = rest.split_once('?').map_or(String::new(), |(_, way)| format!("?{way}"));
        return format!("{scheme}://{way}");
    }
    let (hosts, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
    let without_port = |host: &str| match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => host.to_owned(),
    };
    let hosts: Vec<String> = hosts.split(',').map(without_port).collect();
    format!("{scheme}://{}{path}", hosts.join(","))
}

/// Returns the title of each setting: its target, and the values that are not the same for all settings.
pub(super) fn titles(settings: &[RunSetting]) -> Vec<String> {
    let varies = |name: &str| settings.iter().map(|one| one.value(name)).collect::<BTreeSet<_>>().len() > 1;
    let title = |setting: &RunSetting| {
        let shown = setting.0.iter().filter(|(name, value)| !value.is_empty() && (name == "target" || varies(name)));
        let shown = shown.map(|(name, value)| match name.as_str() {
            "target" | "client" | "phase" | "layout" => value.clone(),
            _ => format!("{name} {value}"),
        });
        shown.collect::<Vec<_>>().join(" · ")
    };
    settings.iter().map(title).collect()
}

/// Reports the invalid runs of a side; `None` if all were valid.
fn invalid_runs(side: BuildSide, placed: &[PlacedRun<'_>]) -> Option<String> {
    let invalid: Vec<&Run> = placed.iter().map(|one| one.run).filter(|run| !run.valid).collect();
    let note = invalid.first()?.notes.last().map_or("no reason was noted", String::as_str);
    let (side, some, all) = (side.name(), invalid.len(), placed.len());
    Some(format!("{some} of {all} runs of {side} are not valid and left out, for example: {note}"))
}

/// Returns the new side's losses in the settings that both ran.
fn losses(placed: &[Vec<PlacedRun<'_>>; 2], titles: &[String]) -> LossFindings {
    let mut found = LossFindings::default();
    for (setting, title) in titles.iter().enumerate() {
        let mut sides: [Vec<&Run>; 2] = Default::default();
        for (side, runs) in sides.iter_mut().zip(placed) {
            side.extend(runs.iter().filter(|one| one.setting == setting).map(|one| one.run));
        }
        found.extend(LossFindings::of(title, &sides));
    }
    found
}

impl ExcludedRuns {
    fn of(setting: usize, placed: &[Vec<PlacedRun<'_>>; 2], measured: &ComparedResults) -> Self {
        let [old, new] = placed.each_ref().map(|runs| runs.iter().filter(|one| one.setting == setting));
        match measured {
            ComparedResults::InTurn(pairs) => {
                let valid = |runs: &mut dyn Iterator<Item = &PlacedRun<'_>>| {
                    runs.filter(|one| one.run.valid).map(|one| one.unit).collect::<BTreeSet<SampleKey>>()
                };
                let [old, new] = [valid(&mut { old }), valid(&mut { new })];
                Self { missing: pairs.len() - old.intersection(&new).count(), all: pairs.len() }
            }
            ComparedResults::Apart(_) => {
                let side = |runs: &mut dyn Iterator<Item = &PlacedRun<'_>>| {
                    let validity: Vec<bool> = runs.map(|one| one.run.valid).collect();
                    Self { missing: validity.iter().filter(|valid| !**valid).count(), all: validity.len() }
                };
                let [old, new] = [side(&mut { old }), side(&mut { new })];
                if old.missing * new.all > new.missing * old.all { old } else { new }
            }
        }
    }

    pub fn is_too_many(self) -> bool {
        self.missing * EXCLUSION_DIVISOR > self.all
    }
}

/// Returns the bounds that the left-out runs set, a sentence for each number of pairs or runs.
fn excluded_bounds(
    left_out: &[ExcludedRuns],
    titles: &[String],
    both: impl Fn(usize) -> bool,
    design: Design,
) -> Vec<String> {
    let mut groups: Vec<(ExcludedRuns, Vec<&str>)> = Vec::new();
    let some = (0..titles.len()).filter(|setting| both(*setting) && left_out[*setting].missing > 0);
    for (one, title) in some.map(|setting| (&left_out[setting], &titles[setting])) {
        match groups.iter_mut().find(|(known, _)| known == one) {
            Some((_, titles)) => titles.push(title),
            None => groups.push((*one, vec![title])),
        }
    }
    let sentence = |(one, titles): (ExcludedRuns, Vec<&str>)| {
        let of = match design {
            Design::InTurn => "pairs are left out, for a half of them is not valid",
            Design::Apart => "runs of one side are left out, for they are not valid",
        };
        let verdict = if one.is_too_many() { "too many for a verdict" } else { "the verdict is of the others" };
        format!("{} of {} {of}: {verdict}: {}", one.missing, one.all, titles.join("; "))
    };
    groups.into_iter().map(sentence).collect()
}

fn only_in<'a>(side: BuildSide, settings: impl Iterator<Item = &'a usize>, titles: &[String]) -> Option<String> {
    let names: Vec<&str> = settings.map(|setting| titles[*setting].as_str()).collect();
    (!names.is_empty()).then(|| format!("only in {}, and so not compared: {}", side.name(), names.join("; ")))
}
