//! Reads RocksDB's `c.h`, of any version: the part of C that it is written in.
//!
//! Comments, preprocessor lines and `extern "C"` are dropped; the rest is cut at the semicolons outside of braces. A declaration
//! that does not fit is an error that names it: nothing is left out silently.

use std::collections::BTreeMap;

/// A type as C spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `unsigned char`, `size_t`, `rocksdb_t`.
    Named(String),
    /// A pointer, and whether what it points to is `const`.
    Pointer { to: Box<Type>, is_const: bool },
    /// A pointer to a function.
    Callback(Box<Signature>),
}

/// Arguments and result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub parameters: Vec<Parameter>,
    pub gives: Type,
}

/// A parameter; its name, which C may omit, does not make functions differ.
#[derive(Clone, Debug, Eq)]
pub struct Parameter {
    pub name: Option<String>,
    pub of: Type,
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Parameter) -> bool {
        self.of == other.of
    }
}

/// All that a header declares.
#[derive(Debug, Default)]
pub struct Header {
    pub functions: BTreeMap<String, Signature>,
    pub constants: BTreeMap<String, u32>,
    /// Callback types by name.
    pub callbacks: BTreeMap<String, Signature>,
    /// Structs with fields.
    pub structs: BTreeMap<String, Vec<Parameter>>,
    /// Structs without.
    pub opaque: Vec<String>,
}

/// Reads the text of a header.
///
/// # Errors
/// The first declaration that is written in another form.
pub fn parse(text: &str) -> Result<Header, String> {
    let mut header = Header::default();
    for declaration in declarations(&without_comments(text)) {
        let tokens = tokens(&declaration);
        let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
        header.add(&words).map_err(|why| format!("c.h: {why}: {declaration}"))?;
    }
    Ok(header)
}

impl Header {
    fn add(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["enum", "{", constants @ .., "}"] => self.add_constants(constants),
            ["typedef", "struct", _, "{", fields @ .., "}", name] => {
                let fields = fields.split(|word| *word == ";").filter(|field| !field.is_empty());
                let fields = fields.map(parameter).collect::<Result<_, _>>()?;
                self.structs.insert(name.to_string(), fields);
                Ok(())
            }
            ["typedef", "struct", _, name] => {
                self.opaque.push(name.to_string());
                Ok(())
            }
            ["typedef", rest @ ..] => match parameter(rest)? {
                Parameter { name: Some(name), of: Type::Callback(signature) } => {
                    self.callbacks.insert(name, *signature);
                    Ok(())
                }
                _ => Err("a type of another form".into()),
            },
            _ => {
                let words = words.strip_prefix(&["extern"]).unwrap_or(words);
                let (name, signature) = function(words)?;
                self.functions.insert(name, signature);
                Ok(())
            }
        }
    }

    fn add_constants(&mut self, words: &[&str]) -> Result<(), String> {
        let mut next = 0;
        for constant in words.split(|word| *word == ",").filter(|constant| !constant.is_empty()) {
            let number = |word: &str| {
                let known = self.constants.get(word).copied();
                let written = match word.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => word.parse().ok(),
                };
                known.or(written).ok_or_else(|| format!("{word} is no number"))
            };
            let value = match constant {
                [_] => next,
                [_, "=", value] => number(value)?,
                [_, "=", value, "<", "<", shift] => number(value)? << number(shift)?,
                _ => return Err("a constant of another form".into()),
            };
            self.constants.insert(constant[0].to_string(), value);
            next = value + 1;
        }
        Ok(())
    }
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(start) = rest.find("/*") {
        kept.push_str(&rest[..start]);
        rest = rest[start..].find("*/").map_or("", |end| &rest[start + end + 2..]);
    }
    kept.push_str(rest);
    let lines = kept.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines = lines.filter(|line| !line.starts_with('#') && line.trim() != "extern \"C\" {");
    let kept: Vec<&str> = lines.collect();
    kept.join("\n").replace("ROCKSDB_LIBRARY_API", " ")
}

/// Cuts at semicolons outside of braces. The brace that closes `extern "C"` is left over at the end.
fn declarations(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0_i32;
    for letter in text.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match letter {
            ';' if depth == 0 => all.push(String::new()),
            '\n' => all.last_mut().expect("one is there").push(' '),
            _ => all.last_mut().expect("one is there").push(letter),
        }
    }
    all.retain(|declaration| !matches!(declaration.trim(), "" | "}"));
    all
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in text.chars() {
        let wordly = letter.is_ascii_alphanumeric() || letter == '_';
        match tokens.last_mut() {
            Some(word) if wordly && in_word => word.push(letter),
            _ if letter.is_whitespace() => {}
            _ => tokens.push(letter.to_string()),
        }
        in_word = wordly;
    }
    tokens
}

