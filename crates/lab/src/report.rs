//! The report: one HTML page without scripts or outside files, and a TSV and JSON with every number.

use crate::quick::{QuickArguments, median_ops, step_names};
use crate::session::{Source, Target};
use crate::tables;
use crate::tables::{COLUMNS, Measured, paired_ratio, summary_line};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes `report.html`, `results.tsv` and `results.json` into `dir`; gives their paths.
pub fn write(
    dir: &Path,
    arguments: &QuickArguments,
    targets: &[Target],
    measured: &[Measured],
    seed: u64,
) -> Result<[PathBuf; 3], String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    std::fs::create_dir_all(dir).map_err(failed)?;
    let [html, tsv, json_path] = ["report.html", "results.tsv", "results.json"].map(|name| dir.join(name));
    std::fs::write(&html, page(arguments, targets, measured, seed)).map_err(failed)?;
    std::fs::write(&tsv, tab_separated(targets, measured)).map_err(failed)?;
    std::fs::write(&json_path, json(arguments, targets, measured, seed)).map_err(failed)?;
    Ok([html, tsv, json_path])
}

/// Everything, for programs.
pub fn json(arguments: &QuickArguments, targets: &[Target], measured: &[Measured], seed: u64) -> String {
    #[derive(Serialize)]
    struct Results<'a> {
        schema: u32,
        targets: &'a [Target],
        base: &'a str,
        workload: crate::session::Workload,
        rounds: usize,
        seconds: f64,
        threads: u32,
        seed: u64,
        ratios: Vec<RatioRow<'a>>,
        measured: &'a [Measured],
    }
    #[derive(Serialize)]
    struct RatioRow<'a> {
        step: String,
        target: &'a str,
        #[serde(flatten)]
        ratio: tables::Ratio,
        invalid: Option<String>,
    }
    let base = targets.len() - 1;
    let steps = step_names(measured);
    let ratios = steps.iter().flat_map(|step| {
        (0..base).filter_map(move |index| {
            Some(RatioRow {
                step: step.clone(),
                target: &targets[index].name,
                ratio: paired_ratio(measured, step, index, base)?,
                invalid: tables::invalid(measured, step, &[index, base]),
            })
        })
    });
    let results = Results {
        schema: 1,
        targets,
        base: &targets[base].name,
        workload: arguments.workload,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        threads: arguments.threads,
        seed,
        ratios: ratios.collect(),
        measured,
    };
    serde_json::to_string_pretty(&results).expect("plain data serialises")
}

/// The 28 columns of every step, then what the lab adds.
fn tab_separated(targets: &[Target], measured: &[Measured]) -> String {
    let mut text =
        String::from("# one line per engine, round and step; columns as of RocksDB's benchmark scripts\n");
    let _ =
        writeln!(text, "{}\tengine\tround\tlongest_gap_ms\twriter_achieved\tper_second", COLUMNS.join("\t"));
    for m in measured {
        let target = &targets[m.target].name;
        let line = summary_line(m, target, &format!("round{}", m.round + 1)).join("\t");
        let per_second: Vec<String> = m.result.per_second.iter().map(u64::to_string).collect();
        let _ = writeln!(
            text,
            "{line}\t{target}\t{}\t{:.1}\t{:.3}\t{}",
            m.round + 1,
            m.result.longest_gap_ms,
            m.result.writer_achieved,
            per_second.join(",")
        );
    }
    text
}

