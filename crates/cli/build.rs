//! Says of which commit the binary is, where git can tell: a result holds it, and `tickpath history` names it.

use std::process::Command;

fn main() {
    // A change of any crate may make the tree differ from its commit.
    println!("cargo:rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    // Another project's commit would say nothing of this one.
    let is_ours = git(&["rev-parse", "--show-cdup"]).is_some_and(|up| up == "../../");
    if let Some(commit) = git(&["describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]).filter(|_| is_ours) {
        println!("cargo:rustc-env=TICKPATH_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
