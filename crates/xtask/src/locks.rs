//! The table of locks in ARCHITECTURE.md names every lock of the engine, and no lock that does not exist.
//!
//! A lock is a field, a static or a type alias whose type has a `Mutex` or `RwLock` in it. The table names fields
//! `Struct::field`, several of one struct `Struct::{one, other}`, and others by their names.

use crate::circles::is_for_tests;
use crate::tidy;
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::{self, Visit};

/// Where the table is.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// Locks that are missing in the table or in the sources.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut locks = BTreeSet::new();
    for name in tidy::LAYERS {
        let mut files = Vec::new();
        tidy::rust_files(&root.join("crates").join(name).join("src"), &mut files)?;
        for file in files.iter().filter(|file| !is_test(file)) {
            let parsed = syn::parse_file(&tidy::read(file)?)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            let mut found = Locks { names: &mut locks };
            found.visit_file(&parsed);
        }
    }
    let told = told(&tidy::read(&root.join(DOCUMENT))?);
    let missing = locks.difference(&told).map(|lock| format!("{DOCUMENT}: the table of locks lacks {lock}"));
    let gone = told.difference(&locks).map(|lock| format!("{DOCUMENT}: there is no lock {lock}"));
    Ok(missing.chain(gone).collect())
}

fn is_test(file: &Path) -> bool {
    file.ends_with("tests.rs")
        || file.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "testing")))
}

/// The locks of a file.
struct Locks<'n> {
    names: &'n mut BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Locks<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        // One that stands in for the library's is no lock by itself.
        if item.ident == "Mutex" || item.ident == "RwLock" {
            return;
        }
        for (index, field) in item.fields.iter().enumerate() {
            if is_lock(&field.ty) {
                let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
                self.names.insert(format!("{}::{name}", item.ident));
            }
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        if is_lock(&item.ty) {
            self.names.insert(item.ident.to_string());
        }
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        if is_lock(&item.ty) {
            self.names.insert(item.ident.to_string());
        }
    }
}

/// True if the type has a lock in it.
fn is_lock(of: &syn::Type) -> bool {
    struct Finds(bool);
    impl<'ast> Visit<'ast> for Finds {
        fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
            self.0 |= segment.ident == "Mutex" || segment.ident == "RwLock";
            visit::visit_path_segment(self, segment);
        }
    }
    let mut finds = Finds(false);
    finds.visit_type(of);
    finds.0
}

/// The names in the first column of the table.
fn told(document: &str) -> BTreeSet<String> {
    let section = document.split("\n## ").find(|section| section.starts_with("Locks")).unwrap_or_default();
    let cells =
        section.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).flat_map(names).collect()
}

/// `A::{b, c}` is `A::b` and `A::c`.
fn names(told: &str) -> Vec<String> {
    match told.split_once("::{") {
        Some((of, fields)) => {
            let fields = fields.trim_end_matches('}').split(',');
            fields.map(|field| format!("{of}::{}", field.trim())).collect()
        }
        None => vec![told.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_found_in_fields_statics_and_aliases() {
        let source = "struct A { x: Vec<Mutex<u8>>, y: u8 } struct B(Arc<RwLock<u8>>);
            static C: parking_lot::Mutex<()> = Mutex::new(()); type D = Arc<Mutex<u8>>;
            #[cfg(test)] mod tests { struct E { x: Mutex<u8> } }";
        let mut names = BTreeSet::new();
        Locks { names: &mut names }.visit_file(&syn::parse_file(source).unwrap());
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["A::x", "B::0", "C", "D"]);
    }

    #[test]
    fn the_table_tells_of_fields_alone_and_together() {
        let document = "# A\n\n## Locks, in order\n\n| lock | guards |\n|---|---|\n| `A::x`, `B::{y, z}` | `no` lock |\n\n## Next\n| `C` | |";
        assert_eq!(told(document).into_iter().collect::<Vec<_>>(), ["A::x", "B::y", "B::z"]);
    }
}
