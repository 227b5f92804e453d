//! Files of a crate never need each other in a circle, directly or through others. A reader of a crate can then begin
//! with a file that names nothing of another, and end with the file that names them all.
//!
//! A file needs another if a path in its code leads there: in a `use`, re-exports too, or where it is used. A path's
//! target is the file that defines it, across all re-exports. A `mod` line by itself needs nothing, nor does a method
//! call: the methods of a type may lie in several files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Group, TokenStream, TokenTree};

use super::{check, crates, root};

#[test]
fn no_files_depend_on_each_other_in_a_cycle() {
    let circles = |folder: String| {
        let found = circles_in(&root().join(&folder));
        found.into_iter().map(|circle| format!("{folder}: {circle}")).collect::<Vec<_>>()
    };
    // `peers` is a workspace of its own.
    let folders = crates().into_iter().map(|(name, _)| format!("crates/{name}")).chain(["peers".to_owned()]);
    check(folders.flat_map(circles).collect());
}

#[test]
fn cycles_are_found_from_any_of_their_files() {
    let nothing: &[&[&str]] = &[];
    let pair: &[&[&str]] = &[&["src/a.rs", "src/lib.rs"]];
    let siblings: &[&[&str]] = &[&["src/a.rs", "src/b.rs"]];
    // A parent may name its child, and a child its parent; both together make a circle, and a re-export counts as a
    // name.
    expect(nothing, &[("lib", "mod a; use a::A; struct L;"), ("a", "pub struct A;")]);
    expect(nothing, &[("lib", "mod a; struct L;"), ("a", "fn f() -> super::L {}")]);
    expect(pair, &[("lib", "mod a; pub use a::A; struct L;"), ("a", "pub struct A(crate::L);")]);
    expect(pair, &[("lib", "mod a; fn f() { g(a::g) } fn h() {}"), ("a", "use super::*; fn g() {}")]);
    expect(pair, &[("lib", "mod a; fn f() { vec![a::A] } fn g() {}"), ("a", "fn f() { if true { super::g() } }")]);
    // A re-export, or another name, leads to the file behind it.
    let sees = |used| [("lib", "mod a; mod b; pub use a::A; use b as c;"), ("a", used), ("b", "use crate::A;")];
    expect(nothing, &sees("pub struct A;"));
    expect(siblings, &sees("use crate::c::{self, X as Y}; pub struct A;"));
    expect(siblings, &sees("pub struct A; mod tests { use crate::{b::B}; }"));
    expect(siblings, &sees("pub struct A; impl A { const C: u8 = 1 + ..crate::c::X; }"));
    // Text that is no path of this crate: fields, lifetimes, other crates, comments and strings.
    expect(nothing, &sees("pub struct A; /* crate::b::X */ fn f<'b>() { a.b; ::b::x(); \"crate::b::X\" }"));
    // A circle of three files, one of them in a folder.
    let far = [("lib", "mod a; mod b;"), ("a", "pub mod c; pub use c::C;"), ("a/c", "use crate::b;"), ("b", "")];
    expect(nothing, &far);
    let round = [("lib", "mod a; mod b;"), ("a", "pub mod c; fn f() { c::f() }"), ("a/c", "fn f() { crate::b::f() }")];
    let round = [round[0], round[1], round[2], ("b", "use super::a; fn f() { a::f() }")];
    expect(&[&["src/a/c.rs", "src/a.rs", "src/b.rs"]], &round);
}

