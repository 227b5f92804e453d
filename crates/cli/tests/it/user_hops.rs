//! Results of a user's own code, as `lab.hops()` of the Python package saves them: rendered, put together and compared.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use tickpath_lab_result::{Hop, ResultFile, Run, histogram};

use crate::program::{Ran, tickpath, tickpath_with};
use crate::reports::{load, text};

#[test]
fn results_of_user_hops_are_rendered_and_compared() {
    let folder = tempdir().expect("a temporary folder can be made");
    let [old, same, slower] = [(0, 1_000), (1, 1_001), (2, 2_000)].map(|(n, ns)| put_together(folder.path(), n, ns));
    let output = tickpath(&format!("report {} --all", text(&old)));
    assert_eq!(output.code, Some(0), "{}", output.err);
    for name in ["own.decode", "own.tick_to_decode"] {
        assert!(output.out.contains(name), "{}", output.out);
    }
    for form in ["html", "csv", "markdown", "svg"] {
        let file = folder.path().join(format!("own.{form}"));
        let output = tickpath(&format!("report {} --{form} {}", text(&old), text(&file)));
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(fs::read_to_string(&file).expect("it was written").contains("own.tick_to_decode"), "{form}");
    }
    let limit = "own.decode.p99 > +10%";
    let kept = compare(&old, &same, limit);
    assert_eq!(kept.code, Some(0), "{}{}", kept.out, kept.err);
    assert!(kept.out.contains("limit kept: own.decode.p99 > +10%"), "{}", kept.out);
    let exceeded = compare(&old, &slower, limit);
    assert_eq!(exceeded.code, Some(4), "{}{}", exceeded.out, exceeded.err);
    assert!(exceeded.out.contains("own.decode.p99") && exceeded.out.contains("slower"), "{}", exceeded.out);
    let refused = compare(&old, &slower, "own.DECODE.p99 > +10%");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("no bench measures 'own.DECODE.p99'"), "{}", refused.err);
}

fn compare(old: &Path, new: &Path, limit: &str) -> Ran {
    tickpath_with(&["compare", text(old), text(new), "--fail-if", limit])
}

/// Merges the results of five processes into one file, by the command; the file keeps the schema.
fn put_together(folder: &Path, number: usize, ns: u64) -> PathBuf {
    let files = (0..5).map(|process| {
        let file = folder.join(format!("{number}-{process}.json"));
        of_a_process(ns + process).save(&file).expect("the folder can be written");
        text(&file).to_owned()
    });
    let (files, whole) = (files.collect::<Vec<_>>().join(" "), folder.join(format!("{number}.json")));
    let output = tickpath(&format!("report {files} --json {}", text(&whole)));
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert_eq!(load(&whole)["runs"].as_array().map(Vec::len), Some(5));
    whole
}

fn of_a_process(ns: u64) -> ResultFile {
    let mut result = ResultFile::new("own", "python strategy.py", "2026-01-02T03:04:05Z");
    let mut run = Run { target: "own://".to_owned(), client: "python".to_owned(), repeat: 1, ..Run::default() };
    run.valid = true;
    for (name, times) in [("own.decode", 1), ("own.tick_to_decode", 7)] {
        let mut samples = histogram();
        samples.record_n(ns * times, 2_000).expect("within the bounds");
        run.hops.insert(name.to_owned(), Hop::from_histogram(&samples, None, 0, [ns * times; 3]));
    }
    result.runs = vec![run];
    result
}
