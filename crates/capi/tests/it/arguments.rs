//! Every function with NULL for each pointer and with extreme numbers: this library accepts every argument that RocksDB's does.
//!
//! Cases are made from the committed list of functions: one argument of a call is NULL or extreme, the others are what a
//! program passes. After the call the objects of it are used: a database is opened under the options, written, read and
//! closed. Each case runs in a forked process of its own, with either library; where RocksDB's crashes, runs longer than
//! a few seconds, or takes gigabytes, the call is not legal and nothing is asked of ours. Where it does not, ours must not crash either,
//! and find the same.
//!
//! `OUTCROP_ARGUMENTS=all` takes all cases (some minutes), else every setter of options with NULL, and one of eight others.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use crate::api_list::{Function, read_list};
use crate::library::{outcrop_library, reference};
use libloading::Library;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::process::Command;

/// Any function: integers and pointers are passed in order, and so are floating-point numbers, in registers of their own.
/// A function does not look at registers beyond its arguments.
#[rustfmt::skip]
type Any = unsafe extern "C" fn(
    u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, f64, f64, f64, f64,
) -> u64;

/// An argument as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A pointer to an object of the C API.
    Object(String),
    /// `char**` for an error.
    Errptr,
    /// Another pointer.
    Pointer,
    Function,
    Text,
    Float,
    /// A number of this many bits.
    Number(u32),
}

fn kind(argument: &str) -> Kind {
    let plain = argument.replace("const ", "");
    let stars = plain.matches('*').count();
    let base = plain.split(['*', ' ']).next().unwrap_or_default().to_string();
    match stars {
        _ if plain.contains('(') || base.ends_with("_cb") => Kind::Function,
        1 if base.starts_with("rocksdb_") && base != "rocksdb_slice_t" => Kind::Object(base),
        1 if base == "char" => Kind::Text,
        2 if plain.contains("errptr") => Kind::Errptr,
        1.. => Kind::Pointer,
        0 if base == "double" => Kind::Float,
        0 if plain.starts_with("unsigned char")
            || plain.starts_with("char")
            || base == "bool"
            || base == "uint8_t" =>
        {
            Kind::Number(8)
        }
        0 if base == "size_t" || base.contains("64") => Kind::Number(64),
        0 => Kind::Number(32),
    }
}

fn arguments(declaration: &str) -> Vec<Kind> {
    let open = declaration.find('(').unwrap();
    let inside = &declaration[open + 1..declaration.rfind(')').unwrap()];
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inside.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).collect();
    parts.iter().filter(|part| !part.is_empty() && **part != "void").map(|part| kind(part)).collect()
}

/// Any callback: a text is what it gives, a number to those who want one.
extern "C" fn answer() -> *const c_char {
    c"answer".as_ptr()
}

/// The replacement for one argument of a call.
struct Case {
    function: String,
    kinds: Vec<Kind>,
    at: usize,
    /// 0 for pointers.
    bits: u64,
    name: String,
}

fn cases(functions: &[Function]) -> Vec<Case> {
    let all = std::env::var("OUTCROP_ARGUMENTS").is_ok_and(|value| value == "all");
    let mut cases = Vec::new();
    for function in functions {
        let kinds = arguments(&function.declaration);
        for (at, kind) in kinds.iter().enumerate() {
            let values: Vec<u64> = match kind {
                // A length that is not there is no call that a program may make.
                Kind::Number(64) if at > 0 && matches!(kinds[at - 1], Kind::Text | Kind::Pointer) => vec![0],
                Kind::Float => [0.0, -1.0, f64::MAX, f64::NAN].map(f64::to_bits).to_vec(),
                Kind::Number(bits) => {
                    let most = u64::MAX >> (64 - bits);
                    vec![0, most, most / 2, most / 2 + 1]
                }
                _ => vec![0],
            };
            for bits in values {
                let name = format!("{} argument {at} = {bits:#x}", function.name);
                cases.push(Case { function: function.name.clone(), kinds: kinds.clone(), at, bits, name });
            }
        }
    }
    // Null for what options are given is always tried: that is where programs pass it.
    let always =
        |case: &Case| case.bits == 0 && case.at > 0 && case.function.starts_with("rocksdb_options_set_");
    let mut at = 0;
    cases.retain(|case| {
        at += 1;
        all || at % SLICE == 0 || always(case)
    });
    cases
}

/// One case in so many is taken where not all are.
const SLICE: usize = 8;

/// Functions that end an object, whose valid arguments are gone after them.
fn ends(function: &str) -> bool {
    ["_destroy", "_close", "_free", "_release_snapshot"].iter().any(|part| function.contains(part))
}

