//! The column `unsafe` of the table of crates in ARCHITECTURE.md says where unsafe code is: `yes` anywhere in the crate,
//! the names of the files that have some, or nothing.

use crate::tidy;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Files with unsafe code that the table does not allow, and rows that name files without any.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for (name, allowed) in column(&tidy::read(&root.join(DOCUMENT))?) {
        let mut files = Vec::new();
        tidy::rust_files(&root.join("crates").join(&name).join("src"), &mut files)?;
        let mut with: BTreeSet<String> = BTreeSet::new();
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            let parsed = syn::parse_file(&tidy::read(file)?)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            let mut found = Unsafe(false);
            found.visit_file(&parsed);
            if found.0 {
                with.extend(file.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        if allowed.contains("yes") {
            continue;
        }
        for file in with.difference(&allowed) {
            violations.push(format!(
                "{DOCUMENT}: crates/{name}: {file} has unsafe code and the table does not say so"
            ));
        }
        for file in allowed.difference(&with) {
            violations.push(format!("{DOCUMENT}: crates/{name}: {file} has no unsafe code"));
        }
    }
    Ok(violations)
}

/// The column of the table, by crate.
fn column(document: &str) -> BTreeMap<String, BTreeSet<String>> {
    let section =
        document.split("\n## ").find(|section| section.starts_with("The crates")).unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
        let (name, cell) = (cells.first()?.trim_end_matches('`'), cells.get(2)?);
        let files = cell.split(',').map(|file| file.trim().trim_matches('`').to_string());
        Some((name.to_string(), files.filter(|file| !file.is_empty()).collect()))
    });
    rows.collect()
}

struct Unsafe(bool);

impl<'ast> Visit<'ast> for Unsafe {
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {
        self.0 = true;
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.0 |= item.unsafety.is_some();
        visit::visit_item_impl(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0 |= signature.unsafety.is_some();
    }

    fn visit_item_foreign_mod(&mut self, _: &'ast syn::ItemForeignMod) {
        self.0 = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_read_and_unsafe_code_is_found() {
        let table = "# A\n\n## The crates\n\n| crate | what | unsafe |\n|---|---|---|\n| `env` | x | yes |\n| `cli` | y | `a`, `b` |\n| `base` | z | |\n";
        let column = column(table);
        assert_eq!(column["cli"].iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert!(column["env"].contains("yes") && column["base"].is_empty());
        let has = |source: &str| {
            let mut found = Unsafe(false);
            found.visit_file(&syn::parse_file(source).unwrap());
            found.0
        };
        assert!(
            has("fn f() { unsafe { g() } }") && has("unsafe impl Send for A {}") && has("unsafe fn f() {}")
        );
        assert!(!has("fn f(g: unsafe fn()) { let x = \"unsafe {\"; }"));
    }
}
