//! Which engines can be measured, what their libraries can do, and which allocators can be put under them.
//!
//! Capabilities are read from a library's symbol table: nothing of it runs.
//! Next: `maven.rs` for how libraries are fetched and checked.

use crate::report::text::paragraph;
use crate::targets::build::{self, Recipe};
use crate::targets::maven;
use object::{Object, ObjectSymbol};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The features of a library.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Capabilities {
    /// Exported functions whose names begin with `rocksdb_`.
    pub rocksdb_functions: usize,
    /// Whether it is LevelDB, driven through its own functions.
    pub leveldb: bool,
    /// Whether it is an adapter that puts another engine behind RocksDB's functions.
    pub adapter: bool,
    /// Functions the load generator needs and the library lacks.
    pub missing: Vec<String>,
    /// Functions that change how an engine is driven, and are there.
    pub optional: Vec<&'static str>,
}

/// Functions worth knowing of, and what they are for.
pub const OPTIONAL: &[(&str, &str)] = &[
    ("rocksdb_cache_create_hyper_clock", "clock cache"),
    ("rocksdb_get_options_from_string", "text options"),
    ("rocksdb_batched_multi_get_cf", "multiget"),
    ("rocksdb_transactiondb_open", "transactions"),
    ("rocksdb_wait_for_compact", "wait"),
    ("rocksdb_compact_files", "compact files"),
    ("rocksdb_options_set_enable_blob_files", "blobs"),
];

/// Names the load generator can do without.
fn is_optional(name: &str) -> bool {
    outcrop_lab_load::ffi::OPTIONAL.contains(&name)
}

impl Capabilities {
    /// Reads the symbol table of the library at `path`.
    ///
    /// # Errors
    /// A sentence naming the file, if it is no library.
    pub fn probe(path: &Path) -> Result<Capabilities, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut names: Vec<&str> = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| symbol.name().ok())
            .collect();
        names.sort_unstable();
        let has = |name: &str| names.binary_search(&name).is_ok();
        macro_rules! needed {
            ($($name:ident,)*) => { [$(stringify!($name)),*] };
        }
        let needed = outcrop_lab_load::for_each_function!(needed);
        let leveldb = has("leveldb_open") && !has("rocksdb_open");
        if leveldb {
            return Ok(Capabilities { leveldb, ..Capabilities::default() });
        }
        Ok(Capabilities {
            leveldb,
            adapter: has("outcrop_lab_adapter"),
            rocksdb_functions: names.iter().filter(|name| name.starts_with("rocksdb_")).count(),
            missing: needed
                .into_iter()
                .filter(|name| !is_optional(name) && !has(name))
                .map(ToString::to_string)
                .collect(),
            optional: OPTIONAL.iter().map(|(name, _)| *name).filter(|name| has(name)).collect(),
        })
    }

    /// Whether the load generator can drive it.
    pub fn can_be_driven(&self) -> bool {
        self.missing.is_empty()
    }

    /// In a few words.
    pub fn words(&self) -> String {
        if !self.can_be_driven() {
            let more = self.missing.len() - 1;
            return format!("cannot be driven: no {} and {more} more", self.missing[0]);
        }
        if self.leveldb {
            return "LevelDB's own functions; a WAL always, Snappy or no compression".to_string();
        }
        if self.adapter {
            return "an adapter: another engine behind RocksDB's functions".to_string();
        }
        let words = OPTIONAL.iter().filter(|(name, _)| self.optional.contains(name)).map(|(_, word)| *word);
        format!("{} functions: {}", self.rocksdb_functions, words.collect::<Vec<_>>().join(", "))
    }
}

/// One line of `lab engines list`.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// `name@version`.
    pub name: String,
    /// Coordinates, or the command that installs it.
    pub source: String,
    /// The library, if it is here.
    pub path: Option<PathBuf>,
    /// Its features, if it is here.
    pub capabilities: Option<Capabilities>,
}

/// Every engine of the catalogue, in the order of its file.
pub fn list() -> Vec<Listed> {
    let cached = |name: &str, version: &str| {
        let path = maven::cache_dir().ok()?.join(format!("lib{name}-{version}.so"));
        path.exists().then_some(path)
    };
    // A lock file that cannot be read is said where something is fetched.
    let own = maven::own_engines().unwrap_or_default();
    let fetched = maven::locked_engines().into_iter().chain(own).map(|engine| {
        let path = cached(&engine.name, &engine.version);
        (format!("{}@{}", engine.name, engine.version), engine.artifact, path)
    });
    let installed = maven::installed_engines().into_iter().map(|engine| {
        let path = engine.paths.iter().find(|path| path.exists()).cloned();
        (format!("{}@{}", engine.name, engine.version), engine.install, path)
    });
    let made = build::list().into_iter().map(|made| {
        let Recipe { engine, version, .. } = &made.recipe;
        let name = made.name.as_deref().unwrap_or("unnamed");
        let name = version.as_ref().map_or(format!("{engine}@{name}"), |v| format!("{engine}@{v}-{name}"));
        (name, made.recipe.words(), Some(made.library).filter(|path| path.exists()))
    });
    fetched
        .chain(installed)
        .chain(made)
        .map(|(name, source, path)| {
            let capabilities = path.as_deref().and_then(|path| Capabilities::probe(path).ok());
            Listed { name, source, path, capabilities }
        })
        .collect()
}

