//! `cargo xtask sanitize address|thread`: tests of the C API and the stress of it, compiled with LLVM's AddressSanitizer or ThreadSanitizer.
//!
//! ```text
//! crates/capi/tests/it/planted.rs    the control: a batch is used after it was freed, two threads set one option; it must be reported
//! crates/capi, all other tests       linked with the engine, and some by `dlopen`
//! cargo xtask stress                 many threads through the shared library: processes of Outcrop's alone
//! ```
//! Memcheck looks at what the compiler made and knows blocks of the allocator alone; AddressSanitizer sees every access as the source has it,
//! stacks and statics as well, and is fast enough for the stress. ThreadSanitizer sees two accesses that nothing orders. Code in C (the compressors) is not
//! looked into.
//!
//! Stable Rust has sanitizers behind a switch that is not promised to stay, RUSTC_BOOTSTRAP; nothing that is shipped is built with it. For ThreadSanitizer the
//! standard library is compiled along, or its locks would order nothing: that wants `rustup component add rust-src`.

use crate::packages::{Install, program};
use crate::{programs, root};
use outcrop_lab::targets::maven;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How it is called.
pub const USAGE: &str = "sanitize address | sanitize thread";

/// The RocksDB that the stress wants beside Outcrop, and that no process here loads.
const CONTROL: &str = "11.8.1";
/// Seeds of the stress that are not the control's.
const SEEDS: [u32; 3] = [4, 5, 6];

/// One of LLVM's sanitizers.
pub struct Sanitizer {
    /// Its name in `-Zsanitizer`.
    name: &'static str,
    /// Flags of the compiler besides.
    flags: &'static str,
    /// Flags of cargo besides.
    cargo: &'static [&'static str],
    /// The control, and the words of its report.
    planted: (&'static str, &'static str),
    /// The variable of its runtime's options, and these.
    options: (&'static str, &'static str),
    /// The variable that names the program by which reports have names.
    symbolizer: &'static str,
    /// Tests that cannot be run so: those of programs in C, which have no sanitizer that the library could find, and those that measure memory.
    left_out: &'static [&'static str],
}

/// The shared library finds the sanitizer in the program that loads it. Nothing else: where the program exports RocksDB's functions too, those
/// of the library call the program's.
///
/// Tests leave handles behind; memcheck looks for leaks, in RocksDB's own test. And the stress counts memory: little of what is freed is kept.
pub const ADDRESS: Sanitizer = Sanitizer {
    name: "address",
    flags: "-Clink-arg=-Wl,--export-dynamic-symbol=__asan_* -Clink-arg=-Wl,--export-dynamic-symbol=__sanitizer_*",
    cargo: &[],
    planted: ("planted::a_batch_that_was_freed_is_used", "AddressSanitizer: heap-use-after-free"),
    options: ("ASAN_OPTIONS", "detect_leaks=0:exitcode=66:quarantine_size_mb=8"),
    symbolizer: "ASAN_SYMBOLIZER_PATH",
    left_out: &["c_program::", "faults::", "memory::"],
};

/// It knows no fences; the engine orders nothing by one but sums of memory.
pub const THREAD: Sanitizer = Sanitizer {
    name: "thread",
    flags: "-Clink-arg=-Wl,--export-dynamic-symbol=__tsan_* -Clink-arg=-Wl,--export-dynamic-symbol=__sanitizer_*",
    cargo: &["-Zbuild-std"],
    planted: ("planted::two_threads_set_one_option", "ThreadSanitizer: data race"),
    options: ("TSAN_OPTIONS", "exitcode=66:halt_on_error=1:report_signal_unsafe=0"),
    symbolizer: "TSAN_SYMBOLIZER_PATH",
    left_out: &["c_program::", "faults::", "memory::"],
};

