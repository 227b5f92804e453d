//! Generator of the pages with measured figures, from result files alone: no figure is typed by hand.
//!
//! ```text
//!   a bench ── --json ──> results/NAME.json ── pages keep ──> docs/results/NAME.json.gz ─┐
//!                                                         docs/pages/PAGE.md.j2 ─────────┴── pages ──> docs/PAGE.md
//! ```
//!
//! A template writes `{{ figure("orders", "hops.t0_t2.p50_ns", layout="inline") }}`; `figure.rs` describes the
//! functions. A test checks every page against its template and the files.

mod figure;
mod results;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use tickpath_lab_report::path_svg;
use tickpath_lab_result::short_name;

use crate::results::PageResults;

/// README's picture: its path, its result file, and its target.
const PICTURE: (&str, &str, &str) = ("docs/path.svg", "path", "log");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pages: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        None => {
            for (path, text) in pages(&root())? {
                std::fs::write(root().join(&path), text).with_context(|| format!("cannot write {path}"))?;
            }
            Ok(())
        }
        Some((word, files)) if word == "keep" && !files.is_empty() => {
            files.iter().try_for_each(|file| results::keep(Path::new(file), &root().join(results::FOLDER)))
        }
        Some(_) => bail!("usage: pages, or pages keep FILE…: result files that benches wrote with --json"),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every generated page: its path, and its text.
fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let results = PageResults::load(&root.join(results::FOLDER))?;
    let (path, name, target) = PICTURE;
    let run = results.get(name)?.runs.iter().find(|run| run.valid && short_name(&run.target) == target);
    let picture = run.and_then(path_svg).with_context(|| format!("{name} has no valid path over {target} to draw"))?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(true).build()?);
    figure::register(&mut environment, results);
    let folder = root.join("docs/pages");
    let mut made = vec![(path.to_owned(), picture)];
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let template = entry?.path();
        let name = template.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(page) = name.strip_suffix(".j2") else { bail!("{} is no template: its name ends in .j2", name) };
        let text = std::fs::read_to_string(&template)?;
        let rendered = environment.render_named_str(&name, &text, ()).map_err(|e| anyhow::anyhow!("{e:#}"))?;
        let head = format!("<!-- Made by `make pages` from docs/pages/{name} and docs/results. -->\n\n");
        made.push((format!("docs/{page}"), head + &rendered));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_match_the_measured_results() {
        for (path, text) in pages(&root()).unwrap() {
            let committed = std::fs::read_to_string(root().join(&path)).unwrap();
            assert!(committed == text, "{path} is not what its template and docs/results say; run make pages");
        }
    }
}
