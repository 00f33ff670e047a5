//! The committed list of RocksDB's C API, and what is made from it: the header, and the page that says what of it is
//! provided. `REWRITE=1 cargo test -p outcrop-capi` writes both anew; the difference is reviewed.

use crate::library::outcrop_library;
use libloading::Library;
use outcrop_capi::settings::{Fate, Note};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One function of RocksDB's.
pub struct Function {
    pub name: String,
    pub declaration: String,
}

pub struct Area {
    name: String,
    pub functions: Vec<Function>,
}

/// The committed list.
pub struct Api {
    /// Declarations of types and constants, without the opaque types.
    types: Vec<String>,
    pub areas: Vec<Area>,
}

fn crate_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

pub fn read_list() -> Api {
    let text = std::fs::read_to_string(crate_dir().join("c_api_11.8.1.txt")).unwrap();
    let mut api = Api { types: Vec::new(), areas: Vec::new() };
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("## ") {
            api.areas.push(Area { name: name.to_string(), functions: Vec::new() });
        } else if line.starts_with("# ") {
            continue;
        } else if ["typedef ", "enum ", "struct "].iter().any(|start| line.starts_with(start)) {
            api.types.push(line.to_string());
        } else {
            let (before, _) = line.split_once('(').expect("a function has arguments");
            let name = before.rsplit([' ', '*']).next().unwrap().to_string();
            let area = api.areas.last_mut().expect("functions stand in an area");
            area.functions.push(Function { name, declaration: line.to_string() });
        }
    }
    api.areas.retain(|area| !area.functions.is_empty());
    api
}

/// The names the library exports, of those asked about.
fn exported(names: impl Iterator<Item = String>) -> BTreeSet<String> {
    // SAFETY: the library runs no code of note when loaded; the symbols are not called.
    unsafe {
        let library = Library::new(outcrop_library()).unwrap();
        names.filter(|name| library.get::<*const ()>(name.as_bytes()).is_ok()).collect()
    }
}

fn names(api: &Api) -> impl Iterator<Item = String> {
    api.areas.iter().flat_map(|area| area.functions.iter().map(|function| function.name.clone()))
}

/// Compares `path` with what it should hold, or writes it if REWRITE is set.
fn check_file(path: &Path, expected: &str) {
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap();
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{}: not what the list and the library say (REWRITE=1 writes it anew); first difference: {differs:?}",
        path.display()
    );
}

/// `declaration` over several lines if it is long.
fn wrapped(declaration: &str) -> String {
    if declaration.len() <= 99 {
        return format!("{declaration};\n");
    }
    let (open, close) = if declaration.starts_with("enum") || declaration.starts_with("struct") {
        ('{', '}')
    } else {
        ('(', ')')
    };
    let start = declaration.find(open).unwrap();
    let end = declaration.rfind(close).unwrap();
    let mut text = format!("{}\n", &declaration[..=start]);
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for c in declaration[start + 1..end].chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    for (i, part) in parts.iter().enumerate() {
        let comma = if i + 1 < parts.len() { "," } else { "" };
        let _ = write!(text, "    {part}{comma}");
        text.push_str(if i + 1 < parts.len() || open == '{' { "\n" } else { "" });
    }
    let _ = writeln!(text, "{};", &declaration[end..]);
    text
}

