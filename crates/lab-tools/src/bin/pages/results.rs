//! The result files of the pages: the benches' results, without their histograms.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tickpath_lab_compare::published;
use tickpath_lab_result::{ResultFile, Run};

/// Their folder, under the project's root.
pub const FOLDER: &str = "docs/results";

const ENDING: &str = ".json.gz";

/// All result files by name.
pub struct PageResults(BTreeMap<String, ResultFile>);

impl PageResults {
    /// Reads every result file of a folder; published figures are matched with its runs again, by the current rules.
    pub fn load(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(ENDING) else { continue };
            let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let result = serde_json::from_reader(GzDecoder::new(file));
            let result: ResultFile = result.with_context(|| format!("{} is no result file", path.display()))?;
            files.insert(name.to_owned(), ResultFile { published: published::published_figures(&result), ..result });
        }
        Ok(Self(files))
    }

    /// Returns a result file.
    pub fn get(&self, name: &str) -> Result<&ResultFile> {
        self.0.get(name).with_context(|| format!("{FOLDER} has no {name}{ENDING}; make figures measures it"))
    }
}

/// Adds a result file to the folder: without the data that no page shows, and with the same bytes each time.
pub fn keep(path: &Path, folder: &Path) -> Result<()> {
    let mut result = ResultFile::load(path)?;
    result.runs.iter_mut().for_each(lighten);
    let name = path.file_stem().with_context(|| format!("{} names no file", path.display()))?.to_string_lossy();
    let kept = folder.join(format!("{name}{ENDING}"));
    let file = File::create(&kept).with_context(|| format!("cannot write {}", kept.display()))?;
    let mut packed = GzEncoder::new(file, Compression::best());
    serde_json::to_writer(&mut packed, &result)?;
    packed.finish()?.sync_all()?;
    Ok(())
}

fn lighten(run: &mut Run) {
    run.hops.values_mut().for_each(|hop| hop.hdr = None);
    run.series.clear();
}
