//! Results of a machine over time: each figure as a series, and the place of its change.
//!
//! A series has changed if a place splits it into values whose ranks lie further apart than a random order of the same
//! files would give: the order is shuffled for the whole table at once, and the change has to exceed the largest
//! change of any series in all but [`LEVEL`] of the shuffles. So a table of a hundred figures is a single test.

use std::collections::{BTreeMap, BTreeSet};

use super::noise::LEVEL;
use super::sample::{RunSetting, titles, values};
use tickpath_lab_harness::random::SeededRandom;
use tickpath_lab_report::trends::{Trend, TrendFile, TrendStep, Trends};
use tickpath_lab_result::{Host, ResultFile, median};

/// Min values on each side of a change; fewer are chance.
const MIN_VALUES: usize = 3;

/// Random orders that are tried beside the found order, and their seed.
const SHUFFLES: usize = 999;
const SEED: u64 = 1;

/// Returns the histories of result files, a history per workload, sorted by workload. If there are several machines,
/// the newest file's machine counts; the other machines' files are reported and left out.
pub fn histories(mut files: Vec<ResultFile>) -> Vec<Trends> {
    files.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let mut by_workload: BTreeMap<String, Vec<ResultFile>> = BTreeMap::new();
    for file in files {
        by_workload.entry(file.workload.clone()).or_default().push(file);
    }
    by_workload.into_iter().filter_map(|(workload, files)| history(workload, files)).collect()
}

fn history(workload: String, files: Vec<ResultFile>) -> Option<Trends> {
    let machine = machine(&files.last()?.host);
    let (files, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| self::machine(&file.host) == machine);
    let mut notes = Vec::new();
    if !others.is_empty() {
        let names: BTreeSet<String> = others.iter().map(|file| self::machine(&file.host)).collect();
        let names = names.into_iter().collect::<Vec<_>>().join("; ");
        notes.push(format!("{} files of other machines are left out: {names}", others.len()));
    }
    let broken = files.iter().flat_map(|file| &file.runs).filter(|run| !run.valid).count();
    if broken > 0 {
        notes.push(format!("{broken} runs broke a rule of honest measuring, and are left out"));
    }
    let mut trends = machine_trends(&files);
    trends.extend(run_trends(&files));
    trends.retain(|trend| trend.values.iter().flatten().count() > 1);
    find_steps(&mut trends);
    let moments = files.iter().map(|file| TrendFile {
        started_at: file.started_at.clone(),
        tickpath: file.tickpath.clone(),
        commit: file.commit.clone(),
    });
    Some(Trends { workload, machine, moments: moments.collect(), trends, notes })
}

/// Returns a machine's identity, as far as a result holds it.
fn machine(host: &Host) -> String {
    let Host { cpu, cores, hypervisor, .. } = host;
    let under = hypervisor.as_ref().map_or_else(String::new, |name| format!(" under {name}"));
    format!("{cpu}, {cores} CPUs{under}")
}

/// Returns the floor of the machine as trends: a change of the floor is not the program's.
fn machine_trends(files: &[ResultFile]) -> Vec<Trend> {
    type HostValue = fn(&Host) -> Option<f64>;
    let floors: [(&str, HostValue); 3] = [
        ("clock_cost_ns", |host| host.clock_cost_ns),
        ("cache_line_transfer_ns", |host| host.cache_line_transfer_ns),
        ("spin_gap_p9999_ns", |host| host.spin_gap_p9999_ns),
    ];
    let trend = |(metric, of): (&str, HostValue)| Trend {
        what: "the machine".to_owned(),
        metric: metric.to_owned(),
        values: files.iter().map(|file| of(&file.host)).collect(),
        step: None,
    };
    floors.into_iter().map(trend).collect()
}

/// Returns a trend for each figure of each setting; the repeats within a file become a single value, their median.
fn run_trends(files: &[ResultFile]) -> Vec<Trend> {
    let telling = distinguishing_settings(files);
    let mut settings: Vec<RunSetting> = Vec::new();
    let mut found: BTreeMap<(usize, String), Vec<Vec<f64>>> = BTreeMap::new();
    let mut order: Vec<(usize, String)> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        for run in file.runs.iter().filter(|run| run.valid) {
            let setting = RunSetting::of(run, None, &telling);
            let setting = settings.iter().position(|known| *known == setting).unwrap_or_else(|| {
                settings.push(setting);
                settings.len() - 1
            });
            for (metric, value) in values(run) {
                let key = (setting, metric);
                let of_files = found.entry(key.clone()).or_insert_with(|| {
                    order.push(key);
                    vec![Vec::new(); files.len()]
                });
                of_files[index].push(value);
            }
        }
    }
    let titles = titles(&settings);
    let trend = |key: (usize, String)| {
        let values = found.remove(&key).unwrap_or_default().into_iter().map(median).collect();
        Trend { what: titles[key.0].clone(), metric: key.1, values, step: None }
    };
    order.into_iter().map(trend).collect()
}

/// Returns the settings that distinguish runs: all but measured ones and additions of a later version, which no earlier
/// file has and which are constant from then on.
fn distinguishing_settings(files: &[ResultFile]) -> BTreeSet<String> {
    let with_runs: Vec<&ResultFile> = files.iter().filter(|file| !file.runs.is_empty()).collect();
    let names: BTreeSet<&String> =
        with_runs.iter().flat_map(|file| &file.runs).flat_map(|run| run.params.0.keys()).collect();
    let is_news = |name: &str| {
        let values = |file: &&ResultFile| file.runs.iter().map(|run| run.params.text(name)).collect::<BTreeSet<_>>();
        let of_files: Vec<BTreeSet<_>> = with_runs.iter().map(values).collect();
        let nothing = BTreeSet::from([None]);
        let first = of_files.iter().position(|values| *values != nothing).unwrap_or(0);
        first > 0 && of_files[first].len() == 1 && of_files[first..].iter().all(|values| *values == of_files[first])
    };
    names.into_iter().filter(|name| !name.starts_with("measured_") && !is_news(name)).cloned().collect()
}

