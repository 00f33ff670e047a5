//! The targets of `crates/fuzz-targets` with counters of coverage: under libFuzzer, which they guide, and without being guided.
//!
//! ```text
//! OUTCROP_FUZZ_TARGET=T  outcrop-fuzz-guided ARGUMENTS OF LIBFUZZER     also as libFuzzer starts itself again
//!                        outcrop-fuzz-guided --fixtures DIR            writes the inputs that the fixtures are
//!                        outcrop-fuzz-guided --blind SECONDS SEED      mutates at random; says which share was covered
//! ```
//! The compiler puts the counters of all crates into one section, a byte for each place that a branch leads to.
//! Next: `crates/xtask/src/guided.rs`, which builds and runs this program.

#[path = "../../crates/fuzz-targets/src/limits.rs"]
mod limits;

use libfuzzer_sys as _;
use outcrop_fuzz_targets::mutate::{Rng, changed, mutate};
use outcrop_fuzz_targets::{Target, seeds, target};
use std::ffi::{CString, c_char, c_int, c_uint};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: limits::Counting = limits::Counting;

/// The target of this process.
static TARGET: OnceLock<&'static Target> = OnceLock::new();
/// Inputs that give pieces to others: those that were there when the process began.
static DONORS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

unsafe extern "C" {
    /// libFuzzer's program: gives its exit code, or ends the process itself.
    fn LLVMFuzzerRunDriver(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        run: unsafe extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;

    /// Changes `size` bytes at `data` in libFuzzer's ways, to `most` bytes at most; gives how many they are then.
    fn LLVMFuzzerMutate(data: *mut u8, size: usize, most: usize) -> usize;

    /// The first counter, and the end of the last; the linker's names. The 1 before a name is for LLVM alone: the pass that adds
    /// the counters has a symbol of that name, and would have to take another, which no linker knows.
    #[link_name = "\x01__start___sancov_cntrs"]
    static mut COUNTERS: u8;
    #[link_name = "\x01__stop___sancov_cntrs"]
    static mut COUNTERS_END: u8;
}

fn main() -> ExitCode {
    let Ok(name) = std::env::var("OUTCROP_FUZZ_TARGET") else {
        eprintln!("guided: OUTCROP_FUZZ_TARGET names no target; start it by cargo xtask fuzz --guided");
        return ExitCode::FAILURE;
    };
    let target = *TARGET.get_or_init(|| target(&name));
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let outcome = match words[..] {
        ["--fixtures", dir] => write_fixtures(target, Path::new(dir)),
        ["--blind", seconds, seed] => blind(target, seconds, seed),
        _ => guided(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(why) => {
            eprintln!("guided: {why}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Hands over to libFuzzer. A panic ends the process where it happens, so that its input is kept.
fn guided(arguments: Vec<String>) -> Result<ExitCode, String> {
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        said(panic);
        std::process::abort();
    }));
    let words = arguments.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
    let words = words.map_err(|error| format!("an argument: {error}"))?;
    if let Some(target) = TARGET.get() {
        DONORS.get_or_init(|| seeds::inputs(target, root()).unwrap_or_default());
    }
    // libFuzzer keeps pointers to them.
    let mut words: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    let mut count = c_int::try_from(words.len()).map_err(|error| error.to_string())?;
    words.push(std::ptr::null_mut());
    let mut first = words.as_mut_ptr();
    // SAFETY: `words` are C strings with a null behind them, and outlive the call; `run` has the type that is asked for.
    let code = unsafe { LLVMFuzzerRunDriver(&mut count, &mut first, run) };
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// One run, as libFuzzer asks for it.
unsafe extern "C" fn run(data: *const u8, size: usize) -> c_int {
    // SAFETY: libFuzzer gives `size` bytes that nobody changes meanwhile; no bytes may have no address.
    let input = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    if let Some(target) = TARGET.get() {
        limits::enter(target.memory);
        target.run(input);
        limits::leave();
    }
    0
}

/// A change, as libFuzzer asks for it: in one of its ways, or, as often, in one of those of `mutate.rs`, which know numbers at edges and
/// varints, and put pieces of other inputs in.
///
/// # Safety
/// libFuzzer's: `size` bytes at `data` are an input, and `most` may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn LLVMFuzzerCustomMutator(data: *mut u8, size: usize, most: usize, seed: c_uint) -> usize {
    let donors = DONORS.get().map_or(&[][..], Vec::as_slice);
    if seed & 1 == 0 || donors.is_empty() {
        // SAFETY: the caller's promise.
        return unsafe { LLVMFuzzerMutate(data, size, most) };
    }
    let mut rng = Rng::of_case(u64::from(seed), "", 0);
    let donor = &donors[rng.below(donors.len())];
    // SAFETY: the caller's promise.
    let input = unsafe { std::slice::from_raw_parts(data, size) }.to_vec();
    let mut changed = changed(input, donor, &mut rng);
    changed.truncate(most);
    if changed.is_empty() {
        // libFuzzer takes no empty input.
        changed.push(0);
    }
    // SAFETY: no more than `most` bytes, which the caller lets be written; `changed` is memory of its own.
    unsafe { std::ptr::copy_nonoverlapping(changed.as_ptr(), data, changed.len()) };
    changed.len()
}

fn write_fixtures(target: &Target, dir: &Path) -> Result<ExitCode, String> {
    for (number, bytes) in seeds::whole_fixtures(target, root())?.into_iter().enumerate() {
        let path = dir.join(format!("fixture-{number}"));
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What `cargo xtask fuzz` does, with the counters looked at: how many of them any input reached.
fn blind(target: &Target, seconds: &str, seed: &str) -> Result<ExitCode, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let (time, seed) = (Duration::from_secs(number(seconds)?), number(seed)?);
    limits::watch();
    let inputs = seeds::inputs(target, root())?;
    let mut covered = vec![false; counters().len()];
    let mut play = |input: &[u8]| {
        counters().fill(0);
        limits::enter(target.memory);
        target.run(input);
        limits::leave();
        for (covered, counter) in covered.iter_mut().zip(counters()) {
            *covered |= *counter != 0;
        }
    };
    inputs.iter().for_each(|input| play(input));
    let start = Instant::now();
    let mut cases = 0;
    while start.elapsed() < time {
        play(&mutate(&inputs, &mut Rng::of_case(seed, target.name, cases)));
        cases += 1;
    }
    let covered = covered.iter().filter(|covered| **covered).count();
    println!("blind: {cases} cases, {covered} counters of {}", counters().len());
    Ok(ExitCode::SUCCESS)
}

/// All counters of the process. Threads of the target count while they are read: a count may be missed.
fn counters() -> &'static mut [u8] {
    let (start, stop) = (&raw mut COUNTERS, &raw mut COUNTERS_END);
    // SAFETY: the section is between the two symbols; every value is a byte. Only this thread makes a slice of it, and one at
    // a time is used.
    unsafe { std::slice::from_raw_parts_mut(start, stop as usize - start as usize) }
}
