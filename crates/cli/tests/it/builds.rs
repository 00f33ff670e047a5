//! Libraries made from sources: of a tree of two files that has RocksDB's layout and its functions, none of which does anything.

use crate::lab::{Lab, TINY};
use crate::targets::all_functions;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

/// The tree, and a cache of its own.
struct Tree {
    temp: tempfile::TempDir,
}

impl Tree {
    fn new() -> Tree {
        let temp = tempfile::tempdir().unwrap();
        let tree = Tree { temp };
        tree.write("src.mk", "LIB_SOURCES = db/c.cc \\\n  util/version.cc \\\n  tools/not_compiled.cc\n");
        tree.write("include/rocksdb/version.h", "#define ROCKSDB_MAJOR 1\n");
        tree.write("tools/not_compiled.cc", "#error it is left out\n");
        tree.write(
            "util/version.cc",
            "#include \"rocksdb/version.h\"\nint version() { return ROCKSDB_MAJOR; }\n",
        );
        let functions = format!(
            "int version();\nextern \"C\" {{\nint uses() {{ return version(); }}\n{}}}\n",
            all_functions()
        );
        tree.write("db/c.cc", &functions);
        tree
    }

    fn dir(&self) -> PathBuf {
        self.temp.path().join("tree")
    }

    fn cache(&self) -> PathBuf {
        self.temp.path().join("cache")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn lab(&self, lab: &Lab, arguments: &[&str]) -> Output {
        lab.command(arguments).env("OUTCROP_CACHE", self.cache()).output().unwrap()
    }

    fn build(&self, lab: &Lab, more: &[&str]) -> Result<PathBuf, String> {
        let source = self.dir().display().to_string();
        let fixed = ["engines", "build", "rocksdb@1.0.0", "--source", &source];
        let output = self.lab(lab, &[&fixed[..], more].concat());
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        if output.status.success() {
            Ok(PathBuf::from(said(&output.stdout)))
        } else {
            Err(said(&output.stderr))
        }
    }

    /// When an object was compiled.
    fn compiled_at(&self, library: &Path, object: &str) -> std::time::SystemTime {
        let path = library.with_file_name("objects").join(object);
        std::fs::metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).modified().unwrap()
    }
}

fn compiler_is_here() -> bool {
    let here = std::process::Command::new("g++").arg("--version").output().is_ok();
    if !here {
        println!("skipped: there is no g++");
    }
    here
}

#[test]
fn the_same_sources_and_flags_are_compiled_once_and_what_was_stopped_goes_on() {
    if !compiler_is_here() {
        return;
    }
    let (tree, lab) = (Tree::new(), Lab::new(TINY));
    let plain = tree.build(&lab, &["--name", "plain"]).unwrap();
    let made = std::fs::metadata(&plain).unwrap().modified().unwrap();
    assert_eq!(tree.build(&lab, &[]).unwrap(), plain, "the name is not part of it");
    assert_eq!(std::fs::metadata(&plain).unwrap().modified().unwrap(), made);
    let fast = tree.build(&lab, &["--flags", "-O3", "--name", "fast"]).unwrap();
    assert_ne!(fast, plain);

    // A build that was stopped has objects and no library: they stay as they are, what is missing is made.
    let kept = tree.compiled_at(&plain, "db.c.cc.o");
    std::fs::remove_file(&plain).unwrap();
    std::fs::remove_file(plain.with_file_name("objects").join("util.version.cc.o")).unwrap();
    assert_eq!(tree.build(&lab, &[]).unwrap(), plain);
    assert_eq!(tree.compiled_at(&plain, "db.c.cc.o"), kept);
    assert!(!plain.with_file_name("objects").join("tools.not_compiled.cc.o").exists());

    // A library that is not what its recipe says is made anew.
    std::fs::write(&plain, "damaged").unwrap();
    tree.build(&lab, &[]).unwrap();
    assert!(std::fs::metadata(&plain).unwrap().len() > 1000);

    // Other sources, another library.
    tree.write("include/rocksdb/version.h", "#define ROCKSDB_MAJOR 2\n");
    assert_ne!(tree.build(&lab, &[]).unwrap(), plain);

    let listed = String::from_utf8(tree.lab(&lab, &["engines", "list"]).stdout).unwrap();
    assert!(listed.contains("rocksdb@1.0.0-fast"), "{listed}");
}

