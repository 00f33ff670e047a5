//! A C++ compiler: found by name, asked what it is and what it knows, and the flags that RocksDB is compiled with.

use super::Wanted;
use super::sources::Sources;
use std::io::Write;
use std::process::{Command, Stdio};

/// Codecs that experiments ask for: the macro that switches each on, its header, its library.
const CODECS: [(&str, &str, &str); 3] =
    [("SNAPPY", "snappy.h", "snappy"), ("LZ4", "lz4.h", "lz4"), ("ZSTD", "zstd.h", "zstd")];

/// The definitions that RocksDB's own build derives for Linux and for every compiler that is accepted here.
const DEFINES: [&str; 14] = [
    "-DNDEBUG",
    "-DOS_LINUX",
    "-DROCKSDB_PLATFORM_POSIX",
    "-DROCKSDB_LIB_IO_POSIX",
    "-DROCKSDB_SCHED_GETCPU_PRESENT",
    "-DROCKSDB_AUXV_GETAUXVAL_PRESENT",
    "-DROCKSDB_FALLOCATE_PRESENT",
    "-DROCKSDB_RANGESYNC_PRESENT",
    "-DROCKSDB_SUPPORT_THREAD_LOCAL",
    "-DROCKSDB_MALLOC_USABLE_SIZE",
    "-DROCKSDB_PTHREAD_ADAPTIVE_MUTEX",
    "-DROCKSDB_BACKTRACE",
    "-DHAVE_ALIGNED_NEW",
    "-DHAVE_UINT128_EXTENSION",
];

/// Macros of a compiler that knows an instruction set, and those by which RocksDB is told of it.
const INSTRUCTIONS: [(&str, &str); 5] = [
    ("__SSE4_2__", "-DHAVE_SSE42"),
    ("__PCLMUL__", "-DHAVE_PCLMUL"),
    ("__AVX2__", "-DHAVE_AVX2"),
    ("__BMI__", "-DHAVE_BMI"),
    ("__LZCNT__", "-DHAVE_LZCNT"),
];

/// A compiler and what it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    /// The program.
    pub program: String,
    /// The first line it prints of its version.
    pub identity: String,
    /// Flags of optimisation and processor, for compiling and linking alike.
    own: Vec<String>,
    /// Macros for what processor and system have.
    defines: Vec<String>,
    /// Libraries to link.
    libraries: Vec<String>,
}

impl Compiler {
    /// The compiler of `wanted`, asked what it knows.
    ///
    /// # Errors
    /// A sentence that says what to install or to change.
    pub fn find(wanted: &Wanted) -> Result<Compiler, String> {
        let program = program(wanted.compiler.as_deref().unwrap_or("gcc"));
        let asked = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let said =
            asked.map_err(|error| format!("cannot run the compiler {program} ({error}); install it"))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let identity = said.lines().next().unwrap_or_default().trim().to_string();
        if identity.is_empty() {
            return Err(format!("{program} does not say its version: it is no compiler"));
        }
        let is_clang = identity.contains("clang");
        let mut own: Vec<String> = ["-O2", "-fPIC", "-pthread"].map(str::to_string).into();
        own.extend(lto(wanted.lto.as_deref(), is_clang)?.into_iter().map(str::to_string));
        match &wanted.march {
            Some(march) => own.push(format!("-march={march}")),
            // RocksDB's checksums need these; every x86-64 processor since 2010 has them.
            None if cfg!(target_arch = "x86_64") => own.extend(["-msse4.2", "-mpclmul"].map(str::to_string)),
            None => {}
        }
        own.extend(wanted.flags.iter().flat_map(|flags| flags.split_whitespace().map(str::to_string)));
        let mut compiler = Compiler { program, identity, own, defines: Vec::new(), libraries: Vec::new() };
        compiler.look()?;
        Ok(compiler)
    }

