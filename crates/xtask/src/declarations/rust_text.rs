//! Writes declarations of C as Rust, as bindgen would: same types, same names of parameters.

use super::c_header::{Header, Parameter, Signature, Type};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The top of every file.
pub const TOP: &str = "// Made by `REWRITE=1 cargo xtask declarations`; not to be changed by hand.\n";

/// Names of parameters in C that are words of Rust.
const KEYWORDS: [&str; 10] =
    ["in", "type", "move", "priv", "ref", "match", "use", "final", "override", "where"];

/// The functions of an `extern` block, without the block.
pub fn functions(functions: &BTreeMap<String, Signature>) -> String {
    let mut text = String::new();
    for (name, signature) in functions {
        let parameters: Vec<String> = signature.parameters.iter().map(named).collect();
        let _ = writeln!(text, "pub fn {name}({}){};", parameters.join(", "), result(&signature.gives));
    }
    text
}

/// An `extern` block with them.
pub fn block(all: &BTreeMap<String, Signature>) -> String {
    if all.is_empty() {
        return String::new();
    }
    format!("unsafe extern \"C\" {{\n{}}}\n", functions(all))
}

/// The constants, of the type that C gives them here.
pub fn constants(constants: &BTreeMap<String, u32>) -> String {
    constants.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "pub const {name}: c_uint = {value};");
        text
    })
}

/// The types of `header`.
pub fn types(header: &Header) -> String {
    let mut text = String::new();
    for name in &header.opaque {
        let _ = writeln!(
            text,
            "#[repr(C)]\n#[derive(Copy, Clone)]\npub struct {name} {{\n    _unused: [u8; 0],\n}}"
        );
    }
    for (name, fields) in &header.structs {
        let _ = writeln!(text, "#[repr(C)]\n#[derive(Copy, Clone)]\npub struct {name} {{");
        for field in fields {
            let _ = writeln!(text, "    pub {},", named(field));
        }
        text.push_str("}\n");
    }
    for (name, signature) in &header.callbacks {
        let _ = writeln!(text, "pub type {name} = {};", callback(signature));
    }
    text
}

fn named(parameter: &Parameter) -> String {
    let name = match parameter.name.as_deref() {
        None => "_".to_string(),
        // As bindgen does it.
        Some(name) if KEYWORDS.contains(&name) => format!("{name}_"),
        Some(name) => name.to_string(),
    };
    format!("{name}: {}", of(&parameter.of))
}

fn of(kind: &Type) -> String {
    match kind {
        Type::Named(name) => name_in_rust(name).to_string(),
        Type::Pointer { to, is_const } => format!("*{} {}", if *is_const { "const" } else { "mut" }, of(to)),
        Type::Callback(signature) => callback(signature),
    }
}

fn callback(signature: &Signature) -> String {
    let parameters: Vec<String> = signature.parameters.iter().map(|parameter| of(&parameter.of)).collect();
    format!("Option<unsafe extern \"C\" fn({}){}>", parameters.join(", "), result(&signature.gives))
}

fn result(kind: &Type) -> String {
    match kind {
        Type::Named(name) if name == "void" => String::new(),
        kind => format!(" -> {}", of(kind)),
    }
}

fn name_in_rust(name: &str) -> &str {
    match name {
        "void" => "c_void",
        "char" => "c_char",
        "unsigned char" => "c_uchar",
        "int" => "c_int",
        "unsigned int" | "unsigned" => "c_uint",
        "unsigned long long" => "c_ulonglong",
        "unsigned long" => "c_ulong",
        "double" => "f64",
        "float" => "f32",
        "_Bool" => "bool",
        "size_t" => "usize",
        "int32_t" => "i32",
        "uint32_t" => "u32",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        "uint8_t" => "u8",
        name => name,
    }
}
