//! The reports as their readers see them: every page of real runs, opened in a browser, wide and narrow, light and dark,
//! with scripts and without.
//!
//! Where there is no browser this says so and passes; `cargo xtask ci` installs one where it may.

use crate::browser::{Browser, program};
use crate::lab::{Lab, TINY};
use crate::look::{broken_links, look, look_at_all};

/// A run with five targets, one of which fails, and steps long enough for charts by second.
fn experiment(lab: &Lab) {
    lab.text(&["run", "tiny.toml"]);
    // Where nothing can be sampled there are no flame graphs to look at.
    let targets = "--targets=outcrop/a,outcrop/b";
    let printed = lab.output(&["profile", "1", "--steps=readrandom", targets, "--seconds=1"]).stdout;
    let sampled = String::from_utf8_lossy(&printed).lines().any(|line| line.starts_with("samples"));
    lab.text(&["report", "1", "-o", "site"]);
    assert_eq!(lab.dir.path().join("site/flames").exists(), sampled);
    lab.text(&["report", "1", "-o", "classic", "--classic"]);
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/tests/fixtures/import");
    lab.text(&["import", published, "--record", "--title", "Published"]);
    lab.text(&["report", "2", "-o", "imported"]);
}

fn long_experiment() -> String {
    TINY.replace(
        "configs = ['a', 'b']",
        "configs = ['a', 'b', 'a-configuration-with-quite-a-long-name', 'broken']",
    )
    .replace("['fillseq', 'readrandom', 'overwrite']", "['fillseq', 'readrandom', 'revrangewhilewriting']")
    .replace("seconds = 0.15", "seconds = 1.3")
        + "[config.a-configuration-with-quite-a-long-name]\nbloom_bits = 5\n[config.broken]\noptions = 'create_if_missing=false'\n"
}

#[test]
fn every_page_reads_well_in_a_browser() {
    let program = match program() {
        Ok(program) => program,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let lab = Lab::new(&long_experiment());
    experiment(&lab);
    lab.text(&["quick", "--engines=outcrop,outcrop", "--keys=2000", "--seconds=1.1", "--rounds=1"]);
    let mut browser =
        Browser::start(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut faults = Vec::new();
    let mut looked = 0;
    for dir in ["site", "classic", "imported", "outcrop-lab-report"] {
        let (pages, found) = look_at_all(&mut browser, &lab.dir.path().join(dir)).unwrap();
        looked += pages;
        faults.extend(found);
    }
    assert!(looked > 20, "{looked} pages");
    assert!(
        faults.is_empty(),
        "{} faults, the first:\n{}",
        faults.len(),
        faults[..faults.len().min(40)].join("\n")
    );
}

#[test]
fn a_page_with_faults_has_them_found() {
    let Ok(program) = program() else {
        println!("skipped: no browser");
        return;
    };
    let temp = tempfile::tempdir().unwrap();
    let page = temp.path().join("bad.html");
    std::fs::write(
        &page,
        "<!DOCTYPE html><meta name=viewport content='width=device-width'><style>p { color: #aaa }</style>\
         <p style='width:2000px'>wide</p><table><tr><td>1</table><a href=none.html>x</a>\
         <svg aria-label=s width=100 height=50><text x=5 y=20>one</text><text x=8 y=22>two</text></svg>\
         <script>console.error('oh'); fetch('http://127.0.0.1:9/x')</script>",
    )
    .unwrap();
    let mut browser = Browser::start(&program).unwrap();
    let faults = look(&mut browser, &page).unwrap().join("\n");
    for expected in
        ["the page is 2", "P ends at", "lies over", "without a head", "contrast 2.3", "oh", "127.0.0.1:9"]
    {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    assert_eq!(broken_links(&mut browser, &page).unwrap(), ["none.html"]);
}
