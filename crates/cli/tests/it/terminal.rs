//! The output of the lab, at 80 columns, and as JSON.

use crate::lab::{Lab, TINY};

fn fits(what: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {} columns\n{line}", line.chars().count());
        assert!(!line.ends_with(' '), "{what}: blanks at the end of {line:?}");
    }
    assert!(!text.trim().is_empty(), "{what} says nothing");
}

#[test]
fn everything_fits_eighty_columns_and_every_json_is_json() {
    // A long name, five targets and an engine that fails: what tables break on.
    let text = format!(
        "{TINY}[config.a-configuration-with-quite-a-long-name]\nbloom_bits = 5\n[config.broken]\n\
         options = 'create_if_missing=false'\n"
    )
    .replace(
        "configs = ['a', 'b']",
        "configs = ['a', 'b', 'a-configuration-with-quite-a-long-name', 'broken']",
    )
    .replace(
        "title = 'Tiny'",
        "title = 'Tiny'\nquestion = 'Does a question that is longer than a line of eighty columns, \
              as good questions often are, still fit?'",
    );
    let lab = Lab::new(&text);
    fits("plan", &lab.text(&["plan", "tiny.toml"]));
    fits("run", &lab.text(&["run", "tiny.toml", "--rounds", "5", "--seconds", "0.05"]));
    for verb in [
        &["list"][..],
        &["show", "1"],
        &["engines", "list"],
        &["host"],
        &["explain", "1", "readrandom", "outcrop/b"],
        &["explain", "1", "overwrite", "outcrop/a-configuration-with-quite-a-long-name"],
    ] {
        fits(&verb.join(" "), &lab.text(verb));
        let json = lab.text(&[verb, &["--json"]].concat());
        serde_json::from_str::<serde_json::Value>(&json)
            .unwrap_or_else(|error| panic!("{verb:?}: {error}\n{json}"));
    }
    for metric in ["ops_sec", "p99", "cpu_us/o", "write_amp"] {
        for verb in
            [&["compare", "1", "--metric", metric][..], &["compare", "1", "--metric", metric, "--classic"]]
        {
            let output = lab.output(verb);
            // In steps as short as these a busy machine may write so little that nothing is flushed: that is a sentence.
            let told = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
            let text = String::from_utf8(told.clone()).unwrap();
            let is_without = text.contains("no numbers of the metric write_amp");
            assert!(!output.stdout.is_empty() || is_without, "{verb:?}: {text}");
            fits(&verb.join(" "), &text);
        }
        let json = lab.output(&["compare", "1", "--metric", metric, "--json"]).stdout;
        serde_json::from_slice::<serde_json::Value>(&json).unwrap();
    }
    let classic = lab.text(&["compare", "1", "--classic"]);
    assert!(
        classic.contains("Ratios to outcrop/a, geometric means over the blocks that both have, of 5")
            && !classic.contains("One run"),
        "{classic}"
    );
    let explained = lab.text(&["explain", "1", "readrandom", "outcrop/b"]);
    assert!(explained.contains("options that differ") && explained.contains("block_size"), "{explained}");
}

#[test]
fn quick_fits_eighty_columns_and_its_json_is_json() {
    let lab = Lab::new(TINY);
    let small = ["quick", "--engines=outcrop,outcrop", "--keys=2000", "--seconds=0.05", "--rounds=1"];
    let text = lab.text(&small);
    fits("quick", &text);
    assert!(text.contains("report: outcrop-lab-report/report.html"), "{text}");
    assert!(text.lines().count() <= 40, "the first page is a screen: {} lines\n{text}", text.lines().count());
    assert!(!text.contains("c_wsecs"), "the 28 columns are in a file\n{text}");
    let classic = lab.text(&[&small[..], &["--classic", "--output=columns"]].concat());
    assert!(classic.contains("c_wsecs") && classic.contains("githash"), "{classic}");
    let json = lab.text(&[&small[..], &["--json", "--output=other"]].concat());
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}