/// The catalogue for people, at most 80 columns.
pub fn text(listed: &[Listed]) -> String {
    let mut text = String::new();
    for engine in listed {
        let state = match (&engine.path, &engine.capabilities) {
            (Some(_), Some(capabilities)) => format!("here; {}", capabilities.words()),
            (Some(path), None) => format!("{} is not a library", path.display()),
            (None, _) if engine.source.contains(' ') => format!("not here: {}", engine.source),
            (None, _) => format!("not here: outcrop lab engines fetch {}", engine.name),
        };
        text.push_str(&paragraph(&format!("{:<18} ", engine.name), &state, 19));
    }
    text.push('\n');
    for (name, how) in [
        ("outcrop", "is linked into this program"),
        ("another version", "outcrop lab engines fetch rocksdb@VERSION, if Maven has it"),
        (
            "from sources",
            "outcrop lab engines build rocksdb@VERSION --compiler clang-19 --lto thin --name NAME",
        ),
        ("another build", "engine = \"NAME\" and library = \"PATH\" in an experiment's [[target]]"),
        (
            "splinterdb",
            "a build of your own, after: outcrop lab engines adapt splinterdb --headers DIR --library FILE",
        ),
    ] {
        text.push_str(&paragraph(&format!("{name:<18} "), how, 19));
    }
    text
}

/// Fetches `names`, each `name@version`, or the whole catalogue if none is named.
///
/// # Errors
/// The first that cannot be had, with what to do.
pub fn fetch(names: &[String]) -> Result<Vec<(String, PathBuf)>, String> {
    let all: Vec<String>;
    let names = if names.is_empty() {
        let own = maven::own_engines().map_err(|error| error.to_string())?;
        let engines = maven::locked_engines().into_iter().chain(own);
        all = engines.map(|engine| format!("{}@{}", engine.name, engine.version)).collect();
        &all
    } else {
        names
    };
    let fetched = names.iter().map(|name| {
        let (engine, version) =
            name.split_once('@').ok_or_else(|| format!("{name}: engines are named NAME@VERSION"))?;
        let path = maven::obtain(engine, version).map_err(|error| error.to_string())?;
        Ok((name.clone(), path))
    });
    fetched.collect()
}

/// The library to preload for an allocator; `None` for the system's own.
///
/// # Errors
/// A sentence that says how to get it.
pub fn allocator(name: &str) -> Result<Option<PathBuf>, String> {
    const PLACES: [&str; 5] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/lib",
    ];
    let (files, package): (&[&str], &str) = match name {
        "system" => return Ok(None),
        "jemalloc" => (&["libjemalloc.so.2"], "libjemalloc2"),
        "tcmalloc" => (&["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"], "libtcmalloc-minimal4"),
        path if path.contains('/') && Path::new(path).exists() => return Ok(Some(PathBuf::from(path))),
        other => {
            return Err(format!(
                "allocator {other}: use system, jemalloc, tcmalloc or the path of a library"
            ));
        }
    };
    let found = PLACES
        .iter()
        .flat_map(|place| files.iter().map(move |file| Path::new(place).join(file)))
        .find(|path| path.exists());
    found
        .map(Some)
        .ok_or_else(|| format!("allocator {name} is not installed; on Debian: apt-get install {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"not a library").unwrap();
        let error = Capabilities::probe(file.path()).unwrap_err();
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }

    #[test]
    fn a_program_without_the_functions_cannot_be_driven() {
        let own = Capabilities::probe(&std::env::current_exe().unwrap()).unwrap();
        assert!(!own.can_be_driven());
        assert!(own.missing.contains(&"rocksdb_open".to_string()));
        assert!(!own.missing.contains(&"rocksdb_cache_create_hyper_clock".to_string()));
        assert!(own.words().starts_with("cannot be driven"));
    }

    #[test]
    fn the_catalogue_lists_every_engine_and_where_it_comes_from() {
        let listed = list();
        assert!(listed.iter().any(|engine| engine.name == "rocksdb@11.8.1"));
        assert!(listed.iter().any(|engine| engine.name == "leveldb@1.23"));
        assert!(listed.iter().all(|engine| !engine.source.is_empty()));
    }

    #[test]
    fn an_unknown_allocator_is_answered_with_the_known() {
        assert_eq!(allocator("system").unwrap(), None);
        assert!(allocator("mimallocc").unwrap_err().contains("jemalloc"));
    }
}
