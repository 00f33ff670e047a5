//! Every type that the engine's front page exports has an example.

use crate::tidy;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, UseTree, Visibility};

/// The front page of the engine.
const FRONT: &str = "crates/engine/src/lib.rs";

/// Exported types without an example in their documentation.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for path in exported(&parse(&root.join(FRONT))?) {
        let name = path.last().cloned().unwrap_or_default();
        let mut found = Vec::new();
        for file in files_of(root, &path)? {
            found.extend(documentation(&parse(&file)?, &name));
        }
        // What is no type (a module, a constant) is not among them.
        if !found.is_empty() && !found.iter().any(|text| text.contains("```")) {
            violations.push(format!("{FRONT}: {name} is public and has no example: a ``` block in its docs"));
        }
    }
    Ok(violations)
}

fn parse(path: &Path) -> Result<syn::File, String> {
    syn::parse_file(&tidy::read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The paths of `pub use`.
fn exported(front: &syn::File) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for item in &front.items {
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Public(_))
        {
            leaves(&item.tree, &mut Vec::new(), &mut paths);
        }
    }
    paths
}

fn leaves(tree: &UseTree, within: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            within.push(path.ident.to_string());
            leaves(&path.tree, within, paths);
            within.pop();
        }
        UseTree::Name(name) => {
            let leaf = name.ident.to_string();
            paths.push(within.iter().cloned().chain([leaf]).collect());
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, within, paths)),
        UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

/// The files that may declare what `path` names: that of its module, or all of another crate.
fn files_of(root: &Path, path: &[String]) -> Result<Vec<PathBuf>, String> {
    let first = path.first().map_or("", String::as_str);
    if let Some(other) = first.strip_prefix("outcrop_") {
        let mut files = Vec::new();
        tidy::rust_files(&root.join("crates").join(other).join("src"), &mut files)?;
        return Ok(files);
    }
    let module = path[..path.len() - 1].join("/");
    let src = root.join("crates/engine/src");
    let files = [src.join(format!("{module}.rs")), src.join(module).join("mod.rs")];
    Ok(files.into_iter().filter(|file| file.exists()).collect())
}

/// The documentation of the public types called `name`.
fn documentation(file: &syn::File, name: &str) -> Vec<String> {
    let types = file.items.iter().filter_map(|item| {
        let (visibility, ident, attributes) = match item {
            Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Type(item) => (&item.vis, &item.ident, &item.attrs),
            _ => return None,
        };
        let wanted = matches!(visibility, Visibility::Public(_)) && ident == name;
        wanted.then(|| text_of(attributes))
    });
    types.collect()
}

fn text_of(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_found_with_their_modules() {
        let front = syn::parse_file("pub use a::b::{C, d::E}; use f::G; pub use outcrop_base::H;").unwrap();
        let paths: Vec<String> = exported(&front).iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["a::b::C", "a::b::d::E", "outcrop_base::H"]);
    }

    #[test]
    fn an_example_is_a_block_in_the_docs_of_that_type() {
        let file =
            syn::parse_file("/// ```\n/// ```\npub struct A;\n/// None.\npub enum B {}\nstruct C;").unwrap();
        assert!(documentation(&file, "A")[0].contains("```"));
        assert_eq!(documentation(&file, "B"), [" None."]);
        assert!(documentation(&file, "C").is_empty());
    }
}