/// One process's library and objects.
struct World<'a> {
    library: &'a Library,
    makers: &'a HashMap<String, String>,
    dir: &'a Path,
    /// The objects made so far, by type.
    made: BTreeMap<String, u64>,
}

impl World<'_> {
    unsafe fn call(&self, name: &str, ints: &[u64], floats: &[f64]) -> u64 {
        let (mut i, mut f) = ([0; 14], [0.0; 4]);
        i[..ints.len()].copy_from_slice(ints);
        f[..floats.len()].copy_from_slice(floats);
        // SAFETY: the function takes at most these; whether it can take their values is what is tried out, in a process
        // that may crash.
        unsafe {
            let function = self.library.get::<Any>(name.as_bytes()).expect(name);
            #[rustfmt::skip]
            let given = function(
                i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13],
                f[0], f[1], f[2], f[3],
            );
            given
        }
    }

    /// The object of a type; 0 if there is no way to make one.
    unsafe fn object(&mut self, of: &str) -> u64 {
        if let Some(&made) = self.made.get(of) {
            return made;
        }
        // SAFETY: as for `call`.
        let object = unsafe {
            match of {
                "rocksdb_t" => self.opened("world"),
                "rocksdb_column_family_handle_t" => {
                    let db = self.object("rocksdb_t");
                    self.call("rocksdb_get_default_column_family_handle", &[db], &[])
                }
                "rocksdb_iterator_t" => {
                    let (db, read) = (self.object("rocksdb_t"), self.object("rocksdb_readoptions_t"));
                    self.call("rocksdb_create_iterator", &[db, read], &[])
                }
                "rocksdb_snapshot_t" => {
                    let db = self.object("rocksdb_t");
                    self.call("rocksdb_create_snapshot", &[db], &[])
                }
                "rocksdb_checkpoint_t" => {
                    let db = self.object("rocksdb_t");
                    self.call("rocksdb_checkpoint_object_create", &[db, self.errptr()], &[])
                }
                "rocksdb_cache_t" => self.call("rocksdb_cache_create_lru", &[1 << 20], &[]),
                "rocksdb_env_t" => self.call("rocksdb_create_default_env", &[], &[]),
                "rocksdb_slicetransform_t" => self.call("rocksdb_slicetransform_create_noop", &[], &[]),
                "rocksdb_filterpolicy_t" => self.call("rocksdb_filterpolicy_create_bloom", &[], &[10.0]),
                "rocksdb_ratelimiter_t" => {
                    self.call("rocksdb_ratelimiter_create", &[1 << 30, 100_000, 10], &[])
                }
                "rocksdb_write_buffer_manager_t" => {
                    self.call("rocksdb_write_buffer_manager_create", &[1 << 26, 0], &[])
                }
                "rocksdb_dbpath_t" => self.call("rocksdb_dbpath_create", &[self.text(), 1 << 30], &[]),
                "rocksdb_writebatch_wi_t" => 0,
                _ => match self.makers.get(of) {
                    Some(maker) => self.call(maker, &[], &[]),
                    None => 0,
                },
            }
        };
        if of == "rocksdb_options_t" {
            // SAFETY: as for `call`.
            unsafe { self.call("rocksdb_options_set_create_if_missing", &[object, 1], &[]) };
            // The space that is allocated ahead of a WAL: at its default size a third of the test's time.
            // SAFETY: as for `call`.
            unsafe { self.call("rocksdb_options_set_write_buffer_size", &[object, 1 << 20], &[]) };
        }
        self.made.insert(of.to_string(), object);
        object
    }

    fn errptr(&self) -> u64 {
        Box::into_raw(Box::new(std::ptr::null_mut::<c_char>())) as u64
    }

    fn text(&self) -> u64 {
        CString::new(self.dir.join("named").to_str().unwrap()).unwrap().into_raw() as u64
    }

    /// The class of the error, which the process does not outlive; empty for none.
    unsafe fn class(errptr: u64) -> String {
        // SAFETY: `errptr` came from `errptr`, and the library stored null or a text.
        unsafe {
            let text = *(errptr as *const *const c_char);
            if text.is_null() {
                return String::new();
            }
            CStr::from_ptr(text).to_string_lossy().split(": ").next().unwrap_or_default().to_string()
        }
    }

    unsafe fn opened(&mut self, name: &str) -> u64 {
        // SAFETY: as for `call`.
        unsafe {
            let options = self.object("rocksdb_options_t");
            let path = CString::new(self.dir.join(name).to_str().unwrap()).unwrap().into_raw() as u64;
            self.call("rocksdb_open", &[options, path, self.errptr()], &[])
        }
    }

    /// Uses the object that the call was about, and describes the result.
    unsafe fn use_objects(&mut self) -> String {
        let mut found = String::new();
        // SAFETY: as for `call`.
        unsafe {
            if let Some(&table) = self.made.get("rocksdb_block_based_table_options_t")
                && !self.made.contains_key("rocksdb_options_t")
            {
                let options = self.object("rocksdb_options_t");
                self.call("rocksdb_options_set_block_based_table_factory", &[options, table], &[]);
            }
            let (read, write) = (self.object("rocksdb_readoptions_t"), self.object("rocksdb_writeoptions_t"));
            let options = self.object("rocksdb_options_t");
            let path = CString::new(self.dir.join("used").to_str().unwrap()).unwrap().into_raw() as u64;
            let error = self.errptr();
            let db = match self.made.get("rocksdb_t") {
                Some(&db) => db,
                None => self.call("rocksdb_open", &[options, path, error], &[]),
            };
            found += &format!("open {}", Self::class(error));
            if db == 0 {
                return found;
            }
            let key = c"key".as_ptr() as u64;
            let error = self.errptr();
            self.call("rocksdb_put", &[db, write, key, 3, key, 3, error], &[]);
            found += &format!(", put {}", Self::class(error));
            let (mut len, error) = (0_u64, self.errptr());
            let value = self.call("rocksdb_get", &[db, read, key, 3, &raw mut len as u64, error], &[]);
            found += &format!(", get {} of {len} {}", value != 0, Self::class(error));
            let error = self.errptr();
            let flush = self.object("rocksdb_flushoptions_t");
            self.call("rocksdb_flush", &[db, flush, error], &[]);
            found += &format!(", flush {}", Self::class(error));
            for of in ["rocksdb_iterator_t", "rocksdb_column_family_handle_t", "rocksdb_snapshot_t"] {
                // Objects that refer to the database are destroyed first.
                if let Some(&object) = self.made.get(of) {
                    match of {
                        "rocksdb_iterator_t" => self.call("rocksdb_iter_destroy", &[object], &[]),
                        "rocksdb_snapshot_t" => self.call("rocksdb_release_snapshot", &[db, object], &[]),
                        _ => self.call("rocksdb_column_family_handle_destroy", &[object], &[]),
                    };
                }
            }
            self.call("rocksdb_close", &[db], &[]);
            found + ", closed"
        }
    }

    unsafe fn run(&mut self, case: &Case) -> String {
        // SAFETY: as for `call`.
        unsafe {
            let (mut ints, mut floats) = (Vec::new(), Vec::new());
            for (at, kind) in case.kinds.iter().enumerate() {
                let given = (at == case.at).then_some(case.bits);
                let valid = |world: &mut World<'_>| match kind {
                    Kind::Object(of) => world.object(of),
                    Kind::Errptr => world.errptr(),
                    Kind::Pointer => Box::into_raw(Box::new([0_u64; 64])) as u64,
                    Kind::Function => answer as *const () as u64,
                    Kind::Text => world.text(),
                    Kind::Number(_) => 1,
                    Kind::Float => 1.0_f64.to_bits(),
                };
                let bits = match given {
                    Some(bits) => bits,
                    None => valid(self),
                };
                match kind {
                    Kind::Float => floats.push(f64::from_bits(bits)),
                    _ => ints.push(bits),
                }
            }
            self.call(&case.function, &ints, &floats);
            if ends(&case.function) { String::new() } else { self.use_objects() }
        }
    }
}

