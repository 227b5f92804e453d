//! Checks that the header equals cbindgen's output for the sources. `TICKPATH_BLESS=1` regenerates the header.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_header_matches_the_sources() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).expect("cbindgen.toml can be read");
    let made = cbindgen::Builder::new().with_config(config).with_src(package.join("src/lib.rs")).generate();
    let mut header = Vec::new();
    made.expect("cbindgen reads the sources").write(&mut header);
    let header = String::from_utf8(header).expect("the sources are UTF-8");
    let path = package.join("include/tickpath.h");
    if env::var_os("TICKPATH_BLESS").is_some() {
        fs::write(&path, &header).expect("the header can be written");
    }
    let kept = fs::read_to_string(&path).expect("the header is here");
    let first = (1..).zip(header.lines().zip(kept.lines())).find(|(_, (made, kept))| made != kept);
    let remedy = "make it anew: TICKPATH_BLESS=1 cargo test -p tickpath-capi --test header";
    assert!(header == kept, "the header differs from the sources, first (line, made, kept) at {first:?}; {remedy}");
}
