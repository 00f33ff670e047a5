//! Makes the exported symbol of every native method that a supported jar declares.
//!
//! ```text
//! natives/VERSION.txt   the natives of a jar: class, method, descriptor      (cargo xtask java --write)
//! calls.txt             which of them are answered, and by which call
//! c_api_11.8.1.txt      of crates/capi: the C functions that answer by their names
//!         |
//!         v
//! OUT_DIR/natives.rs    one function each; one without an answer throws RocksDBException "Not implemented: Class.method"
//! ```
//! The symbols carry the descriptor (`Java_..._put__J_3BII`): the JVM looks for that after the short name, and methods of the
//! same name stay apart. Rows of calls.txt:
//!
//! ```text
//! Class|Class.method(JZ)V = expression        in Rust; a0, a1, ... are the arguments, env the JVM, this the object
//! prefix Class|Class = rocksdb_name_          methods with numbers only become rocksdb_name_[set_|get_]method
//! each Class = expression                     methods without a row of their own; {} is the method's name in words
//! alias Class|Class.method = name             for a method whose function has another name: `set_` and `get_` go before it
//! ```
//! A method's name is taken without its ending `Jni`, which versions of RocksJava differ in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let read = |name: &str| {
        println!("cargo::rerun-if-changed={name}");
        let path = Path::new(&here).join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    println!("cargo::rerun-if-changed=natives");
    let mut natives = BTreeSet::new();
    let mut names: Vec<String> = std::fs::read_dir(Path::new(&here).join("natives"))
        .expect("the lists are there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    for name in &names {
        natives.extend(read(&format!("natives/{name}")).lines().map(Native::parse));
    }
    let calls = Calls::parse(&read("calls.txt"));
    let functions = functions(&read("../capi/c_api_11.8.1.txt"));
    let mut text = String::new();
    let mut used = BTreeSet::new();
    let mut answered = 0;
    for native in &natives {
        let answer = calls.answer(native, &functions, &mut used);
        answered += usize::from(answer.is_some());
        text += &native.function(answer.as_deref());
    }
    let unused: Vec<&String> =
        calls.expressions.keys().chain(calls.aliases.keys()).filter(|key| !used.contains(*key)).collect();
    assert!(unused.is_empty(), "calls.txt: no jar has these: {unused:#?}");
    let versions: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".txt")).collect();
    let _ = writeln!(
        text,
        "/// The jars whose natives are here.\npub(crate) const VERSIONS: &str = {:?};",
        versions.join(", ")
    );
    let _ = writeln!(
        text,
        "/// Natives, and those that do more than throw.\n#[cfg(test)]\npub(crate) const COUNTS: (usize, usize) = ({}, {answered});",
        natives.len()
    );
    let _ = writeln!(
        text,
        "/// `class method descriptor` of each native, in order.\npub(crate) const NATIVES: &[&str] = &["
    );
    for native in &natives {
        let _ = writeln!(text, "    {:?},", native.line());
    }
    text += "];\n";
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("natives.rs"), text).expect("OUT_DIR is writable");
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Native {
    /// As in class files: `org/rocksdb/RocksDB`.
    class: String,
    method: String,
    descriptor: String,
}

impl Native {
    fn parse(line: &str) -> Native {
        let mut cells = line.split(' ').map(ToString::to_string);
        let mut cell = || cells.next().unwrap_or_else(|| panic!("natives: {line}"));
        Native { class: cell(), method: cell(), descriptor: cell() }
    }

    fn line(&self) -> String {
        format!("{} {} {}", self.class, self.method, self.descriptor)
    }

    /// `RocksDB`, `WriteBatch$Handler`.
    fn short_class(&self) -> &str {
        self.class.strip_prefix("org/rocksdb/").unwrap_or(&self.class)
    }

    fn plain_method(&self) -> &str {
        self.method.strip_suffix("Jni").unwrap_or(&self.method)
    }

    fn symbol(&self) -> String {
        let arguments = self.descriptor[1..].split(')').next().unwrap_or_default();
        format!("Java_{}_{}__{}", mangled(&self.class), mangled(&self.method), mangled(arguments))
    }

    /// The types of the arguments and the answer.
    fn types(&self) -> Vec<&'static str> {
        let mut types = Vec::new();
        let mut rest = self.descriptor[1..].chars();
        while let Some(c) = rest.next() {
            types.push(match c {
                ')' => continue,
                'V' => "()",
                'J' => "jlong",
                'I' => "jint",
                'Z' => "jboolean",
                'B' => "jbyte",
                'D' => "jdouble",
                'C' => "jchar",
                'L' => {
                    rest.by_ref().find(|c| *c == ';');
                    "jobject"
                }
                '[' => {
                    let mut element = rest.next();
                    while element == Some('[') {
                        element = rest.next();
                    }
                    if element == Some('L') {
                        rest.by_ref().find(|c| *c == ';');
                    }
                    "jobject"
                }
                _ => panic!("{}: {c}", self.line()),
            });
        }
        types
    }

    fn function(&self, answer: Option<&str>) -> String {
        let types = self.types();
        let (given, arguments) = types.split_last().expect("there is an answer's type");
        let stub =
            format!("not_implemented::<{given}>({:?})", format!("{}.{}", self.short_class(), self.method));
        let parameters: String =
            arguments.iter().enumerate().fold(String::new(), |mut text, (place, kind)| {
                let _ = write!(text, ", a{place}: {kind}");
                text
            });
        format!(
            "#[unsafe(no_mangle)]\nunsafe extern \"system\" fn {}(env: *mut JNIEnv, this: jobject{parameters}) -> {given} {{\n    \
             enter(env, |env| {})\n}}\n",
            self.symbol(),
            answer.unwrap_or(&stub)
        )
    }
}