/// A directory in memory, where there is one: syncs are not of interest.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Runs each case in a process of its own, and returns its findings, or how it ended.
fn run_all(library: &Library, cases: &[Case], makers: &HashMap<String, String>) -> Vec<String> {
    cases
        .iter()
        .map(|case| {
            let dir = scratch();
            let answer = dir.path().join("answer");
            // SAFETY: the child uses what is its own, and ends without running anything of the parent.
            unsafe {
                let child = libc::fork();
                assert!(child >= 0, "fork failed");
                if child == 0 {
                    libc::alarm(5);
                    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                    libc::setrlimit(libc::RLIMIT_CORE, &none);
                    let bound = libc::rlimit { rlim_cur: 6 << 30, rlim_max: 6 << 30 };
                    libc::setrlimit(libc::RLIMIT_AS, &bound);
                    let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
                    libc::dup2(null, 1);
                    libc::dup2(null, 2);
                    std::env::set_current_dir(dir.path()).unwrap();
                    let mut world = World { library, makers, dir: dir.path(), made: BTreeMap::new() };
                    let found = world.run(case);
                    let _ = std::fs::write(&answer, found);
                    libc::_exit(0);
                }
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                if libc::WIFSIGNALED(status) {
                    return format!("signal {}", libc::WTERMSIG(status));
                }
            }
            std::fs::read_to_string(&answer).unwrap_or_else(|_| "ended by itself".to_string())
        })
        .collect()
}

