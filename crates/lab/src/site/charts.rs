//! The drawings, as SVG inside the page: bars with intervals, ratios over versions, operations by second.

use super::Table;
use crate::judge::Verdict;
use crate::results::Results;
use maud::{Markup, html};
use std::fmt::Write;

/// Which part of the ratios a chart shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    /// Left end.
    pub from: f64,
    /// Right end.
    pub to: f64,
}

impl Axis {
    /// From 0 to the longest bar.
    pub fn full(table: &Table) -> Axis {
        let most = verdicts(table).map(|verdict| verdict.ratio).fold(1.0, f64::max);
        Axis { from: 0.0, to: (most * 1.05 * 10.0).ceil() / 10.0 }
    }

    /// From 0 to a little beyond what most bars reach.
    pub fn cut(table: &Table) -> Axis {
        Axis { from: 0.0, to: 1.0 + usual_distance(table).max(0.25) }
    }

    /// Around 1, as far as most bars reach.
    pub fn around_one(table: &Table) -> Axis {
        let distance = usual_distance(table);
        Axis { from: 1.0 - distance, to: 1.0 + distance }
    }

    /// Steps between marks, round numbers, 4 to 10 of them.
    fn marks(self) -> Vec<f64> {
        let span = self.to - self.from;
        let step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0]
            .into_iter()
            .find(|step| span / step <= 8.0)
            .unwrap_or(1000.0);
        let first = (self.from / step - 1e-9).ceil() as i64;
        (first..).map(|index| index as f64 * step).take_while(|mark| *mark <= self.to + 1e-9).collect()
    }
}

fn verdicts(table: &Table) -> impl Iterator<Item = Verdict> + '_ {
    table.iter().flatten().flatten().filter_map(|cell| cell.verdict)
}

/// How far from 1 three quarters of the ratios lie, and some room; 0.05 to 0.6.
fn usual_distance(table: &Table) -> f64 {
    let mut distances: Vec<f64> = verdicts(table).map(|verdict| (verdict.ratio - 1.0).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let usual = distances.get(distances.len() * 3 / 4).copied().unwrap_or(0.1);
    ((usual * 1.4).clamp(0.05, 0.6) * 20.0).ceil() / 20.0
}

/// A drawing under its caption.
pub(super) fn figure(caption: &str, drawing: &str) -> Markup {
    html! { figure { figcaption { (caption) } (maud::PreEscaped(drawing)) } }
}

fn escape(text: &str) -> String {
    html! { (text) }.into_string()
}

/// Width of wide drawings and of their column of names.
const WIDTH: f64 = 680.0;
const NAMES: f64 = 170.0;
/// Room for a value right of the longest bar.
const VALUES: f64 = 70.0;
const ROW: f64 = 20.0;

/// Relative throughput as bars, a group for each step, a bar for each target but the base.
pub(super) fn bars(results: &Results, base: usize, table: &Table, axis: Axis) -> String {
    let names = results.target_names();
    let scale = (WIDTH - NAMES - VALUES) / (axis.to - axis.from);
    let x = |value: f64| NAMES + (value.clamp(axis.from, axis.to) - axis.from) * scale;
    let groups: Vec<(usize, Vec<(usize, Verdict)>)> = table
        .iter()
        .enumerate()
        .map(|(step, cells)| {
            let judged = cells.iter().enumerate().filter(|(target, _)| *target != base);
            (step, judged.filter_map(|(target, cell)| Some((target, cell.as_ref()?.verdict?))).collect())
        })
        .filter(|(_, bars): &(usize, Vec<_>)| !bars.is_empty())
        .collect();
    let rows: usize = groups.iter().map(|(_, bars)| bars.len() + 1).sum();
    let height = rows as f64 * ROW + groups.len() as f64 * 6.0 + 30.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"Relative throughput as bars; \
         the table above has the numbers\">"
    );
    for mark in axis.marks() {
        let at = x(mark);
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"16\" y2=\"{:.0}\"/>\
             <text class=\"dim\" x=\"{at:.1}\" y=\"12\" text-anchor=\"middle\">{}</text>",
            height - 4.0,
            trimmed(mark)
        );
    }
    let mut y = 20.0;
    for (step, bars) in &groups {
        let _ = write!(
            svg,
            "<text class=\"strong\" x=\"0\" y=\"{:.1}\">{}</text>",
            y + 15.0,
            escape(&results.steps[*step])
        );
        y += ROW;
        for (target, verdict) in bars {
            bar(&mut svg, y, names[*target], *verdict, axis, &x);
            y += ROW;
        }
        y += 6.0;
    }
    let one = x(1.0);
    let _ = write!(
        svg,
        "<line class=\"one\" x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"16\" y2=\"{:.0}\"/></svg>",
        height - 4.0
    );
    svg
}