/// `type name(parameters)`.
fn function(words: &[&str]) -> Result<(String, Signature), String> {
    let open = words.iter().position(|word| *word == "(").ok_or("no function")?;
    let [before @ .., name] = &words[..open] else { return Err("a function without a name".into()) };
    let (gives, rest) = specifier(before)?;
    if !rest.is_empty() {
        return Err("a result of another form".into());
    }
    let [parameters @ .., ")"] = &words[open + 1..] else { return Err("no end of parameters".into()) };
    Ok((name.to_string(), Signature { parameters: parameters_of(parameters)?, gives }))
}

fn parameters_of(words: &[&str]) -> Result<Vec<Parameter>, String> {
    if matches!(words, [] | ["void"]) {
        return Ok(Vec::new());
    }
    let mut depth = 0;
    let mut all = vec![Vec::new()];
    for word in words {
        depth += i32::from(*word == "(") - i32::from(*word == ")");
        match *word {
            "," if depth == 0 => all.push(Vec::new()),
            word => all.last_mut().expect("one is there").push(word),
        }
    }
    all.iter().map(|words| parameter(words)).collect()
}

/// `type`, `type name`, `type name[]`, `type (*name)(parameters)`.
fn parameter(words: &[&str]) -> Result<Parameter, String> {
    let (of, rest) = specifier(words)?;
    let plain = |name: Option<&&str>, of| Ok(Parameter { name: name.map(ToString::to_string), of });
    match rest {
        [] => plain(None, of),
        [name] => plain(Some(name), of),
        [name, "[", .., "]"] => {
            // `const` before a name with brackets is about the elements.
            plain(Some(name), Type::Pointer { to: Box::new(of), is_const: ends_const(words) })
        }
        ["(", "*", name, ")", "(", parameters @ .., ")"] => {
            let signature = Signature { parameters: parameters_of(parameters)?, gives: of };
            plain(Some(name), Type::Callback(Box::new(signature)))
        }
        ["(", "*", ")", "(", parameters @ .., ")"] => {
            let signature = Signature { parameters: parameters_of(parameters)?, gives: of };
            plain(None, Type::Callback(Box::new(signature)))
        }
        _ => Err("a parameter of another form".into()),
    }
}

/// Whether the type before the name of an array ends with `const`: its elements are constant then.
fn ends_const(words: &[&str]) -> bool {
    let brackets = words.iter().position(|word| *word == "[").unwrap_or(words.len());
    let of = &words[..brackets.saturating_sub(1)];
    of.last() == Some(&"const") || (!of.contains(&"*") && of.first() == Some(&"const"))
}

/// The type that `words` begin with, and the words after it.
fn specifier<'a>(words: &'a [&'a str]) -> Result<(Type, &'a [&'a str]), String> {
    const OF_C: [&str; 9] = ["unsigned", "signed", "char", "short", "int", "long", "float", "double", "void"];
    let mut at = 0;
    let mut is_const = false;
    let mut name: Vec<&str> = Vec::new();
    while let Some(word) = words.get(at) {
        match *word {
            "const" => is_const = true,
            "struct" => {}
            word if OF_C.contains(&word) => name.push(word),
            word if name.is_empty() && word.starts_with(|c: char| c.is_ascii_alphabetic()) => name.push(word),
            _ => break,
        }
        at += 1;
    }
    if name.is_empty() {
        return Err("no type".into());
    }
    let mut of = Type::Named(name.join(" "));
    while words.get(at) == Some(&"*") {
        of = Type::Pointer { to: Box::new(of), is_const };
        at += 1;
        is_const = words.get(at) == Some(&"const");
        at += usize::from(is_const);
    }
    Ok((of, &words[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> String {
        let header = parse(text).unwrap();
        super::super::rust_text::functions(&header.functions)
    }

    #[test]
    fn pointers_arrays_and_callbacks_are_those_that_bindgen_writes() {
        assert_eq!(only("extern ROCKSDB_LIBRARY_API void f(void);"), "pub fn f();\n");
        assert_eq!(
            only("extern const char* const* g(const char* const keys[], size_t n, char** e);"),
            "pub fn g(keys: *const *const c_char, n: usize, e: *mut *mut c_char) -> *const *const c_char;\n"
        );
        assert_eq!(
            only("extern t* h(void*, unsigned char (*less)(void*, const char*), void (*)(void));"),
            "pub fn h(_: *mut c_void, less: Option<unsafe extern \"C\" fn(*mut c_void, *const c_char) -> c_uchar>, \
             _: Option<unsafe extern \"C\" fn()>) -> *mut t;\n"
        );
        assert_eq!(
            only("extern void k(const uint32_t ids[], int in);"),
            "pub fn k(ids: *const u32, in_: c_int);\n"
        );
    }

    #[test]
    fn what_is_written_in_another_form_is_an_error() {
        for text in
            ["extern int (*f(int))(int);", "typedef int number;", "enum { a = b };", "union u f(void);"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn constants_count_on_and_refer_to_others() {
        let header = parse("enum { a = 0x1 << 2, b, c = a, };").unwrap();
        assert_eq!(header.constants.into_values().collect::<Vec<_>>(), [4, 5, 4]);
    }
}