#[test]
fn a_compiler_that_refuses_is_quoted_and_so_is_a_linker() {
    if !compiler_is_here() {
        return;
    }
    let (tree, lab) = (Tree::new(), Lab::new(TINY));
    tree.write("util/version.cc", "int version() { return undeclared_name; }\n");
    let error = tree.build(&lab, &[]).unwrap_err();
    assert!(error.contains("util/version.cc") && error.contains("undeclared_name"), "{error}");
    tree.write("util/version.cc", "int missing_one();\nint version() { return missing_one(); }\n");
    let error = tree.build(&lab, &[]).unwrap_err();
    assert!(error.contains("missing_one"), "a library with holes is no library: {error}");
    for (flags, why) in [
        (["--compiler", "no-such-cc"], "cannot run the compiler no-such-cc"),
        (["--lto", "thin"], "clang"),
        (["--march", "no-such-cpu"], "no-such-cpu"),
    ] {
        let error = tree.build(&lab, &flags).unwrap_err();
        assert!(error.contains(why), "{flags:?}: {error}");
    }
    let output = tree.lab(&lab, &["engines", "build", "rocksdb@0.0.1"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--source"));
    let output = tree.lab(&lab, &["engines", "build", "leveldb@1.23"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("rocksdb and outcrop"));
}

#[test]
fn builds_of_an_experiment_are_made_when_it_is_planned() {
    if !compiler_is_here() {
        return;
    }
    let tree = Tree::new();
    let text = format!(
        "{TINY}[[target]]\nengine = 'rocksdb'\nversions = ['1.0.0']\nbuilds = ['plain', 'fast', 'none']\n\
         [build.plain]\nsource = '{0}'\n[build.fast]\nsource = '{0}'\nflags = '-O3'\n\
         [build.none]\nsource = '{0}'\ncompiler = 'no-such-cc'\n",
        tree.dir().display()
    );
    let lab = Lab::new(&text);
    let output = tree.lab(&lab, &["plan", "tiny.toml", "--json"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let target = |name: &str| {
        let named = |target: &&serde_json::Value| target["name"] == name;
        plan["targets"].as_array().unwrap().iter().find(named).unwrap_or_else(|| panic!("{name}: {plan}"))
    };
    let recipe = &target("rocksdb@1.0.0-fast")["built"]["recipe"];
    assert!(recipe["flags"].as_array().unwrap().contains(&"-O3".into()), "{recipe}");
    assert_eq!(recipe["sources_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(target("rocksdb@1.0.0-plain")["line"], "rocksdb@plain");
    assert_ne!(target("rocksdb@1.0.0-plain")["source"], target("rocksdb@1.0.0-fast")["source"]);
    let left_out = plan["left_out"].to_string();
    assert!(left_out.contains("rocksdb@1.0.0-none") && left_out.contains("no-such-cc"), "{left_out}");

    let wrong = |from: &str, to: &str| {
        std::fs::write(lab.dir.path().join("tiny.toml"), text.replace(from, to)).unwrap();
        String::from_utf8(tree.lab(&lab, &["plan", "tiny.toml"]).stderr).unwrap()
    };
    assert!(wrong("'none']", "'plane']").contains("did you mean \"plain\""));
    assert!(wrong("builds =", "build = 'x'\nbuilds =").contains("library or build"));
    assert!(wrong("flags = '-O3'", "flag = '-O3'").contains("did you mean \"flags\""));
    assert!(wrong("engine = 'rocksdb'", "engine = 'leveldb'").contains("cannot be built here"));
}

#[test]
fn options_that_no_engine_understands_are_said_before_anything_runs() {
    for (from, to, misspelt) in [
        ("[config.a]", "[config.a]\noptions = 'writ_buffer_size=1048576'", "writ_buffer_size"),
        ("[config.a]", "[config.a]\noptions = 'block_based_table_factory={blok_size=4096}'", "blok_size"),
        ("[config.a]", "[config.a]\noptions = 'write_buffer_size=much'", "write_buffer_size"),
        ("[config.a]", "[step.overwrite]\noptions = 'bloom_locality_=1'\n[config.a]", "bloom_locality_"),
    ] {
        let lab = Lab::new(&TINY.replace(from, to));
        let output = lab.output(&["plan", "tiny.toml"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(misspelt), "{to}: {error}");
        let output = lab.output(&["run", "tiny.toml"]);
        assert!(!output.status.success() && !lab.dir.path().join("outcrop-lab.sqlite").exists());
    }
    // A correct experiment is accepted.
    let right =
        "[config.a]\noptions = 'write_buffer_size=1048576;block_based_table_factory={block_size=8192}'";
    Lab::new(&TINY.replace("[config.a]", right)).text(&["plan", "tiny.toml"]);
}

#[test]
fn options_that_the_real_libraries_do_not_know_are_said_too() {
    let Some(dir) = std::env::var_os("OUTCROP_REFERENCE_DIR").map(PathBuf::from) else {
        println!("skipped: OUTCROP_REFERENCE_DIR is not set");
        return;
    };
    for version in ["6.29.5", "11.8.1"] {
        let library = dir.join(format!("librocksdb-{version}.so"));
        if !library.exists() {
            println!("skipped: there is no {}", library.display());
            continue;
        }
        for (options, known) in [
            ("writ_buffer_size=1", false),
            ("block_based_table_factory={blok_size=4096}", false),
            ("compression_opts={levle=1}", false),
            ("compaction_options_universal={size_ration=1}", false),
            ("write_buffer_size=1048576;compaction_options_universal={size_ratio=2}", true),
        ] {
            let target = format!(
                "engine = 'rocksdb'\nversions = ['{version}']\nbuild = 'x'\nlibrary = '{}'",
                library.display()
            );
            let text = TINY
                .replace("engine = 'outcrop'", &target)
                .replace("[config.a]", &format!("[config.a]\noptions = '{options}'"))
                .replace("configs = ['a', 'b']", "configs = ['a']");
            let output = Lab::new(&text).output(&["plan", "tiny.toml"]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), known, "{version} {options}: {error}");
        }
    }
}

#[test]
fn a_run_goes_on_under_the_flags_it_was_begun_with_and_no_others() {
    let lab = Lab::new(TINY);
    let sizes = ["--keys", "1500", "--seconds", "1", "--rounds", "1"];
    let mut child =
        lab.command(&[&["run", "tiny.toml"], &sizes[..]].concat()).stderr(Stdio::null()).spawn().unwrap();
    while !lab.output(&["show", "1"]).status.success() {
        assert!(child.try_wait().unwrap().is_none(), "it ended without a record");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let other = lab.output(&["run", "tiny.toml", "--resume", "--rounds", "2"]);
    let error = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success(), "it would be another plan");
    assert!(error.contains("with --keys 1500 --seconds 1 --rounds 1: --rounds 2"), "{error}");
    lab.text(&[&["run", "tiny.toml", "--resume"], &sizes[..]].concat());
    let [experiment, ..] = lab.recorded();
    assert_eq!((&experiment["status"], &experiment["id"]), (&"done".into(), &1.into()));
}
