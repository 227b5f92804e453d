//! `tickpath bench`.

use anyhow::Context;
use tickpath_bus::Policy;
use tickpath_lab::result::{Comparison, ResultFile, Run};
use tickpath_lab::role::Ticks;
use tickpath_lab::{Lab, LabError, host, orders, path, pubsub};

use crate::Outcome;
use crate::args::{HostArgs, OrdersArgs, Output, PathArgs, PubsubArgs, Rate, Usage, Workload};
use crate::progress::Bar;

pub fn run(workload: &Workload) -> anyhow::Result<Outcome> {
    match workload {
        Workload::Host(args) => measure("host", &args.output, |lab, result| bench_host(lab, args, result)),
        Workload::Pubsub(args) => measure("pubsub", &args.output, |lab, result| bench_pubsub(lab, args, result)),
        Workload::Path(args) => measure("path", &args.output, |lab, result| bench_path(lab, args, result)),
        Workload::Orders(args) => measure("orders", &args.output, |lab, result| bench_orders(lab, args, result)),
    }
}

/// Makes a lab and a result, runs, and shows and writes what came of it, in part too if it failed.
fn measure(
    workload: &str,
    output: &Output,
    bench: impl FnOnce(&Lab<'_>, &mut ResultFile) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let bar = Bar::new(output.quiet);
    let lab = lab(&bar)?;
    let mut result = new_result(workload);
    result.host = host::facts(&lab.clock);
    let done = bench(&lab, &mut result);
    drop(lab);
    drop(bar);
    if result.runs.is_empty() {
        done?;
        return Ok(Outcome::Good);
    }
    finish(&result, output)?;
    done?;
    Ok(verdict(&result))
}

/// A lab that spawns this very program.
pub fn lab(bar: &Bar) -> anyhow::Result<Lab<'_>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Lab::new(program, bar)?)
}

/// An empty result that says what made it, when.
pub fn new_result(workload: &str) -> ResultFile {
    let command: Vec<String> = std::env::args().collect();
    let mut command = command.join(" ");
    if let Some(rest) = command.split_once(' ').map(|(_, rest)| rest.to_owned()) {
        command = format!("tickpath {rest}");
    }
    ResultFile::new(workload, &command, &tickpath_lab::result::rfc3339(tickpath_clock::utc_ns()))
}

/// Prints the result, and writes the files that were asked for.
pub fn finish(result: &ResultFile, output: &Output) -> anyhow::Result<()> {
    result.check().context("this is a defect of Tickpath")?;
    print!("{}", crate::report::terminal(result));
    if let Some(file) = &output.json {
        result.save(file)?;
    }
    if let Some(file) = &output.html {
        std::fs::write(file, tickpath_lab::report::html(result))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Whether every run kept the rules.
pub fn verdict(result: &ResultFile) -> Outcome {
    if result.runs.iter().all(|run| run.valid) { Outcome::Good } else { Outcome::Invalid }
}

/// A setting that makes no run is bad usage.
fn usage(error: LabError) -> anyhow::Error {
    match error {
        LabError::Setting(what) => Usage(what).into(),
        other => other.into(),
    }
}

fn bench_host(lab: &Lab<'_>, args: &HostArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let settings = host::Settings { seconds: args.duration, cpus: args.cpus.two()? };
    let (host, run) = host::run(lab, &settings)?;
    result.host = host;
    result.runs.push(run);
    Ok(())
}

fn bench_pubsub(lab: &Lab<'_>, args: &PubsubArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    let (rate, batches) = match args.rate {
        Rate::Max => (None, args.batch.clone()),
        Rate::PerSecond(rate) => (Some(rate), vec![1]),
    };
    let policy = args.policy.unwrap_or(if rate.is_some() { Policy::Overwrite } else { Policy::Fail });
    let count = args.count.unwrap_or(rate.map_or(20_000_000, |rate| (2.0 * rate).max(1.0) as u64));
    for repeat in 1..=args.repeat {
        for target in &args.target {
            for &size in &args.size {
                for &batch in &batches {
                    for &readers in &args.readers {
                        let settings = pubsub::Settings {
                            target: target.clone(),
                            size,
                            rate,
                            count,
                            batch: batch as usize,
                            policy,
                            readers: readers as usize,
                            wait: args.wait,
                            cpus,
                            priority: args.priority,
                            repeat,
                        };
                        result.runs.push(pubsub::run(lab, &settings).map_err(usage)?);
                    }
                }
            }
        }
    }
    compare_targets(result, "one_way");
    Ok(())
}

fn bench_path(lab: &Lab<'_>, args: &PathArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    // Made-up ticks have no times worth keeping.
    let rate = args.rate.or(args.ticks.is_none().then_some(20_000.0));
    for repeat in 1..=args.repeat {
        for &layout in &args.layout {
            for &wait in &args.wait {
                for target in &args.target {
                    let ticks =
                        Ticks { file: args.ticks.clone(), seed: args.seed, rate, speed: args.speed, count: args.count };
                    let settings = path::Settings {
                        target: target.clone(),
                        layout,
                        wait,
                        cpus,
                        priority: args.priority,
                        ticks,
                        repeat,
                    };
                    result.runs.push(path::run(lab, &settings).map_err(usage)?);
                }
            }
        }
    }
    compare_targets(result, "tick_to_order");
    Ok(())
}

fn bench_orders(lab: &Lab<'_>, args: &OrdersArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    if let Some(journal) = args.journal.as_ref().filter(|journal| journal.exists()) {
        return Err(Usage(format!("--journal {}: it exists; name a new folder", journal.display())).into());
    }
    let several = args.layout.len() * args.wait.len() * args.repeat as usize > 1;
    for repeat in 1..=args.repeat {
        for &layout in &args.layout {
            for &wait in &args.wait {
                let folder = |dir: &std::path::PathBuf| {
                    if several { dir.join(format!("{layout}-{wait}-{repeat}")) } else { dir.clone() }
                };
                let settings = orders::Settings {
                    layout,
                    wait,
                    cpus,
                    priority: args.priority,
                    order: args.order.clone(),
                    count: args.count,
                    rate: args.rate,
                    full: args.full,
                    journal: args.journal.as_ref().map(folder),
                    repeat,
                };
                result.runs.extend(orders::run(lab, &settings).map_err(usage)?);
            }
        }
    }
    Ok(())
}

/// Where several targets took turns, the ratio of each to the first: medians over the repeats.
fn compare_targets(result: &mut ResultFile, hop: &str) {
    let p50 = |run: &Run| run.hops.get(hop).and_then(|hop| hop.percentiles()[0]).map(|ns| ns as f64);
    let Some(first) = result.runs.first().map(|run| run.target.clone()) else { return };
    let median_of = |target: &str| {
        let mut values: Vec<f64> = result.runs.iter().filter(|run| run.target == target).filter_map(p50).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let mut others: Vec<String> = result.runs.iter().map(|run| run.target.clone()).filter(|t| *t != first).collect();
    others.sort();
    others.dedup();
    let scheme = |url: &str| match url.split("://").next() {
        Some("shm" | "file") => "log".to_owned(),
        Some(other) => other.to_owned(),
        None => url.to_owned(),
    };
    let found: Vec<Comparison> = others
        .iter()
        .filter_map(|other| {
            let name = format!("{}_to_{}_{hop}", scheme(other), scheme(&first));
            Some(Comparison::new(&name, &format!("{hop}.p50_ns"), median_of(other)?, median_of(&first)?, None))
        })
        .collect();
    result.comparisons.extend(found);
}
