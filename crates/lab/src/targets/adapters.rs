//! Adapters: small C files that put an engine with an API of its own behind RocksDB's C API.
//!
//! An adapter is compiled on the user's machine, against the headers of the library it is used with: structures that
//! change between versions are then right by construction. An experiment names the compiled adapter by `library`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One adapter.
struct Adapter {
    engine: &'static str,
    source: &'static str,
}

const ADAPTERS: &[Adapter] =
    &[Adapter { engine: "splinterdb", source: include_str!("../../../lab-load/adapters/splinterdb.c") }];

/// Flags of `lab engines adapt`.
#[derive(Clone, Debug, clap::Args)]
pub struct AdaptArguments {
    /// The engine: splinterdb.
    pub engine: String,
    /// Directory of its headers, such as SOURCE/include.
    #[arg(long)]
    pub headers: PathBuf,
    /// Its shared library, such as SOURCE/build/release/lib/libsplinterdb.so.
    #[arg(long)]
    pub library: PathBuf,
    /// Where to put the adapter [default: libENGINE-lab.so].
    #[arg(short, long)]
    pub output: Option<PathBuf>,
}

/// Compiles an adapter with `$CC`, or `cc`; gives its path.
///
/// # Errors
/// One sentence, with the compiler's own words if it refused.
pub fn build(arguments: &AdaptArguments) -> Result<PathBuf, String> {
    let adapter = ADAPTERS.iter().find(|adapter| adapter.engine == arguments.engine).ok_or_else(|| {
        let known: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.engine).collect();
        format!("there is no adapter for {}; there is one for {}", arguments.engine, known.join(", "))
    })?;
    let library = existing(&arguments.library)?;
    let headers = existing(&arguments.headers)?;
    let default = PathBuf::from(format!("lib{}-lab.so", adapter.engine));
    let output = arguments.output.clone().unwrap_or(default);
    let source = output.with_extension("c");
    std::fs::write(&source, adapter.source).map_err(|error| format!("{}: {error}", source.display()))?;
    let compiled = compile(&source, &headers, &library, &output);
    // The source is in this program; beside its library it would only be asked about.
    let _ = std::fs::remove_file(&source);
    compiled?;
    std::path::absolute(&output).map_err(|error| format!("{}: {error}", output.display()))
}

fn existing(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

fn compile(source: &Path, headers: &Path, library: &Path, output: &Path) -> Result<(), String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let include = format!("-I{}", headers.display());
    // The adapter finds its library again where it is now.
    let place = library.parent().map_or(String::new(), |dir| format!("-Wl,-rpath,{}", dir.display()));
    let ran = Command::new(&compiler)
        .args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden", &include, "-o"])
        .args([output, source, library])
        .args(["-lpthread", &place])
        .output()
        .map_err(|error| format!("cannot run the C compiler {compiler} ({error}); install one, or set CC"))?;
    if ran.status.success() {
        return Ok(());
    }
    Err(format!("{compiler} refused the adapter: {}", String::from_utf8_lossy(&ran.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_before_anything_is_written() {
        let temp = tempfile::tempdir().unwrap();
        let arguments = |engine: &str, library: &str| AdaptArguments {
            engine: engine.to_string(),
            headers: temp.path().to_path_buf(),
            library: temp.path().join(library),
            output: Some(temp.path().join("out.so")),
        };
        assert!(build(&arguments("wiredtiger", "x")).unwrap_err().contains("there is one for splinterdb"));
        assert!(build(&arguments("splinterdb", "libnone.so")).unwrap_err().contains("libnone.so"));
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_compiler_s_words_are_passed_on() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("lib.so"), "").unwrap();
        let arguments = AdaptArguments {
            engine: "splinterdb".to_string(),
            headers: temp.path().to_path_buf(),
            library: temp.path().join("lib.so"),
            output: Some(temp.path().join("out.so")),
        };
        let error = build(&arguments).unwrap_err();
        assert!(error.contains("splinterdb.h") || error.contains("cannot run the C compiler"), "{error}");
        assert!(!temp.path().join("out.c").exists());
    }
}