fn header(api: &Api, exported: &BTreeSet<String>) -> String {
    let mut text = String::from(
        "/* The part of RocksDB's C API that Outcrop provides, with the same names, ownership and errors.\n \
         * Generated from c_api_11.8.1.txt; what each function does is said in docs/capi.md.\n *\n \
         * Objects from a create or open function are freed by the matching destroy or close function; strings and\n \
         * values without one are freed by rocksdb_free. A function with an errptr stores a malloc'ed message there\n \
         * on failure; *errptr must be NULL or such a message before the call.\n */\n\
         #ifndef OUTCROP_ROCKSDB_C_H\n#define OUTCROP_ROCKSDB_C_H\n\n\
         #include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    );
    for name in opaque_types(api) {
        let _ = writeln!(text, "typedef struct {name} {name};");
    }
    text.push('\n');
    for declaration in &api.types {
        match declaration.strip_prefix("struct ") {
            Some(rest) => {
                let (name, fields) = rest.split_once(' ').unwrap();
                let _ =
                    writeln!(text, "typedef struct {name} {} {name};", fields.trim().replace("; }", ";\n}"));
            }
            None => text.push_str(&wrapped(declaration)),
        }
    }
    for area in &api.areas {
        let functions: Vec<_> =
            area.functions.iter().filter(|function| exported.contains(&function.name)).collect();
        if !functions.is_empty() {
            let _ = write!(text, "\n/* {} */\n\n", area.name);
        }
        for function in functions {
            text.push_str(&wrapped(&format!("extern {}", function.declaration)));
        }
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

/// Types that declarations name and nothing defines.
fn opaque_types(api: &Api) -> BTreeSet<String> {
    let functions = api.areas.iter().flat_map(|area| &area.functions).map(|function| &function.declaration);
    let text: String = functions.chain(&api.types).flat_map(|line| [line.as_str(), "\n"]).collect();
    let defined = |word: &str| api.types.iter().any(|line| line.starts_with(&format!("struct {word} ")));
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("rocksdb_") && word.ends_with("_t") && !defined(word))
        .map(str::to_string)
        .collect()
}

const GENERATED: &str =
    "<!-- Below: made from crates/capi/c_api_11.8.1.txt by `REWRITE=1 cargo test -p outcrop-capi`. -->\n";

fn page(api: &Api, exported: &BTreeSet<String>, written_by_hand: &str) -> String {
    let notes: HashMap<&str, &Note> = outcrop_capi::notes().map(|note| (note.function, note)).collect();
    let mut text = format!("{written_by_hand}{GENERATED}\n## Counts\n\n");
    text.push_str("| area | functions | provided | kept only | accepted | checked | refused | missing |\n|---|---|---|---|---|---|---|---|\n");
    let mut totals = [0; 7];
    let mut lists = String::new();
    for area in &api.areas {
        let counts = describe_area(&mut lists, area, exported, &notes);
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        let _ = writeln!(text, "| {} | {} |", area.name, counts.map(|count| count.to_string()).join(" | "));
    }
    let _ = writeln!(text, "| **all** | {} |", totals.map(|count| count.to_string()).join(" | "));
    text + &lists
}

/// Appends the area's lists; gives how many functions there are, and how many of each fate.
fn describe_area(
    text: &mut String,
    area: &Area,
    exported: &BTreeSet<String>,
    notes: &HashMap<&str, &Note>,
) -> [usize; 7] {
    let mut provided = Vec::new();
    let mut missing = Vec::new();
    let mut others: BTreeMap<(u8, &str), Vec<&str>> = BTreeMap::new();
    for function in &area.functions {
        let name = function.name.as_str();
        match notes.get(name) {
            _ if !exported.contains(name) => missing.push(name),
            None => provided.push(name),
            Some(note) => others.entry((note.fate as u8, note.why)).or_default().push(name),
        }
    }
    let _ = write!(text, "\n## {}\n\n", area.name);
    let list = |names: &[&str]| {
        names.iter().map(|name| format!("`{}`", &name["rocksdb_".len()..])).collect::<Vec<_>>().join(", ")
    };
    if !provided.is_empty() {
        let _ = write!(text, "Provided: {}.\n\n", list(&provided));
    }
    for ((fate, why), names) in &others {
        let fate = ["Accepted", "Checked", "Refused", "Kept only"][*fate as usize];
        let _ = write!(text, "{fate}, {why}: {}.\n\n", list(names));
    }
    if !missing.is_empty() {
        let _ = write!(text, "Missing, they are not in RocksDB's header: {}.\n\n", list(&missing));
    }
    text.pop();
    let of = |wanted: Fate| {
        others.iter().filter(|((fate, _), _)| *fate == wanted as u8).map(|(_, names)| names.len()).sum()
    };
    [
        area.functions.len(),
        provided.len(),
        of(Fate::Kept),
        of(Fate::Accepted),
        of(Fate::Checked),
        of(Fate::Refused),
        missing.len(),
    ]
}

#[test]
fn header_and_page_are_what_the_list_and_the_library_say() {
    let api = read_list();
    let exported = exported(names(&api));
    check_file(&crate_dir().join("include/rocksdb/c.h"), &header(&api, &exported));
    let path = crate_dir().join("../../docs/capi.md");
    let current = std::fs::read_to_string(&path).unwrap();
    let by_hand = current.split(GENERATED).next().unwrap();
    check_file(&path, &page(&api, &exported, by_hand));
}

#[test]
fn every_note_is_about_a_function_of_the_list_that_is_exported() {
    let api = read_list();
    let exported = exported(names(&api));
    let mut seen = BTreeSet::new();
    for note in outcrop_capi::notes() {
        assert!(exported.contains(note.function), "{} is not exported, or not in the list", note.function);
        assert!(seen.insert(note.function), "{} has two notes", note.function);
    }
}

/// All that may be missing: helpers of RocksDB's own code that its library exports by accident.
const NOT_IN_THE_HEADER: [&str; 2] =
    ["rocksdb_filterpolicy_create_bloom_format", "rocksdb_filterpolicy_create_ribbon_format"];

#[test]
fn bindings_find_every_function_of_rocksdbs_header() {
    let api = read_list();
    let exported = exported(names(&api));
    let missing: Vec<String> = names(&api).filter(|name| !exported.contains(name)).collect();
    assert!(missing == NOT_IN_THE_HEADER, "{} missing, {:?} first", missing.len(), missing.first());
    assert!(exported.len() > 1700, "only {} functions in the list", exported.len());
}