    /// Finds out by the preprocessor what processor and system have.
    fn look(&mut self) -> Result<(), String> {
        let macros = self.preprocessed(&["-dM"], "").map_err(|why| format!("{}: {why}", self.program))?;
        let knows = |name: &str| macros.lines().any(|line| line.split_whitespace().nth(1) == Some(name));
        let known = INSTRUCTIONS.iter().filter(|(name, _)| knows(name)).map(|(_, define)| define.to_string());
        self.defines = known.collect();
        for (name, header, library) in CODECS {
            let text = format!("#if !__has_include(<{header}>)\n#error none\n#endif\n");
            if self.preprocessed(&[], &text).is_ok() {
                self.defines.push(format!("-D{name}"));
                self.libraries.push(format!("-l{library}"));
            }
        }
        Ok(())
    }

    fn preprocessed(&self, flags: &[&str], text: &str) -> Result<String, String> {
        let mut child = Command::new(&self.program)
            .args(&self.own)
            .args(flags)
            .args(["-E", "-x", "c++", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        // A compiler that refuses its flags reads nothing.
        let _ = child.stdin.take().expect("piped").write_all(text.as_bytes());
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(super::last_lines(&String::from_utf8_lossy(&output.stderr), 3))
    }

    /// All flags by which `sources` are compiled.
    pub fn flags(&self, sources: &Sources) -> Vec<String> {
        let mut flags = vec![format!("-std=c++{}", sources.standard)];
        flags.extend(self.own.iter().cloned());
        // As RocksDB's own releases: stacks can be sampled, and no RTTI.
        flags.extend(
            [
                "-fno-rtti",
                "-fno-omit-frame-pointer",
                "-momit-leaf-frame-pointer",
                "-w",
                "-include",
                "cstdint",
            ]
            .map(str::to_string),
        );
        flags.extend(DEFINES.map(str::to_string));
        flags.extend(self.defines.iter().cloned());
        flags.extend(sources.includes.iter().map(|dir| format!("-I{}", dir.display())));
        flags
    }

    /// All flags by which a library is linked.
    pub fn link_flags(&self) -> Vec<String> {
        let mut flags = self.own.clone();
        flags.extend(["-shared", "-Wl,-z,defs", "-Wl,--build-id=none"].map(str::to_string));
        if self.identity.contains("clang") && self.own.iter().any(|flag| flag.starts_with("-flto")) {
            flags.push("-fuse-ld=lld".to_string());
        }
        flags.extend(self.libraries.iter().cloned());
        flags.extend(["-lrt", "-ldl"].map(str::to_string));
        flags
    }
}

/// The C++ compiler of what people call a compiler.
fn program(name: &str) -> String {
    match name {
        "cc" | "gcc" => "g++".to_string(),
        "clang" => "clang++".to_string(),
        _ => match (name.strip_prefix("gcc-"), name.strip_prefix("clang-")) {
            (Some(version), _) => format!("g++-{version}"),
            (_, Some(version)) => format!("clang++-{version}"),
            _ => name.to_string(),
        },
    }
}

fn lto(wanted: Option<&str>, is_clang: bool) -> Result<Option<&'static str>, String> {
    match (wanted, is_clang) {
        (None | Some("none"), _) => Ok(None),
        (Some("thin"), true) => Ok(Some("-flto=thin")),
        (Some("thin"), false) => Err("gcc has no thin LTO: use lto full, or a clang".to_string()),
        (Some("full"), true) => Ok(Some("-flto")),
        (Some("full"), false) => Ok(Some("-flto=auto")),
        (Some(other), _) => Err(format!("lto is none, thin or full, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_are_those_people_use() {
        assert_eq!(
            ["gcc", "gcc-13", "clang-19", "/x/g++"].map(program),
            ["g++", "g++-13", "clang++-19", "/x/g++"]
        );
        assert_eq!(
            (lto(Some("thin"), true), lto(Some("full"), false)),
            (Ok(Some("-flto=thin")), Ok(Some("-flto=auto")))
        );
        assert!(lto(Some("thin"), false).unwrap_err().contains("clang"));
        assert!(lto(Some("fat"), true).unwrap_err().contains("fat"));
        let wanted = Wanted { compiler: Some("/no/such-compiler".to_string()), ..Wanted::default() };
        assert!(Compiler::find(&wanted).unwrap_err().contains("/no/such-compiler"));
    }
}