fn bar(svg: &mut String, y: f64, name: &str, verdict: Verdict, axis: Axis, x: &dyn Fn(f64) -> f64) {
    let ratio = verdict.ratio;
    // Where the axis does not start at 0 a bar's length means nothing: it grows from 1 instead.
    let origin = if axis.from > 0.0 { 1.0 } else { 0.0 };
    let (left, right) = (x(ratio.min(origin)), x(ratio.max(origin)));
    let middle = y + ROW / 2.0;
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect class=\"b-{}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        NAMES - 6.0,
        middle + 4.0,
        escape(&shortened(name)),
        verdict.word.word(),
        y + 3.0,
        (right - left).max(1.0),
        ROW - 6.0
    );
    let beyond = ratio > axis.to;
    if beyond {
        // A gap across the bar near its end.
        let _ = write!(
            svg,
            "<path d=\"M{:.1} {:.1} l8 {:.1}\" stroke=\"var(--paper)\" stroke-width=\"4\"/>",
            right - 22.0,
            y + ROW - 1.0,
            2.0 - ROW
        );
    }
    if let (Some(low), Some(high)) = (verdict.low, verdict.high)
        && low < axis.to
        && high > axis.from
    {
        // An end beyond the axis has no cap: the interval goes on.
        let (start, end) = (x(low), x(high));
        let cap = |at: f64, inside: bool| {
            if inside { format!("M{at:.1} {:.1} v6", middle - 3.0) } else { String::new() }
        };
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"{}M{start:.1} {middle:.1} H{end:.1}{}\"/>",
            cap(start, low >= axis.from),
            cap(end, high <= axis.to)
        );
    }
    let end = x(ratio.max(verdict.high.unwrap_or(ratio)).max(origin)).max(right);
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\">{ratio:.2} {}</text>",
        end + 5.0,
        middle + 4.0,
        verdict.word.sign()
    );
}

/// A name that fits the column of names.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 25 { name.to_string() } else { name.chars().take(24).chain(['…']).collect() }
}

/// A number without needless zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// One line of a chart over versions: name, and a verdict for each version that has one (the base is 1).
pub(super) type VersionLine = (String, Vec<Option<Verdict>>);

/// Ratios over versions in the order of their release.
pub(super) fn over_versions(title: &str, versions: &[String], lines: &[VersionLine]) -> String {
    const W: f64 = 320.0;
    const H: f64 = 190.0;
    const LEFT: f64 = 38.0;
    const DASHES: [&str; 4] = ["none", "6 3", "2 3", "8 3 2 3"];
    let all = || lines.iter().flat_map(|(_, points)| points.iter().flatten());
    let low = all().map(|point| point.low.unwrap_or(point.ratio)).fold(1.0, f64::min);
    let high = all().map(|point| point.high.unwrap_or(point.ratio)).fold(1.0, f64::max);
    let axis = Axis { from: (low * 0.97).max(0.0), to: high * 1.03 };
    let bottom = H - 34.0;
    let y = |value: f64| {
        bottom - (value.clamp(axis.from, axis.to) - axis.from) / (axis.to - axis.from) * (bottom - 24.0)
    };
    let x =
        |index: usize| LEFT + 12.0 + index as f64 * (W - LEFT - 34.0) / (versions.len().max(2) - 1) as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {W} {H}\" width=\"{W}\" role=\"img\" aria-label=\"{} over versions\">\
         <text class=\"strong\" x=\"0\" y=\"12\">{}</text>",
        escape(title),
        escape(title)
    );
    for mark in axis.marks().into_iter().step_by(2) {
        let class = if (mark - 1.0).abs() < 1e-9 { "one" } else { "axis" };
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{W}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"dim\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(mark),
            LEFT - 4.0,
            y(mark) + 4.0,
            trimmed(mark)
        );
    }
    for (index, version) in versions.iter().enumerate() {
        // Two rows of labels, so that neighbours do not meet.
        let _ = write!(
            svg,
            "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(index),
            bottom + 14.0 + 14.0 * (index % 2) as f64,
            escape(version)
        );
    }
    for (number, (_, points)) in lines.iter().enumerate() {
        let known: Vec<(usize, &Verdict)> =
            points.iter().enumerate().filter_map(|(index, point)| Some((index, point.as_ref()?))).collect();
        let path: Vec<String> =
            known.iter().map(|(index, point)| format!("{:.1} {:.1}", x(*index), y(point.ratio))).collect();
        let _ = write!(
            svg,
            "<path class=\"curve\" stroke-dasharray=\"{}\" d=\"M{}\"/>",
            DASHES[number % DASHES.len()],
            path.join(" L")
        );
        for (index, point) in known {
            if let (Some(low), Some(high)) = (point.low, point.high) {
                let _ = write!(
                    svg,
                    "<path class=\"whisker\" d=\"M{0:.1} {1:.1} V{2:.1}\"/>",
                    x(index),
                    y(low),
                    y(high)
                );
            }
            let _ = write!(
                svg,
                "<circle class=\"mark\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/>",
                x(index),
                y(point.ratio)
            );
        }
    }
    svg + "</svg>"
}

