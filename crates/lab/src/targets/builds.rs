//! The facts that a library states about its build: compilers, the libraries it needs, its size. Read from its ELF
//! sections; nothing of it runs.

use crate::targets::build::Recipe;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, Object, ObjectSection};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How an engine was built, as far as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    /// Bytes of the file.
    pub bytes: u64,
    /// The marks that compilers and linkers left, each once, such as `GCC: (GNU) 12.2.0`. Linked parts may have
    /// others than the rest.
    pub compilers: Vec<String>,
    /// Libraries that are loaded with it: others are linked in.
    pub libraries: Vec<String>,
    /// Its ingredients, if the lab made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
}

impl Built {
    /// Reads the file at `path`; a fact that it does not state is empty.
    pub fn read(path: &Path) -> Built {
        let bytes = std::fs::read(path).unwrap_or_default();
        Built {
            bytes: bytes.len() as u64,
            compilers: compilers(&bytes).unwrap_or_default(),
            libraries: libraries(&bytes).unwrap_or_default(),
            recipe: None,
        }
    }

    /// In a line.
    pub fn words(&self) -> String {
        let list = |names: &[String]| if names.is_empty() { "unknown".to_string() } else { names.join(", ") };
        let found =
            format!("{} MB, by {}; needs {}", self.bytes >> 20, list(&self.compilers), list(&self.libraries));
        match &self.recipe {
            Some(recipe) => format!("made here by {}; {found}", recipe.words()),
            None => found,
        }
    }
}

/// The texts of the section `.comment`.
fn compilers(bytes: &[u8]) -> Option<Vec<String>> {
    let file = object::File::parse(bytes).ok()?;
    let section = file.section_by_name(".comment")?;
    let mut found: Vec<String> = Vec::new();
    for text in section.data().ok()?.split(|byte| *byte == 0).filter(|text| !text.is_empty()) {
        let text = String::from_utf8_lossy(text).into_owned();
        if !found.contains(&text) {
            found.push(text);
        }
    }
    Some(found)
}

/// The names that the dynamic section asks for.
fn libraries(bytes: &[u8]) -> Option<Vec<String>> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let (entries, link) = sections.dynamic(endian, bytes).ok()??;
    let strings = sections.strings(endian, bytes, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let name = |entry: &object::elf::Dyn64<Endianness>| {
        Some(String::from_utf8_lossy(strings.get(entry.val32(endian)?).ok()?).into_owned())
    };
    Some(needed.filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_says_what_built_it_and_what_is_no_library_says_nothing() {
        let own = Built::read(Path::new("/proc/self/exe"));
        assert!(own.compilers.iter().any(|name| name.starts_with("rustc version")), "{own:?}");
        assert!(
            own.libraries.iter().any(|name| name.starts_with("libc.so")) && own.bytes > 1 << 20,
            "{own:?}"
        );
        assert!(own.words().contains("libc.so") && own.words().contains("rustc"));
        assert_eq!(Built::read(Path::new("/no/such.so")), Built::default());
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x.so");
        std::fs::write(&path, b"\x7fELF\x02\x01\x01 and then nothing of use").unwrap();
        let broken = Built::read(&path);
        assert!(
            broken.compilers.is_empty() && broken.libraries.is_empty() && broken.words().contains("unknown")
        );
    }
}
