//! Engines from elsewhere: libraries by path, adapters, allocators; the plan names those that cannot be loaded, before anything runs.

use crate::lab::{Lab, TINY, count};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the C compiler; `None`, with a word, where there is none.
fn compiled(dir: &Path, output: &str, arguments: &[&str]) -> Option<PathBuf> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let library = dir.join(output);
    let ran = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args(arguments)
        .current_dir(dir)
        .output();
    match ran {
        Ok(ran) => {
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            Some(library)
        }
        Err(error) => {
            println!("skipped: cannot run {compiler}: {error}");
            None
        }
    }
}

fn splinterdb() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/splinterdb")
}

/// TINY on SplinterDB's stand-in, going through every kind of step that SplinterDB can do.
fn on_splinterdb(library: &Path, steps: &str) -> Lab {
    let text = TINY
        .replace("['fillseq', 'readrandom', 'overwrite']", steps)
        .replace("rounds = 2", "rounds = 1\naa = false\nwarmup = false");
    let (head, _) = text.split_once("[[target]]").unwrap();
    Lab::new(&format!(
        "{head}[[target]]\nengine = 'splinterdb'\nlibrary = '{}'\nconfigs = ['d']\n[config.d]\n\
         options = 'disk_size=1073741824;use_log=1'\n",
        library.display()
    ))
}

#[test]
fn splinterdb_is_driven_through_an_adapter_compiled_against_its_headers() {
    let headers = splinterdb().join("include");
    let include = format!("-I{}", headers.display());
    let stub = splinterdb().join("stub.c");
    for (prev, goes_back) in [("-DSTUB_HAS_PREV", true), ("-USTUB_HAS_PREV", false)] {
        let temp = tempfile::tempdir().unwrap();
        let arguments = [include.as_str(), prev, stub.to_str().unwrap(), "-lpthread"];
        let Some(library) = compiled(temp.path(), "libsplinterdb.so", &arguments) else { return };
        let lab = Lab::new(TINY);
        let adapted = lab.text(&[
            "engines",
            "adapt",
            "splinterdb",
            "--headers",
            headers.to_str().unwrap(),
            "--library",
            library.to_str().unwrap(),
        ]);
        let adapter = PathBuf::from(adapted.trim());
        assert!(adapter.is_file(), "{adapted}");
        let steps = "['fillseq', 'warm', 'readrandom', 'readmissing', 'fwdrange', 'flush_mt_l0', \
                     'readwhilewriting', 'overwrite', 'deleterandom']";
        let lab = on_splinterdb(&adapter, steps);
        lab.text(&["run", "tiny.toml"]);
        let [_, sessions, measured, events] = lab.recorded();
        assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 1, "{events}");
        assert_eq!(sessions[0]["engine_version"], "SplinterDB-stub");
        let finds_all = |row: &serde_json::Value| row["result"]["found"] == row["result"]["ops"];
        assert_eq!(count(&measured, |row| row["name"] == "readrandom" && finds_all(row)), 1);
        let page = lab.text(&["report", "1", "-o", "site"]);
        assert!(lab.dir.path().join(page.trim()).exists());

        let lab = on_splinterdb(&adapter, "['fillseq', 'revrange']");
        lab.output(&["run", "tiny.toml"]);
        let [_, sessions, _, _] = lab.recorded();
        let outcome = if goes_back { "done" } else { "failed" };
        assert_eq!(sessions[0]["outcome"], outcome, "{sessions}");
        if !goes_back {
            assert!(
                sessions[0]["error"].as_str().unwrap().contains("splinterdb_iterator_prev"),
                "{sessions}"
            );
        }
    }
}

