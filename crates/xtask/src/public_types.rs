//! Every type that the engine's front page exports has an example.

use crate::tidy;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, UseTree, Visibility};

/// The front page of the engine.
const FRONT: &str = "crates/engine/src/lib.rs";

/// Exported types without an example in their documentation, and exports that cannot be looked at.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    let exports = exported(&parse(&root.join(FRONT))?);
    violations.extend(exports.wholes.iter().map(|path| {
        format!("{FRONT}: {path} publishes what nobody has listed: name the types of it that are public")
    }));
    for path in exports.paths {
        let name = path.last().cloned().unwrap_or_default();
        let (mut found, mut is_no_type) = (Vec::new(), false);
        let files = files_of(root, &path)?.iter().map(|file| parse(file)).collect::<Result<Vec<_>, _>>()?;
        for file in &files {
            found.extend(documentation(file, &name));
            found.extend(declaring_macro(file, &name).map(|used| text_of_macro(&files, &used)));
            is_no_type |= has_value(file, &name);
        }
        if found.is_empty() && !is_no_type {
            violations.push(format!("{FRONT}: {name} is found in no file of {}", path.join("::")));
        } else if !found.is_empty() && !found.iter().any(|text| text.contains("```")) {
            violations.push(format!("{FRONT}: {name} is public and has no example: a ``` block in its docs"));
        }
    }
    Ok(violations)
}

fn parse(path: &Path) -> Result<syn::File, String> {
    syn::parse_file(&tidy::read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The exports of the front page.
#[derive(Default)]
struct Exports {
    /// The paths of `pub use`, those in public modules of the page too.
    paths: Vec<Vec<String>>,
    /// Crates, modules and globs that are published as they are, or under another name.
    wholes: Vec<String>,
}

fn exported(front: &syn::File) -> Exports {
    let mut exports = Exports::default();
    list(&front.items, &mut exports);
    exports
}

fn list(items: &[Item], exports: &mut Exports) {
    for item in items {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                leaves(&item.tree, &mut Vec::new(), exports);
            }
            Item::Mod(item) if matches!(item.vis, Visibility::Public(_)) => match &item.content {
                Some((_, items)) => list(items, exports),
                None => exports.wholes.push(item.ident.to_string()),
            },
            _ => {}
        }
    }
}

fn leaves(tree: &UseTree, within: &mut Vec<String>, exports: &mut Exports) {
    let path = |leaf: String| within.iter().cloned().chain([leaf]).collect::<Vec<String>>();
    match tree {
        UseTree::Path(path) => {
            within.push(path.ident.to_string());
            leaves(&path.tree, within, exports);
            within.pop();
        }
        UseTree::Name(name) => exports.paths.push(path(name.ident.to_string())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, within, exports)),
        UseTree::Rename(name) => exports.wholes.push(path(name.ident.to_string()).join("::")),
        UseTree::Glob(_) => exports.wholes.push(path("*".to_string()).join("::")),
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

/// The macro that declares the type `name`, where its use begins with documentation and that name.
fn declaring_macro(file: &syn::File, name: &str) -> Option<String> {
    file.items.iter().find_map(|item| {
        let Item::Macro(item) = item else { return None };
        let mut tokens = item.mac.tokens.clone().into_iter();
        let first = tokens.find_map(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => Some(ident),
            _ => None,
        });
        let used = item.mac.path.segments.last()?.ident.to_string();
        (item.ident.is_none() && first.is_some_and(|first| first == name)).then_some(used)
    })
}

/// The tokens of a macro that one of the files declares, its documentation too.
fn text_of_macro(files: &[syn::File], name: &str) -> String {
    let declared = files.iter().flat_map(|file| &file.items).filter_map(|item| match item {
        Item::Macro(item) => {
            item.ident.as_ref().filter(|ident| *ident == name).map(|_| item.mac.tokens.to_string())
        }
        _ => None,
    });
    declared.collect()
}

/// True if the file declares a public constant or function called `name`: no type, and in need of no example.
fn has_value(file: &syn::File, name: &str) -> bool {
    file.items.iter().any(|item| match item {
        Item::Const(item) => item.ident == name && matches!(item.vis, Visibility::Public(_)),
        Item::Fn(item) => item.sig.ident == name && matches!(item.vis, Visibility::Public(_)),
        _ => false,
    })
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
        let paths: Vec<String> = exported(&front).paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["a::b::C", "a::b::d::E", "outcrop_base::H"]);
    }

    #[test]
    fn modules_of_the_page_are_followed_and_whole_crates_are_told() {
        let front =
            "pub mod m { pub use a::B; } mod n { pub use a::C; } pub use d as e; pub use f::*; pub mod g;";
        let exports = exported(&syn::parse_file(front).unwrap());
        assert_eq!(exports.paths, [["a", "B"]]);
        assert_eq!(exports.wholes, ["d", "f::*", "g"]);
    }

    #[test]
    fn what_is_no_type_is_a_constant_or_a_function_that_is_there() {
        let file = syn::parse_file("pub const A: u8 = 0; pub fn b() {} const C: u8 = 0;").unwrap();
        assert!(
            has_value(&file, "A")
                && has_value(&file, "b")
                && !has_value(&file, "C")
                && !has_value(&file, "D")
        );
    }

    #[test]
    fn types_that_a_macro_declares_have_its_example() {
        let file = "macro_rules! names { ($name:ident) => { /// ```\n/// ```\npub enum $name {} } }
            names! { /// Fruit.\n#[derive(Debug)] Fruit { Apple } } other! { Vegetable { Leek } }";
        let files = [syn::parse_file(file).unwrap()];
        let used = declaring_macro(&files[0], "Fruit").unwrap();
        assert!(text_of_macro(&files, &used).contains("```"));
        let other = declaring_macro(&files[0], "Vegetable").unwrap();
        assert_eq!(text_of_macro(&files, &other), "");
        assert_eq!(declaring_macro(&files[0], "Apple"), None);
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
