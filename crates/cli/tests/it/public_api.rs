//! The public API of each published crate, one item a line, is its file `public-api.txt`, so that a review shows each
//! change of it. `TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it public_api` writes the files.
//!
//! `rustdoc` describes the crates as JSON, whose format belongs to the compiler of `rust-toolchain.toml`; the version of
//! `public-api` is the one that reads it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// The published crates: those with a version in the workspace's dependencies.
fn published(root: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace has a manifest");
    let manifest: Table = manifest.parse().expect("Cargo reads it too");
    let dependencies = manifest["workspace"]["dependencies"].as_table().expect("it is a table");
    let published = dependencies.iter().filter(|(_, dependency)| dependency.get("version").is_some());
    let folders = published.filter_map(|(_, dependency)| dependency.get("path").and_then(Value::as_str));
    folders.map(|folder| folder.trim_start_matches("crates/").to_owned()).collect()
}

/// Has Cargo describe the crates; returns the folder of the files.
fn describe(root: &Path) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_tickpath")).ancestors().nth(2).expect("target/debug/tickpath");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["doc", "--workspace", "--no-deps", "--quiet", "--target-dir"]).arg(target).current_dir(root);
    cargo.env("RUSTDOC", root.join("scripts/rustdoc-json"));
    cargo.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    let out = cargo.output().expect("cargo built this test");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    target.join("doc")
}

#[test]
fn the_public_api_of_each_published_crate_is_as_reviewed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let descriptions = describe(&root);
    let mut changed = Vec::new();
    let crates = published(&root);
    assert!(crates.len() > 10, "{crates:?}");
    for name in crates {
        let json = descriptions.join(format!("tickpath_{}.json", name.replace('-', "_")));
        let mut builder = public_api::Builder::from_rustdoc_json(json);
        builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true);
        let api = builder.build().expect("public-api reads the JSON of this compiler").to_string();
        let file = root.join("crates").join(&name).join("public-api.txt");
        if env::var_os("TICKPATH_BLESS").is_some() {
            fs::write(&file, &api).expect("the folder is writable");
        }
        let reviewed = fs::read_to_string(&file).unwrap_or_default();
        let (old, new): (Vec<_>, Vec<_>) = (reviewed.lines().collect(), api.lines().collect());
        changed.extend(new.iter().filter(|line| !old.contains(line)).map(|line| format!("{name}: + {line}")));
        changed.extend(old.iter().filter(|line| !new.contains(line)).map(|line| format!("{name}: - {line}")));
    }
    assert!(
        changed.is_empty(),
        "the public API changed; if that is meant: TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it public_api\n{}",
        changed.join("\n")
    );
}
