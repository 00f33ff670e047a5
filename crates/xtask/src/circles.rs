//! Which files of the engine import each other in a circle.
//!
//! ```text
//! a.rs: use crate::b::B     b.rs: use super::c::C     c.rs: fn f(a: &crate::a::A)      one circle of three
//! ```
//! A file's imports are its `use` declarations and every other path that begins with `crate`, `super`, `self` or a module
//! below it; what is under `#[cfg(test)]` does not count, nor what macros are given. `mod` is no import: a module may be declared
//! above what it imports. Such a path belongs to the deepest file that it names.
//!
//! A part that is in no circle can be read, built and tested without what lies above it.

use crate::tidy;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// Files that may be in one circle, at most; 1 allows no circle. It was 23. Never raise it.
const MOST_IN_A_CIRCLE: usize = 1;

/// The sources looked at, from the workspace.
const SOURCES: &str = "crates/engine/src";

/// A path by segments, without `crate`.
type Segments = Vec<String>;

/// The imports of each file, by its name from [`SOURCES`].
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The circles that have more files than are allowed.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let circles = circles(&imports(root)?);
    let too_large = circles.into_iter().filter(|circle| circle.len() > MOST_IN_A_CIRCLE);
    Ok(too_large
        .map(|circle| {
            let (count, files) = (circle.len(), circle.join(" "));
            format!("{SOURCES}: {count} files import each other in a circle, {MOST_IN_A_CIRCLE} may: {files}")
        })
        .collect())
}

/// Prints every circle, and what in it imports what.
pub fn print(root: &Path) -> Result<(), String> {
    let imports = imports(root)?;
    let circles = circles(&imports);
    println!("{} files, {} circles; {MOST_IN_A_CIRCLE} files may be in one", imports.len(), circles.len());
    for circle in circles {
        println!("{} files:", circle.len());
        for file in &circle {
            let inside: Vec<&str> =
                imports[file].iter().filter(|to| circle.contains(to)).map(String::as_str).collect();
            println!("  {file} -> {}", inside.join(" "));
        }
    }
    Ok(())
}

fn imports(root: &Path) -> Result<Imports, String> {
    let sources = root.join(SOURCES);
    let mut paths = Vec::new();
    tidy::rust_files(&sources, &mut paths)?;
    let mut files: BTreeMap<Segments, (String, Found)> = BTreeMap::new();
    for path in paths.iter().filter(|path| !is_test(path.strip_prefix(&sources).unwrap_or(path))) {
        let name = path.strip_prefix(&sources).unwrap_or(path).display().to_string();
        let module = module_of(&name);
        let parsed = syn::parse_file(&tidy::read(path)?).map_err(|error| format!("{name}: {error}"))?;
        let mut found = Found { module: module.clone(), paths: Vec::new(), below: Vec::new() };
        found.visit_file(&parsed);
        files.insert(module, (name, found));
    }
    let resolve = |path: &Segments| {
        // The crate's root only lists the modules and what is public.
        (1..=path.len()).rev().find_map(|len| files.get(&path[..len]).map(|(name, _)| name.clone()))
    };
    let of = |(name, found): &(String, Found)| {
        let is_below = |path: &&Segments| files.contains_key(&path[..=found.module.len()]);
        let paths = found.paths.iter().chain(found.below.iter().filter(is_below));
        let to: BTreeSet<String> = paths.filter_map(resolve).filter(|to| to != name).collect();
        (name.clone(), to)
    };
    Ok(files.values().map(of).collect())
}

fn is_test(file: &Path) -> bool {
    file.ends_with("tests.rs")
        || file.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "testing")))
}

/// `write/mod.rs` is `[write]`, `lib.rs` the empty path.
fn module_of(name: &str) -> Segments {
    let mut segments: Segments = name.trim_end_matches(".rs").split('/').map(String::from).collect();
    if segments.last().is_some_and(|last| last == "mod" || last == "lib") {
        segments.pop();
    }
    segments
}

/// The paths of a file, from the crate's root.
struct Found {
    module: Segments,
    paths: Vec<Segments>,
    /// Those that are paths only if they begin with a module below this one.
    below: Vec<Segments>,
}

impl Found {
    fn add(&mut self, path: &[String]) {
        let mut place = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            // A module below, or something that is no file of this crate and found to be none.
            Some(_) if path.len() > 1 => {
                self.below.push([&self.module, path].concat());
                return;
            }
            _ => return,
        };
        for segment in path {
            match segment.as_str() {
                "crate" | "self" => {}
                "super" => drop(place.pop()),
                name => place.push(name.to_string()),
            }
        }
        self.paths.push(place);
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.add(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.add_tree(before, item)),
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&segments);
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(super)` imports nothing.
    }
}

/// The attributes of what tests may be in.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// True of `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
pub(crate) fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    attribute.path().is_ident("cfg")
        && !words.contains("not")
        && words.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
}

/// Sets of two or more files that all import each other, directly or not; the largest first.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reached_from(imports, file))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    for (&file, reachable) in &reached {
        if !reachable.contains(file) || placed.contains(file) {
            continue;
        }
        let circle: Vec<&str> = reachable.iter().copied().filter(|to| reached[to].contains(file)).collect();
        placed.extend(&circle);
        circles.push(circle.into_iter().map(String::from).collect());
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// All files that can be come to from `file` by one import or more.
fn reached_from<'i>(imports: &'i Imports, file: &str) -> BTreeSet<&'i str> {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = imports[file].iter().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imports.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(module: &str, source: &str) -> Vec<String> {
        let mut found = Found { module: module_of(module), paths: Vec::new(), below: Vec::new() };
        found.visit_file(&syn::parse_file(source).unwrap());
        found.paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn imports_are_uses_and_paths_of_the_product() {
        let source =
            "use crate::a::{b::C, d}; use super::wal::Wal; use std::fmt; pub(super) fn f(x: &crate::e::E) {}
            #[cfg(test)] mod tests { use crate::never::N; }";
        assert_eq!(paths("write/room.rs", source), ["a::b::C", "a::d", "write::wal::Wal", "e::E"]);
        assert_eq!(
            paths("write/mod.rs", "pub use self::batch::X; use super::db;"),
            ["write::batch::X", "db"]
        );
    }

    #[test]
    fn circles_are_found_whatever_their_length() {
        let graph = |edges: &[(&str, &str)]| {
            let mut imports = Imports::new();
            for (from, to) in edges {
                imports.entry(from.to_string()).or_default().insert(to.to_string());
                imports.entry(to.to_string()).or_default();
            }
            circles(&imports)
        };
        assert!(graph(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
        let found =
            graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("e", "f")]);
        assert_eq!(found, [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