/// Names in symbols, by the rules of JNI.
fn mangled(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, c| {
        match c {
            '/' => text.push('_'),
            '_' => text += "_1",
            ';' => text += "_2",
            '[' => text += "_3",
            c if c.is_ascii_alphanumeric() => text.push(c),
            c => {
                let _ = write!(text, "_0{:04x}", u32::from(c));
            }
        }
        text
    })
}

#[derive(Default)]
struct Calls {
    /// By `Class.method(descriptor)`.
    expressions: BTreeMap<String, String>,
    prefixes: BTreeMap<String, String>,
    patterns: BTreeMap<String, String>,
    /// By `Class.method`.
    aliases: BTreeMap<String, String>,
}

impl Calls {
    fn parse(text: &str) -> Calls {
        let mut calls = Calls::default();
        for row in text.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
            let (left, right) = row.split_once(" = ").unwrap_or_else(|| panic!("calls.txt: {row}"));
            let (kind, left) = match left.split_once(' ') {
                Some((kind, left)) => (kind, left.trim()),
                None => ("", left.trim()),
            };
            let (classes, method) = left.split_once('.').unwrap_or((left, ""));
            for class in classes.split('|').map(ToString::to_string) {
                let key = format!("{class}.{method}");
                let (map, key) = match kind {
                    "prefix" => (&mut calls.prefixes, class),
                    "each" => (&mut calls.patterns, class),
                    "alias" => (&mut calls.aliases, key),
                    "" => (&mut calls.expressions, key),
                    _ => panic!("calls.txt: {row}"),
                };
                assert!(
                    map.insert(key.clone(), right.trim().to_string()).is_none(),
                    "calls.txt: {key} twice"
                );
            }
        }
        calls
    }

    /// The expression that answers `native`, if there is one.
    fn answer(
        &self,
        native: &Native,
        functions: &BTreeMap<String, Function>,
        used: &mut BTreeSet<String>,
    ) -> Option<String> {
        let own = format!("{}.{}", native.short_class(), native.plain_method());
        let key = format!("{own}{}", native.descriptor);
        if let Some(expression) = self.expressions.get(&key) {
            used.insert(key);
            return Some(expression.clone());
        }
        if let Some(pattern) = self.patterns.get(native.short_class()) {
            return Some(pattern.replace("{}", &snake(native.plain_method())));
        }
        let types = native.types();
        let prefix = self.prefixes.get(native.short_class())?;
        let arguments = &types[..types.len() - 1];
        if types.contains(&"jobject") {
            return None;
        }
        let names = match self.aliases.get(&own) {
            Some(alias) => {
                used.insert(own);
                vec![alias.clone()]
            }
            None => names(native.plain_method()),
        };
        let fits = |name: &String| {
            let name = format!("{prefix}{name}");
            let function = functions.get(&name)?;
            (function.arguments == arguments.len() && (function.gives == (types[arguments.len()] != "()")))
                .then_some((name, function.fails))
        };
        let (name, fails) = names.iter().find_map(fits)?;
        let mut passed: Vec<String> = (0..arguments.len()).map(|place| format!("to(a{place})")).collect();
        Some(if fails {
            passed.push("error".into());
            format!("checked(|error| unsafe {{ outcrop_capi::{name}({}) }})", passed.join(", "))
        } else {
            format!("Ok(unsafe {{ outcrop_capi::{name}({}) }})", passed.join(", "))
        })
    }
}

/// The names that the C function of a method may have, after its prefix.
fn names(method: &str) -> Vec<String> {
    let snake = snake(method);
    if method == "disposeInternal" {
        return vec!["destroy".into()];
    }
    if method.starts_with("new") {
        return vec!["create".into()];
    }
    let mut names = vec![snake.clone(), format!("get_{snake}")];
    names.extend(snake.strip_prefix("is_").map(|name| format!("get_{name}")));
    names
}

/// `maxBytesForLevelBase` as `max_bytes_for_level_base`.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| letters[before]);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || letters.get(place + 1).is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// A C function that takes numbers and handles only.
struct Function {
    /// Without the place for an error.
    arguments: usize,
    gives: bool,
    fails: bool,
}

fn functions(header: &str) -> BTreeMap<String, Function> {
    let mut functions = BTreeMap::new();
    for line in header.lines() {
        let Some((left, right)) = line.split_once('(') else { continue };
        let (Some((answer, name)), Some(arguments)) = (left.rsplit_once(' '), right.strip_suffix(')')) else {
            continue;
        };
        let mut arguments: Vec<&str> =
            arguments.split(',').map(str::trim).filter(|one| *one != "void" && !one.is_empty()).collect();
        let fails = arguments.pop_if(|last| *last == "char** errptr").is_some();
        let is_text = |text: &str| text.replace("unsigned char", "").contains("char") || text.contains("**");
        if name.starts_with("rocksdb_")
            && !right.contains('(')
            && !arguments.iter().any(|one| is_text(one))
            && !is_text(answer)
        {
            functions.insert(
                name.to_string(),
                Function { arguments: arguments.len(), gives: answer != "void", fails },
            );
        }
    }
    functions
}