/// Runs all parts under a sanitizer.
///
/// # Errors
/// The sanitizer reports something, or not the control; a test fails, or a program is missing.
pub fn run(sanitizer: &Sanitizer, install: Install) -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" || std::env::consts::OS != "linux" {
        return Err("the sanitizer is run on Linux on x86_64".to_string());
    }
    // Reports have no names without it.
    let symbolizer = program(&["llvm-symbolizer"], "llvm", install).ok();
    let built = Built::new(sanitizer)?;
    let below = |program: &Path| -> Command {
        let mut command = Command::new(program);
        command.env(sanitizer.options.0, sanitizer.options.1).current_dir(root().join("crates/capi"));
        // RocksDB's library is not compiled for it.
        command.env_remove("OUTCROP_REFERENCE_DIR");
        if let Some(symbolizer) = &symbolizer {
            command.env(sanitizer.symbolizer, symbolizer);
        }
        command
    };
    let (test, report) = sanitizer.planted;
    let mut planted = below(&built.tests);
    planted.args(["--exact", test, "--include-ignored", "--nocapture"]);
    let (ended_well, said) = said(planted)?;
    if ended_well || !said.contains(report) {
        return Err(format!("the planted fault is not reported: {said}"));
    }
    println!("sanitize: the planted fault is reported");
    let mut tests = below(&built.tests);
    sanitizer.left_out.iter().for_each(|test| {
        tests.args(["--skip", test]);
    });
    part("tests of the C API", tests)?;
    let control = maven::obtain("rocksdb", CONTROL).map_err(|error| error.to_string())?;
    SEEDS.iter().try_for_each(|seed| {
        let mut stress = below(&built.harness);
        stress.args(["stress", "--processes", "1", "--seed", &seed.to_string()]);
        stress.arg("--library").arg(format!("outcrop={}", built.library.display()));
        stress.arg("--library").arg(format!("{CONTROL}={}", control.display()));
        part(&format!("stress, seed {seed}"), stress)
    })
}

/// The programs that are compiled for the sanitizer.
struct Built {
    tests: PathBuf,
    library: PathBuf,
    harness: PathBuf,
}

impl Built {
    fn new(sanitizer: &Sanitizer) -> Result<Built, String> {
        let target = programs::target_dir().join(format!("sanitize-{}", sanitizer.name));
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        let flags = format!("{flags} -Zsanitizer={} {}", sanitizer.name, sanitizer.flags);
        let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--quiet", "--package", "outcrop-capi", "--package", "outcrop-pingpong"]);
        command.args(["--test", "it", "--bin", "outcrop-pingpong", "--target", &platform]);
        command.args(sanitizer.cargo).args(["--message-format", "json-render-diagnostics"]);
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &target);
        command.current_dir(root()).stderr(std::process::Stdio::inherit());
        let output = command.output().map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            return Err("nothing was built for the sanitizer".to_string());
        }
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let executable = |name: &str| executable(&messages, name);
        let library =
            messages.split('"').find(|text| text.ends_with("/liboutcrop_capi.so")).map(PathBuf::from);
        let built = executable("it").zip(library).zip(executable("outcrop-pingpong"));
        let ((tests, library), harness) = built.ok_or("cargo did not say where it put what it built")?;
        Ok(Built { tests, library, harness })
    }
}

/// The program called `name` in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let of_target = format!("\"name\":\"{name}\"");
    let line =
        messages.lines().rfind(|line| line.contains(&of_target) && line.contains("\"executable\":\""))?;
    Some(PathBuf::from(line.split_once("\"executable\":\"")?.1.split_once('"')?.0))
}

/// Whether a program ended well, and all that it said.
fn said(mut command: Command) -> Result<(bool, String), String> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", Path::new(command.get_program()).display()))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

fn part(name: &str, command: Command) -> Result<(), String> {
    let start = Instant::now();
    let (ended_well, said) = said(command)?;
    if !ended_well || said.contains("Sanitizer: ") {
        return Err(format!("{name}: {said}"));
    }
    let summary = said.lines().rev().find(|line| line.contains("test result") || line.contains(" cases in "));
    println!("sanitize: {name}: {}; {:.0} s", summary.unwrap_or("no summary"), start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_cargo_names_is_found() {
        let messages = "{\"target\":{\"name\":\"it\"},\"executable\":null}\n{\"target\":{\"name\":\"it\"},\"executable\":\"/t/it-1\"}\n";
        assert_eq!(executable(messages, "it"), Some(PathBuf::from("/t/it-1")));
        assert_eq!(executable(messages, "other"), None);
    }
}