/// Something counted in each second, a line for each of `sessions`; those of `dashed` are dashed.
pub(super) fn by_second(title: &str, sessions: &[&[u64]], dashed: &[&[u64]], most: u64) -> String {
    const W: f64 = 320.0;
    const H: f64 = 130.0;
    const LEFT: f64 = 46.0;
    let bottom = H - 18.0;
    let all = || sessions.iter().map(|line| (line, "none")).chain(dashed.iter().map(|line| (line, "4 3")));
    let longest = all().map(|(line, _)| line).map(|seconds| seconds.len()).max().unwrap_or(1).max(2);
    let x = |second: usize| LEFT + second as f64 * (W - LEFT - 6.0) / (longest - 1) as f64;
    let y = |ops: u64| bottom - ops as f64 / most.max(1) as f64 * (bottom - 22.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {W} {H}\" width=\"{W}\" role=\"img\" aria-label=\"{0}: every second\">\
         <text class=\"strong\" x=\"0\" y=\"12\">{0}</text>",
        escape(title)
    );
    for (ops, text) in [(0, "0".to_string()), (most, short_count(most))] {
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{W}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"dim\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{text}</text>",
            y(ops),
            LEFT - 4.0,
            y(ops) + 4.0
        );
    }
    for (seconds, dashes) in all().filter(|(seconds, _)| !seconds.is_empty()) {
        let path: Vec<String> = seconds
            .iter()
            .enumerate()
            .map(|(second, ops)| format!("{:.1} {:.1}", x(second), y(*ops)))
            .collect();
        if seconds.len() == 1 {
            let _ = write!(
                svg,
                "<circle class=\"mark thin\" cx=\"{}\" cy=\"{:.1}\" r=\"3\"/>",
                LEFT + 10.0,
                y(seconds[0])
            );
            continue;
        }
        let _ = write!(
            svg,
            "<path class=\"curve thin\" stroke-dasharray=\"{dashes}\" d=\"M{}\"/>",
            path.join(" L")
        );
    }
    let _ = write!(
        svg,
        "<text class=\"dim\" x=\"{LEFT}\" y=\"{0}\">0 s</text><text class=\"dim\" x=\"{W}\" y=\"{0}\" text-anchor=\"end\">\
         {longest} s</text></svg>",
        H - 4.0
    );
    svg
}

fn short_count(count: u64) -> String {
    match count {
        n if n >= 1_000_000 => format!("{:.1}M", n as f64 / 1e6),
        n if n >= 1000 => format!("{:.0}k", n as f64 / 1e3),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_inside() {
        assert_eq!(Axis { from: 0.0, to: 1.3 }.marks().len(), 7);
        let marks = Axis { from: 0.85, to: 1.15 }.marks();
        assert!(marks.iter().any(|mark| (mark - 1.0).abs() < 1e-9) && marks[0] >= 0.85, "{marks:?}");
        assert_eq!(trimmed(1.0), "1");
        assert_eq!(trimmed(0.85), "0.85");
    }

    #[test]
    fn seconds_of_no_session_still_make_a_drawing() {
        let svg = by_second("a & b", &[&[], &[3, 4], &[2]], &[&[1, 1]], 4);
        assert!(svg.contains("a &amp; b") && svg.ends_with("</svg>"));
        assert_eq!((svg.matches("<path").count(), svg.matches("<circle").count()), (2, 1));
    }
}
