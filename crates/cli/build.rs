//! Passes the commit of the binary, where git knows it, and its build profile to the compiler: a result holds both,
//! and `tickpath history` prints the commit.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    // A change of any crate may make the tree differ from its commit.
    println!("cargo:rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    // Skipped in another repository: its commit would be wrong.
    let is_ours = git(&["rev-parse", "--show-cdup"]).is_some_and(|up| up == "../../");
    if let Some(commit) = git(&["describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]).filter(|_| is_ours) {
        println!("cargo:rustc-env=TICKPATH_COMMIT={commit}");
    }
    if let Some(profile) = profile() {
        println!("cargo:rustc-env=TICKPATH_PROFILE={profile}");
    }
}

/// Returns the name of the profile's folder: OUT_DIR is …/PROFILE/build/….
fn profile() -> Option<String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
    let build = out.ancestors().find(|folder| folder.ends_with("build"))?;
    Some(build.parent()?.file_name()?.to_str()?.to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