/// Marks the place at which each series changed, if it did.
fn find_steps(trends: &mut [Trend]) {
    let files = trends.first().map_or(0, |trend| trend.values.len());
    // The ranks of a series are the same in any order of the files.
    let ranked: Vec<Vec<Option<f64>>> = trends.iter().map(|trend| ranks(&trend.values)).collect();
    let found: Vec<Option<(usize, f64)>> = ranked.iter().map(|ranks| best_split(ranks.iter().copied())).collect();
    let mut random = SeededRandom::new(SEED);
    let mut order: Vec<usize> = (0..files).collect();
    let largest: Vec<f64> = (0..SHUFFLES)
        .map(|_| {
            random.shuffle(&mut order);
            let sizes = ranked.iter().filter_map(|ranks| best_split(order.iter().map(|&index| ranks[index])));
            sizes.map(|(_, size)| size).fold(0.0, f64::max)
        })
        .collect();
    let steps: Vec<Option<TrendStep>> = found
        .into_iter()
        .zip(trends.iter())
        .map(|(found, Trend { values, .. })| {
            let (at, size) = found?;
            // The found order counts as a shuffle too.
            let as_large = 1 + largest.iter().filter(|other| **other >= size - 1e-9).count();
            let chance = as_large as f64 / (largest.len() + 1) as f64;
            let middle = |values: &[Option<f64>]| median(values.iter().flatten().copied().collect());
            let ratio = middle(&values[at..])? / middle(&values[..at])?;
            (chance <= LEVEL && ratio.is_finite()).then_some(TrendStep { at, ratio, chance })
        })
        .collect();
    trends.iter_mut().zip(steps).for_each(|(trend, step)| trend.step = step);
}

/// Returns the best split of a series of ranks (the index of the first value after it) and the distance of both sides'
/// ranks, relative to its spread under chance; `None` with too few values.
fn best_split(ranks: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64)> {
    let known: Vec<(usize, f64)> = ranks.enumerate().filter_map(|(index, rank)| Some((index, rank?))).collect();
    let n = known.len();
    if n < 2 * MIN_VALUES {
        return None;
    }
    let mut before = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (count, (_, rank)) in (1..).zip(&known).take(n - MIN_VALUES) {
        before += rank;
        if count < MIN_VALUES {
            continue;
        }
        let (a, all) = (count as f64, n as f64);
        let usual = a * (all + 1.0) / 2.0;
        let scale = (a * (all - a) * (all + 1.0) / 12.0).sqrt();
        let size = (before - usual).abs() / scale;
        if best.is_none_or(|(_, max)| size > max) {
            best = Some((known[count].0, size));
        }
    }
    best
}

/// Returns the rank of each value, from 1; equal values share their mean rank.
fn ranks(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let rank = |value: f64| {
        let below = values.iter().flatten().filter(|other| **other < value).count() as f64;
        let equal = values.iter().flatten().filter(|other| **other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(|value| value.map(rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(values: &[f64]) -> Trend {
        let values = values.iter().copied().map(Some).collect();
        Trend { what: "one".to_owned(), metric: "one_way.p50_ns".to_owned(), values, step: None }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut trends = [
            trend(&[10.0, 11.0, 10.0, 12.0, 11.0, 20.0, 21.0, 22.0, 20.0, 23.0]),
            trend(&[5.0, 6.0, 5.5, 6.5, 5.2, 6.1, 5.1, 6.3, 5.7, 5.4]),
        ];
        find_steps(&mut trends);
        let step = trends[0].step.expect("it doubled");
        assert_eq!((step.at, (step.ratio * 10.0).round()), (5, 19.0));
        assert!(step.chance <= LEVEL);
        assert_eq!(trends[1].step, None);
    }

    #[test]
    fn noise_is_rarely_called_a_change() {
        let mut random = SeededRandom::new(7);
        let tables = 200;
        let alarms = (0..tables).filter(|_| {
            let mut trends: Vec<Trend> = (0..10)
                .map(|_| trend(&(0..16).map(|_| 1.0 + random.below(10_000) as f64).collect::<Vec<_>>()))
                .collect();
            find_steps(&mut trends);
            trends.iter().any(|trend| trend.step.is_some())
        });
        // The stated rate is 5 %; 22 of 200 would happen by chance once in 1,000 times.
        assert!(alarms.count() < 22);
    }

    #[test]
    fn settings_of_some_files_separate_runs_and_new_ones_do_not() {
        let file = |params: &[(&str, &str)]| {
            let mut run = tickpath_lab_result::Run { valid: true, ..Default::default() };
            params.iter().for_each(|(name, value)| run.params.set(name, *value));
            ResultFile { runs: vec![run], ..ResultFile::default() }
        };
        let files = [
            file(&[("rate", "1")]),
            ResultFile::default(),
            file(&[("rate", "1"), ("ack", "disk")]),
            file(&[("rate", "2"), ("threads", "two")]),
            file(&[("rate", "1"), ("threads", "two")]),
        ];
        let settings: Vec<String> = distinguishing_settings(&files).into_iter().collect();
        assert_eq!(settings, ["ack", "rate"]);
    }

    #[test]
    fn six_files_are_too_few_for_a_verdict() {
        let mut trends = [trend(&[1.0, 1.1, 1.2, 9.0, 9.1, 9.2])];
        find_steps(&mut trends);
        assert_eq!(trends[0].step, None);
    }
}