/// Checks that a crate of these modules has these circles.
fn expect(circles: &[&[&str]], modules: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (module, text) in modules {
        let file = folder.path().join(format!("src/{module}.rs"));
        fs::create_dir_all(file.parent().expect("it is in src/")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    let found: Vec<String> = circles_in(folder.path());
    let heads: Vec<&str> = found.iter().filter_map(|circle| circle.lines().next()).collect();
    let expected: Vec<String> = circles.iter().map(|files| format!("a circle of {}", files.join(", "))).collect();
    assert_eq!(heads, expected, "in {modules:?}");
}

/// Returns each set of files that need each other, with the names by which they do.
fn circles_in(folder: &Path) -> Vec<String> {
    let sources = Sources::of(folder);
    let needs = sources.needs();
    let reached: Vec<BTreeSet<usize>> = (0..sources.files.len()).map(|file| reach(&needs, file)).collect();
    let mut found = Vec::new();
    for file in 0..sources.files.len() {
        let circle: Vec<usize> =
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect();
        if circle.iter().min() != Some(&file) {
            continue;
        }
        let named = |file: &usize| sources.files[*file].display().to_string();
        let mut text = format!("a circle of {}", circle.iter().map(named).collect::<Vec<_>>().join(", "));
        for ((from, to), names) in needs.iter().filter(|((a, b), _)| circle.contains(a) && circle.contains(b)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            text += &format!("\n    {} needs {}: {}", named(from), named(to), names.join(", "));
        }
        found.push(text);
    }
    found
}

/// Pairs of files of which the first needs the second, with the names by which it does.
type Needs = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Returns the files that a file needs, directly or indirectly.
fn reach(needs: &Needs, file: usize) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![file]);
    while let Some(file) = open.pop() {
        open.extend(
            needs.range((file, 0)..=(file, usize::MAX)).map(|((_, to), _)| *to).filter(|to| reached.insert(*to)),
        );
    }
    reached
}

/// The modules of a crate: of its library, its programs, tests and examples.
struct Sources {
    folder: PathBuf,
    /// Sources, sorted, relative to the folder.
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

/// The names in a module, as far as their targets may lie in another file.
struct Module {
    file: usize,
    root: usize,
    parent: usize,
    names: BTreeMap<String, Vec<Named>>,
    globs: Vec<Names>,
    mentions: BTreeSet<Names>,
}

/// The segments of a path.
type Names = Vec<String>;

/// Meaning of a name in a module.
enum Named {
    /// An item that this file defines.
    Here,
    Module(usize),
    /// The target of this path.
    By(Names),
}

/// Target of a path.
#[derive(Clone, Copy)]
enum Found {
    Module(usize),
    File(usize),
}

/// Max steps from name to name.
const MAX_NAMES: usize = 16;

const DEFINE: [&str; 10] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "macro", "mut"];

impl Sources {
    fn of(folder: &Path) -> Self {
        let mut files = sources_in(folder, folder);
        files.sort();
        let mut sources = Self { folder: folder.to_owned(), files, modules: Vec::new() };
        for file in sources.files.clone() {
            if is_root(&file) {
                sources.add_file(&file, None, file.parent().expect("it is in a folder"));
            }
        }
        let known: BTreeSet<usize> = sources.modules.iter().map(|module| module.file).collect();
        let unknown: Vec<&PathBuf> =
            (0..).zip(&sources.files).filter(|(n, _)| !known.contains(n)).map(|(_, f)| f).collect();
        assert!(unknown.is_empty(), "{}: no module leads to {unknown:?}", folder.display());
        sources
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        for (number, module) in self.modules.iter().enumerate() {
            // A name from a `use` was already noted there.
            let is_new = |path: &&Names| {
                let first = self.resolve(number, &path[..1], MAX_NAMES);
                path.len() == 1 || first.is_empty() || first.iter().any(|found| matches!(found, Found::Module(_)))
            };
            for mention in module.mentions.iter().filter(is_new) {
                for found in self.resolve(number, mention, MAX_NAMES) {
                    if let Found::File(file) = found
                        && file != module.file
                    {
                        needs.entry((module.file, file)).or_default().insert(mention.join("::"));
                    }
                }
            }
        }
        needs
    }

    /// Returns the targets of a path in a module: none for another crate, several where a name has several meanings.
    /// An item that the module has without defining it, from a macro or another crate, counts for the module's file.
    fn resolve(&self, from: usize, path: &[String], names_left: usize) -> Vec<Found> {
        let (first, rest) = path.split_first().expect("a path has a segment");
        let mut places = match first.as_str() {
            "crate" => vec![Found::Module(self.modules[from].root)],
            "self" => vec![Found::Module(from)],
            "super" => vec![Found::Module(self.modules[from].parent)],
            name => self.find(from, name, names_left).unwrap_or_default(),
        };
        for name in rest {
            let next = |place: Found| match place {
                Found::Module(module) if name == "super" => vec![Found::Module(self.modules[module].parent)],
                Found::Module(module) => {
                    let here = || vec![Found::File(self.modules[module].file)];
                    self.find(module, name, names_left).unwrap_or_else(here)
                }
                file => vec![file],
            };
            places = places.into_iter().flat_map(next).collect();
        }
        places
    }

