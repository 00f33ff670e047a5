//! The reports of experiments on servers as their readers see them; see `it/pages.rs`.

use super::browser::{Browser, program};
use super::look::look_at_all;
use super::{Lab, experiment, servers};

/// Two targets, so that there is something to compare, and every section that only servers have.
#[test]
fn every_page_of_an_experiment_on_servers_reads_well_in_a_browser() {
    let here = servers();
    let program = match program() {
        Ok(program) if !here.is_empty() => program,
        other => return println!("skipped: {} servers, {other:?}", here.len()),
    };
    let postgres: Vec<String> = here.iter().filter(|name| name.starts_with("postgres")).cloned().collect();
    let steps = "'load', 'scan', 'points-notcovered-si', 'update-index'";
    let sysbench = experiment(&postgres, "sysbench", steps, 1.2, "");
    let insert = experiment(&postgres, "insert-benchmark", "'l.i0', 'l.x', 'l.i1', 'qp1000'", 1.2, "");
    let mut browser = Browser::start(&program).unwrap();
    for (text, sections) in [
        (sysbench, ["By group of tests", "Plans of statements", "What connections waited for"]),
        (insert, ["Rates of the Insert Benchmark", "Rows inserted a second beside", "redo_KB/o"]),
    ] {
        let lab = Lab::new(&text);
        lab.text(&["run", "t.toml"]);
        lab.text(&["report", "1", "-o", "site"]);
        let (looked, faults) = look_at_all(&mut browser, &lab.dir.path().join("site")).unwrap();
        assert!(looked > 8, "{looked} pages");
        assert!(
            faults.is_empty(),
            "{} faults, the first:\n{}",
            faults.len(),
            faults[..faults.len().min(20)].join("\n")
        );
        let all: String = std::fs::read_dir(lab.dir.path().join("site"))
            .unwrap()
            .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
            .collect();
        for section in sections {
            assert!(all.contains(section), "no page has {section}");
        }
    }
}
