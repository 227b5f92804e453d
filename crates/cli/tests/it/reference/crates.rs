//! The page of the Rust crates, from their manifests.

use std::fs;

use toml::{Table, Value};

use super::{cell, check_page, read, root};

const HEAD: &str = "\
# Rust

`cargo doc --workspace --no-deps --open` builds and shows the documentation of every crate. A program needs
`tickpath-bus` for topics and queues, `tickpath-oms-client` for orders, and `tickpath-log` for a log alone. The folder
of a crate is `crates/` and its name without `tickpath-`. [ARCHITECTURE.md](../../ARCHITECTURE.md) describes how the
crates depend on each other.
";

#[test]
fn the_page_of_rust_has_every_crate() {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("the folder crates/ is here")
        .map(|entry| entry.expect("crates/ can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| root().join("crates").join(name).join("Cargo.toml").is_file())
        .collect();
    names.sort();
    let manifests = names.iter().map(|name| {
        let manifest: Table = toml::from_str(&read(&format!("crates/{name}/Cargo.toml"))).expect("a manifest is TOML");
        manifest["package"].as_table().expect("a manifest has a package").clone()
    });
    let (published, own): (Vec<Table>, Vec<Table>) =
        manifests.partition(|package| package.get("publish").and_then(Value::as_bool) != Some(false));
    let mut page = HEAD.to_owned();
    for (title, packages) in [("Crates for programs", published), ("Crates of the repository alone", own)] {
        page += &format!("\n## {title}\n\n| crate | |\n|---|---|\n");
        for package in packages {
            let [name, text] =
                ["name", "description"].map(|key| package.get(key).and_then(Value::as_str).unwrap_or_default());
            page += &format!("| `{name}` | {} |\n", cell(text));
        }
    }
    check_page("rust.md", &page);
}