    /// Returns the targets of a name in a module; none if the name is unknown there.
    fn find(&self, module: usize, name: &str, names_left: usize) -> Option<Vec<Found>> {
        let here = &self.modules[module];
        let Some(names_left) = names_left.checked_sub(1) else { return Some(Vec::new()) };
        let Some(named) = here.names.get(name) else {
            let globbed = here.globs.iter().flat_map(|glob| self.resolve(module, glob, names_left));
            return globbed.into_iter().find_map(|found| match found {
                Found::Module(other) if other != module => self.find(other, name, names_left),
                _ => None,
            });
        };
        let places = named.iter().flat_map(|named| match named {
            Named::Here => vec![Found::File(here.file)],
            Named::Module(module) => vec![Found::Module(*module)],
            Named::By(path) => self.resolve(module, path, names_left),
        });
        Some(places.collect())
    }

    /// Reads a file; the modules that it names lie in `home`.
    fn add_file(&mut self, path: &Path, parent: Option<usize>, home: &Path) -> usize {
        let text = fs::read_to_string(self.folder.join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = self.files.binary_search_by(|file| file.as_path().cmp(path)).expect("a source was listed");
        let tokens = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.add_module(file, parent, tokens, home)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>, tokens: TokenStream, home: &Path) -> usize {
        let number = self.modules.len();
        let root = parent.map_or(number, |parent| self.modules[parent].root);
        let (names, globs, mentions) = Default::default();
        self.modules.push(Module { file, root, parent: parent.unwrap_or(number), names, globs, mentions });
        self.read(number, tokens, Some(home));
        number
    }

    /// Reads a module's code, or, without a home, the inside of one of its items.
    fn read(&mut self, module: usize, tokens: TokenStream, home: Option<&Path>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut place) = (0, None);
        while let Some(token) = tokens.get(at) {
            match (token, tokens.get(at + 1)) {
                (TokenTree::Group(group), _) => {
                    place = attribute_path(group).or(place);
                    self.read(module, group.stream(), None);
                }
                (TokenTree::Ident(word), Some(next)) if word == "use" && !is(next, '<') => {
                    let end = tokens[at..].iter().position(|token| is(token, ';')).map_or(tokens.len(), |n| at + n);
                    self.read_use(module, &tokens[at + 1..end], &[]);
                    at = end;
                }
                (TokenTree::Ident(word), Some(TokenTree::Ident(name))) if word == "mod" && home.is_some() => {
                    let (name, home) = (plain(name), home.expect("it has one"));
                    let child = match &tokens[at + 2] {
                        TokenTree::Group(group) => {
                            let file = self.modules[module].file;
                            Some(self.add_module(file, Some(module), group.stream(), &home.join(&name)))
                        }
                        _ => self.add_child(module, &name, home, place.take()),
                    };
                    if let Some(child) = child {
                        self.name(module, name, Named::Module(child));
                    }
                    at += 2;
                }
                (TokenTree::Ident(word), Some(TokenTree::Ident(name)))
                    if home.is_some() && DEFINE.iter().any(|define| word == define) =>
                {
                    self.name(module, plain(name), Named::Here);
                }
                (TokenTree::Ident(word), Some(_)) if word == "macro_rules" && home.is_some() => {
                    self.name(module, tokens[at + 2].to_string(), Named::Here);
                }
                (TokenTree::Ident(_), _) => at = self.read_path(module, &tokens, at),
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads the file of a child module; none for a file of another crate, which is checked there.
    fn add_child(&mut self, module: usize, name: &str, home: &Path, place: Option<String>) -> Option<usize> {
        let own = self.files[self.modules[module].file].parent().expect("it is in a folder").to_owned();
        let candidates = match place {
            Some(place) => vec![straight(&own.join(place))?],
            None => vec![home.join(format!("{name}.rs")), home.join(name).join("mod.rs")],
        };
        let path = candidates.iter().find(|path| self.files.binary_search(path).is_ok());
        let path = path.unwrap_or_else(|| panic!("no file of module {name} in {}", self.folder.join(home).display()));
        Some(self.add_file(path, Some(module), &home.join(name)))
    }

    /// Reads the branches of a `use`.
    fn read_use(&mut self, module: usize, tokens: &[TokenTree], before: &[String]) {
        for branch in tokens.split(|token| is(token, ',')) {
            let (mut path, mut name) = (before.to_vec(), None);
            let mut words = branch.iter().peekable();
            if path.is_empty() && words.peek().is_none_or(|token| is(token, ':')) {
                continue;
            }
            let mut is_name = true;
            while let Some(word) = words.next() {
                match word {
                    TokenTree::Ident(word) if word == "as" => name = words.next().map(TokenTree::to_string),
                    TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                    TokenTree::Ident(word) => path.push(plain(word)),
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.read_use(module, &inner, &path);
                        is_name = false;
                    }
                    star if is(star, '*') => {
                        self.modules[module].globs.push(path.clone());
                        path.push("*".to_owned());
                        self.modules[module].mentions.insert(path.clone());
                        is_name = false;
                    }
                    _ => {}
                }
            }
            if let Some(last) = path.last().filter(|_| is_name && !branch.is_empty()) {
                self.name(module, name.unwrap_or_else(|| last.clone()), Named::By(path.clone()));
                self.modules[module].mentions.insert(path);
            }
        }
    }

    /// Reads a path from a word on, and returns the index of its last word. A single word names an item of this file,
    /// or a name of an earlier `use`.
    fn read_path(&mut self, module: usize, tokens: &[TokenTree], from: usize) -> usize {
        let TokenTree::Ident(first) = &tokens[from] else { return from };
        let (mut at, mut path) = (from, vec![plain(first)]);
        while let [colon, second, TokenTree::Ident(word), ..] = &tokens[at + 1..] {
            if !(is(colon, ':') && is(second, ':')) {
                break;
            }
            path.push(plain(word));
            at += 3;
        }
        let before = |n: usize, sign| from.checked_sub(n).is_some_and(|at| is(&tokens[at], sign));
        let goes_on = before(1, '.') && !before(2, '.') || before(1, ':') && before(2, ':') || before(1, '\'');
        let stands_for_another = before(1, '$') && first != "crate";
        if path.len() > 1 && !goes_on && !stands_for_another {
            self.modules[module].mentions.insert(path);
        }
        at
    }

    fn name(&mut self, module: usize, name: String, named: Named) {
        self.modules[module].names.entry(name).or_default().push(named);
    }
}

/// Returns the file of a module according to its attribute.
fn attribute_path(group: &Group) -> Option<String> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    match &tokens[..] {
        [TokenTree::Ident(word), sign, TokenTree::Literal(place)] if word == "path" && is(sign, '=') => {
            Some(place.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn plain(word: &proc_macro2::Ident) -> String {
    word.to_string().trim_start_matches("r#").to_owned()
}

/// Returns the path without `..`; none if the path leads out of the crate.
fn straight(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |straight, part| match part {
        std::path::Component::ParentDir => straight.parent().map(Path::to_owned),
        part => Some(straight.join(part)),
    })
}

/// Returns whether cargo compiles the file as a root: `src/lib.rs`, `src/main.rs`, and for tests and the like each
/// file or `main.rs`.
fn is_root(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    matches!(
        parts[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["tests" | "examples" | "benches", _]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "examples" | "benches", _, "main.rs"]
    )
}

fn sources_in(folder: &Path, base: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of a crate can be read") {
        let path = entry.expect("a folder of a crate can be read").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(sources_in(&path, base));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path.strip_prefix(base).expect("it lies in the crate").to_owned());
        }
    }
    found
}