/// The process that forks: it has one thread, and one library.
#[test]
fn child() {
    let Some(library) = std::env::var_os("OUTCROP_ARGUMENTS_LIBRARY") else { return };
    let (functions, makers) = functions();
    // SAFETY: the library runs no code of note when loaded.
    let library = unsafe { Library::new(library).unwrap() };
    let found = run_all(&library, &cases(&functions), &makers);
    std::fs::write(std::env::var_os("OUTCROP_ARGUMENTS_ANSWER").unwrap(), found.join("\n")).unwrap();
    // The library's leftovers are not of interest.
    std::process::exit(0);
}

/// The functions, and what makes the objects that are made without arguments.
fn functions() -> (Vec<Function>, HashMap<String, String>) {
    let functions: Vec<Function> = read_list().areas.into_iter().flat_map(|area| area.functions).collect();
    let made = functions.iter().filter(|function| function.declaration.ends_with("_create(void)"));
    let makers = made.map(|function| {
        let of = function.declaration.split('*').next().unwrap();
        (of.to_string(), function.name.clone())
    });
    let makers = makers.collect();
    let left_out = ["rocksdb_filterpolicy_create_bloom_format", "rocksdb_filterpolicy_create_ribbon_format"];
    let functions = functions.into_iter().filter(|function| !left_out.contains(&function.name.as_str()));
    (functions.collect(), makers)
}

/// The result of each case with `library`.
fn found_with(library: &Path) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let answer = dir.path().join("answers");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "arguments::child", "--test-threads", "1", "--nocapture"])
        .env("OUTCROP_ARGUMENTS_LIBRARY", library)
        .env("OUTCROP_ARGUMENTS_ANSWER", &answer)
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        // Many of its children panic: a third of the test's time went into stacks that nobody reads.
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    std::fs::read_to_string(&answer).unwrap().split('\n').map(str::to_string).collect()
}

#[test]
fn what_rocksdb_takes_is_taken() {
    let Some(reference) = reference() else { return };
    let (functions, _) = functions();
    let cases = cases(&functions);
    let ours = std::thread::spawn(|| found_with(&outcrop_library()));
    let theirs = found_with(&reference);
    let ours = ours.join().unwrap();
    assert_eq!((ours.len(), theirs.len()), (cases.len(), cases.len()));
    let legal = |theirs: &str| !theirs.starts_with("signal") && theirs != "ended by itself";
    let taken = theirs.iter().filter(|theirs| legal(theirs)).count();
    eprintln!("{} cases, of which RocksDB takes {taken}", cases.len());
    assert!(taken > cases.len() / 4, "RocksDB takes only {taken} of {} cases", cases.len());
    let differs = |(case, (ours, theirs)): (&Case, (&String, &String))| {
        // An argument that RocksDB refuses may be accepted here, and one that is documented as refused is.
        let refused = ours.contains("Not implemented") && (case.bits != 0 || !case.name.contains("_set_"));
        let stricter = theirs != GOOD && legal(ours);
        let known = OTHERWISE.iter().any(|(name, _)| case.name.starts_with(name));
        let same = ours == theirs || !legal(theirs) || refused || stricter || known;
        (!same).then(|| format!("{}: {ours}; RocksDB: {theirs}", case.name))
    };
    let wrong: Vec<String> = cases.iter().zip(ours.iter().zip(&theirs)).filter_map(differs).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}

/// The result of a case without an error.
const GOOD: &str = "open , put , get true of 3 , flush , closed";

/// Where a call ends otherwise on purpose, or RocksDB takes an illegal one by accident, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("rocksdb_merge argument", "illegal: RocksDB fails earlier, as there is no merge operator"),
    ("rocksdb_merge_cf argument", "as above"),
    ("rocksdb_write argument 2", "illegal: RocksDB takes no batch for one that is empty"),
    (
        "rocksdb_cancel_all_background_work argument",
        "writes are refused after it at once, in RocksDB when a memtable is full",
    ),
    (
        "rocksdb_flushjobinfo_table_properties argument",
        "illegal: RocksDB adds to the address and reads nothing, and a caller that uses it ends",
    ),
    ("rocksdb_options_set_max_bytes_for_level_multiplier argument", "refused, RocksDB divides by it"),
    ("rocksdb_options_set_plain_table_factory argument", "there are no plain tables"),
    ("rocksdb_cache_create_lru", "addresses are reserved for the whole cache, and are limited in this test"),
    ("rocksdb_options_optimize_for_point_lookup argument", "as above"),
    ("rocksdb_readoptions_set_table_filter argument", "checked: tables cannot be left out of a read"),
    ("rocksdb_readoptions_set_iter_start_ts argument", "checked: there are no user-defined timestamps"),
];