#[test]
fn an_option_that_an_adapter_does_not_know_is_answered_with_those_it_does() {
    let temp = tempfile::tempdir().unwrap();
    let include = format!("-I{}", splinterdb().join("include").display());
    let (stub, source) = (splinterdb().join("stub.c"), "../lab-load/adapters/splinterdb.c");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let Some(adapter) = compiled(
        temp.path(),
        "both.so",
        &[&include, stub.to_str().unwrap(), source.to_str().unwrap(), "-lpthread"],
    ) else {
        return;
    };
    let lab = on_splinterdb(&adapter, "['fillseq']");
    let file = lab.dir.path().join("tiny.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("use_log=1", "fanout=x");
    std::fs::write(&file, text).unwrap();
    let output = lab.output(&["plan", "tiny.toml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it is said before anything runs");
    assert!(error.contains("fanout") && error.contains("num_normal_bg_threads"), "{error}");
}

#[test]
fn what_cannot_be_loaded_is_left_out_of_the_plan_and_named() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("text.so"), "not a library").unwrap();
    std::fs::write(temp.path().join("lone.c"), "int unrelated(void) { return 1; }\n").unwrap();
    std::fs::write(temp.path().join("dies.c"), dying_source()).unwrap();
    let Some(lone) = compiled(temp.path(), "lone.so", &["lone.c"]) else { return };
    let dies = compiled(temp.path(), "dies.so", &["dies.c"]).unwrap();
    // A path that LD_PRELOAD takes for two.
    std::fs::create_dir(temp.path().join("a b")).unwrap();
    std::fs::write(temp.path().join("whole.c"), all_functions()).unwrap();
    let spaced = compiled(temp.path(), "a b/whole.so", &["whole.c"]).unwrap();
    let target =
        |name: &str, path: &Path| format!("[[target]]\nengine = '{name}'\nlibrary = '{}'\n", path.display());
    let text = [
        TINY.to_string(),
        target("gone", &temp.path().join("gone.so")),
        target("text", &temp.path().join("text.so")),
        target("lone", &lone),
        target("dies", &dies),
        target("spaced", &spaced),
        "[[target]]\nengine = 'outcrop'\nbuild = 'x'\nallocators = ['/etc/hostname']\n".to_string(),
    ]
    .concat();
    let lab = Lab::new(&text);
    let plan = lab.text(&["plan", "tiny.toml"]);
    for (name, why) in [
        ("gone", "no such library"),
        ("text", "text.so"),
        ("lone", "cannot be driven: no rocksdb_"),
        ("dies", "loading it ended the process (signal: 6"),
        ("spaced", "no colon and no space"),
        ("outcrop@x+hostname", "was not loaded by LD_PRELOAD"),
    ] {
        let words: Vec<&str> = plan.split_whitespace().collect();
        let line = words.join(" ");
        let (_, rest) =
            line.split_once(&format!("{name} left out: ")).unwrap_or_else(|| panic!("{name}: {plan}"));
        assert!(rest.contains(why), "{name}: {plan}");
    }
    let error = lab.output(&["plan", "tiny.toml", "--rounds", "0"]);
    assert!(String::from_utf8_lossy(&error.stderr).contains("--rounds"), "and a flag's mistake by its name");
}

/// A library with every function that is needed, whose initialiser ends the process.
fn dying_source() -> String {
    let functions = all_functions();
    format!(
        "#include <stdlib.h>\n{functions}__attribute__((constructor)) static void dies(void) {{ abort(); }}\n"
    )
}

/// Every function that is needed. None does anything.
pub fn all_functions() -> String {
    macro_rules! names {
        ($($name:ident,)*) => { [$(stringify!($name)),*] };
    }
    outcrop_lab_load::for_each_function!(names)
        .iter()
        .map(|name| format!("void {name}(void) {{}}\n"))
        .collect()
}

#[test]
fn an_unknown_version_is_answered_with_those_there_are() {
    let lab = Lab::new(&TINY.replace("engine = 'outcrop'", "engine = 'rocksdb'\nversions = ['6.x']"));
    let output = lab.output(&["plan", "tiny.toml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && error.contains("rocksdb@6.x") && error.contains("rocksdb@11.8.1"),
        "{error}"
    );
}