/// A number with thousands set apart.
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in seconds since the epoch as RFC 3339 in UTC.
pub fn rfc3339(seconds: u64) -> String {
    let days = seconds / 86_400;
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #eef1f4; --line: #c9d0d8;
  --good: #1a6e34; --bad: #a4281c; --bar: #3d6ea8; --base: #9aa5b1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171a; --soft: #20252a; --line: #3a424a;
  --good: #6ccf8b; --bad: #ff8d7f; --bar: #7fb0ea; --base: #66717d; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { background: var(--soft); }
.small { font-size: 0.8rem; } .good { color: var(--good); } .bad { color: var(--bad); }
svg { max-width: 100%; height: auto; } svg.chart { min-width: 34rem; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
pre { background: var(--soft); padding: 0.6rem; overflow-x: auto; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; } dd { margin: 0; }
";

fn page(arguments: &QuickArguments, targets: &[Target], measured: &[Measured], seed: u64) -> String {
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let title = names.join(" and ");
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n",
        escape(&title)
    );
    summary(&mut html, targets, measured);
    relative(&mut html, targets, measured);
    bars(&mut html, targets, measured);
    per_second(&mut html, targets, measured);
    details(&mut html, targets, measured);
    host(&mut html);
    reproduce(&mut html, arguments, targets, seed);
    html.push_str("</body></html>\n");
    html
}

/// The comparison in a sentence.
fn summary(html: &mut String, targets: &[Target], measured: &[Measured]) {
    let base = targets.len() - 1;
    for (index, target) in targets[..base].iter().enumerate() {
        let ratios: Vec<_> = step_names(measured)
            .iter()
            .filter_map(|step| paired_ratio(measured, step, index, base))
            .collect();
        let ahead = ratios.iter().filter(|ratio| ratio.min > 1.0).count();
        let behind = ratios.iter().filter(|ratio| ratio.max < 1.0).count();
        let _ = writeln!(
            html,
            "<p><b>{}</b> was faster than {} in every round on {ahead} of {} steps and slower in every round on \
             {behind}; on the others the rounds disagree.</p>",
            escape(&target.name),
            escape(&targets[base].name),
            ratios.len()
        );
    }
}

/// Throughput and paired ratios.
fn relative(html: &mut String, targets: &[Target], measured: &[Measured]) {
    let base = targets.len() - 1;
    html.push_str("<h2>Throughput</h2>\n<div class=\"scroll\"><table><thead><tr><th>step</th>");
    for target in targets {
        let _ = write!(html, "<th>{}<br>ops/s</th>", escape(&target.name));
    }
    for target in &targets[..base] {
        let _ = write!(
            html,
            "<th>{}<br>/ {}</th><th>min..max</th>",
            escape(&target.name),
            escape(&targets[base].name)
        );
    }
    html.push_str("</tr></thead><tbody>\n");
    for step in step_names(measured) {
        let _ = write!(html, "<tr><td>{}</td>", escape(&step));
        for index in 0..targets.len() {
            let cell = median_ops(measured, &step, index).map_or("NA".to_string(), thousands);
            let _ = write!(html, "<td>{cell}</td>");
        }
        for index in 0..base {
            match paired_ratio(measured, &step, index, base) {
                Some(_) if tables::invalid(measured, &step, &[index, base]).is_some() => {
                    let why = tables::invalid(measured, &step, &[index, base]).unwrap_or_default();
                    let _ = write!(html, "<td colspan=\"2\">INVALID: {}</td>", escape(&why));
                }
                Some(ratio) => {
                    // The sign is said by the arrow too, not by colour alone.
                    let (class, arrow) = match (ratio.min > 1.0, ratio.max < 1.0) {
                        (true, _) => ("good", " \u{25B2}"),
                        (_, true) => ("bad", " \u{25BC}"),
                        _ => ("", ""),
                    };
                    let _ = write!(
                        html,
                        "<td class=\"{class}\">{:.2}{arrow}</td><td>{:.2}..{:.2}</td>",
                        ratio.median, ratio.min, ratio.max
                    );
                }
                None => html.push_str("<td>NA</td><td>NA</td>"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str(
        "</tbody></table></div>\n<p class=\"small\">Medians over rounds. Ratios are paired by round; an arrow means \
         that all rounds agree.</p>\n",
    );
}

/// Ratios as bars with the spread as a whisker.
fn bars(html: &mut String, targets: &[Target], measured: &[Measured]) {
    let base = targets.len() - 1;
    for (index, target) in targets[..base].iter().enumerate() {
        let rows: Vec<_> = step_names(measured)
            .into_iter()
            .filter_map(|step| paired_ratio(measured, &step, index, base).map(|ratio| (step, ratio)))
            .collect();
        let largest = rows.iter().map(|(_, ratio)| ratio.max).fold(1.0, f64::max) * 1.1;
        let x = |ratio: f64| 180.0 + ratio / largest * 480.0;
        let height = rows.len() * 28 + 40;
        let _ = write!(
            html,
            "<h2>{} relative to {}</h2>\n<div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 720 {height}\" role=\"img\" aria-label=\"ratios per step\">\n",
            escape(&target.name),
            escape(&targets[base].name)
        );
        for (row, (step, ratio)) in rows.iter().enumerate() {
            let y = row * 28 + 8;
            let _ = writeln!(
                html,
                "<text x=\"172\" y=\"{}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"180\" y=\"{y}\" width=\"{:.1}\" height=\"16\" fill=\"var(--bar)\"/>\
                 <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{m}\" y2=\"{m}\" stroke=\"var(--ink)\" stroke-width=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{:.2}</text>",
                y + 13,
                escape(step),
                x(ratio.median) - 180.0,
                x(ratio.min),
                x(ratio.max),
                x(ratio.max) + 6.0,
                y + 13,
                ratio.median,
                m = y + 8
            );
        }
        let _ = write!(
            html,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1}\" stroke=\"var(--base)\" stroke-dasharray=\"4 3\"/>\
             <text x=\"{0:.1}\" y=\"{2}\" text-anchor=\"middle\">1 = {3}</text>\n</svg></div>\n",
            x(1.0),
            height - 28,
            height - 10,
            escape(&targets[base].name)
        );
    }
}

/// One small chart per step and engine: operations in each second of the last round.
fn per_second(html: &mut String, targets: &[Target], measured: &[Measured]) {
    html.push_str("<h2>Second by second, last round</h2>\n<div class=\"scroll\"><table><tbody>\n");
    let last = measured.iter().map(|m| m.round).max().unwrap_or(0);
    for step in step_names(measured) {
        let of_step: Vec<_> = measured
            .iter()
            .filter(|m| m.round == last && m.step == step && m.result.per_second.len() > 1)
            .collect();
        let largest = of_step.iter().flat_map(|m| &m.result.per_second).copied().max().unwrap_or(1).max(1);
        for m in of_step {
            let count = m.result.per_second.len();
            let points: Vec<String> = m
                .result
                .per_second
                .iter()
                .enumerate()
                .map(|(i, ops)| {
                    let x = i as f64 / (count - 1) as f64 * 156.0 + 2.0;
                    format!("{x:.1},{:.1}", 30.0 - *ops as f64 / largest as f64 * 28.0)
                })
                .collect();
            let _ = writeln!(
                html,
                "<tr><td>{}</td><td>{}</td><td><svg width=\"160\" height=\"32\" viewBox=\"0 0 160 32\" role=\"img\" \
                 aria-label=\"operations per second\"><polyline points=\"{}\" fill=\"none\" stroke=\"var(--bar)\" \
                 stroke-width=\"2\"/></svg></td><td>longest gap {:.1} ms</td></tr>",
                escape(&step),
                escape(&targets[m.target].name),
                points.join(" "),
                m.result.longest_gap_ms
            );
        }
    }
    html.push_str("</tbody></table></div>\n");
}

/// Every column of every step.
fn details(html: &mut String, targets: &[Target], measured: &[Measured]) {
    html.push_str("<h2>All columns</h2>\n");
    for (index, target) in targets.iter().enumerate() {
        let _ = write!(
            html,
            "<h3>{}</h3><div class=\"scroll\"><table class=\"small\"><thead><tr><th>test</th>",
            escape(&target.name)
        );
        let shown: Vec<usize> = (0..COLUMNS.len()).filter(|&c| COLUMNS[c] != "test").collect();
        shown.iter().for_each(|&c| {
            let _ = write!(html, "<th>{}</th>", COLUMNS[c]);
        });
        html.push_str("</tr></thead><tbody>\n");
        for m in measured.iter().filter(|m| m.target == index) {
            let line = summary_line(m, &target.name, &format!("round{}", m.round + 1));
            let _ = write!(html, "<tr><td>{}</td>", escape(&m.step));
            shown.iter().for_each(|&c| {
                let _ = write!(html, "<td>{}</td>", escape(&line[c]));
            });
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
    }
}

/// The machine.
fn host(html: &mut String) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let cpuinfo = read("/proc/cpuinfo");
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_string()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let facts = [
        ("processor", format!("{} ({cores} available)", field(&cpuinfo, "model name"))),
        ("memory", memory),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("huge pages", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    ];
    html.push_str("<h2>Host</h2>\n<dl>\n");
    for (name, value) in facts {
        let value = if value.is_empty() { "not available".to_string() } else { value };
        let _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    html.push_str("</dl>\n");
}

fn reproduce(html: &mut String, arguments: &QuickArguments, targets: &[Target], seed: u64) {
    let engines: Vec<String> = targets
        .iter()
        .map(|target| match &target.source {
            Source::Library(path) if !target.name.contains('@') => {
                format!("{}={}", target.name, path.display())
            }
            _ => target.name.clone(),
        })
        .collect();
    let mut command = format!(
        "outcrop lab quick --engines {} --rounds {} --seconds {} --threads {} --seed {seed}",
        engines.join(","),
        arguments.rounds,
        arguments.seconds,
        arguments.threads
    );
    if let Some(keys) = arguments.keys {
        let _ = write!(command, " --keys {keys}");
    }
    let _ = write!(
        html,
        "<h2>How it was measured</h2>\n<p>Each engine ran in its own process, in alternating order, with the same \
         seeds within a round. Pairs of 20 and 400 bytes, blocks of 8 KiB, bloom filters of 10 bits, leveled \
         compaction with dynamic level bytes, memtables and files of 16 MiB. Latencies are service times of a closed \
         loop.</p>\n<pre>{}</pre>\n",
        escape(&command)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_read_well() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(rfc3339(1_795_235_645), "2026-11-21T04:34:05Z");
    }

    #[test]
    fn names_cannot_break_the_page() {
        assert_eq!(escape("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
