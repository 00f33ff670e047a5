//! The drawings, as SVG inside the page: bars with intervals, ratios over versions, operations by second.

use super::Table;
use crate::analysis::judge::Verdict;
use crate::analysis::results::Results;
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

/// Width of wide drawings; names end and values begin where a narrow screen still shows them; then the bars.
const WIDTH: f64 = 720.0;
const NAMES: f64 = 190.0;
const VALUES: f64 = 196.0;
const PLOT: f64 = 258.0;
const ROW: f64 = 20.0;
/// Room above a group.
const GROUP: f64 = 6.0;

/// One line of a chart of bars: a step's name, or a target with what is known of it.
enum Line<'a> {
    Step(&'a str),
    Bar(&'a str, Verdict),
    Invalid(&'a str),
}

/// Relative throughput as bars, a group for each step, a bar for each target but the base.
pub(super) fn bars(results: &Results, base: usize, table: &Table, axis: Axis) -> String {
    let names = results.labels();
    let scale = (WIDTH - PLOT - 16.0) / (axis.to - axis.from);
    let x = |value: f64| PLOT + (value.clamp(axis.from, axis.to) - axis.from) * scale;
    let mut lines = Vec::new();
    for (step, cells) in results.steps.iter().zip(table) {
        let judged = cells.iter().zip(&names).enumerate().filter(|(target, _)| *target != base);
        let group: Vec<Line<'_>> = judged
            .filter_map(|(_, (cell, name))| {
                let cell = cell.as_ref()?;
                match cell.verdict {
                    Some(verdict) => Some(Line::Bar(name, verdict)),
                    None => cell.invalid.as_ref().map(|_| Line::Invalid(name)),
                }
            })
            .collect();
        if !group.is_empty() {
            lines.push(Line::Step(step));
            lines.extend(group);
        }
    }
    let groups = lines.iter().filter(|line| matches!(line, Line::Step(_))).count();
    let height = lines.len() as f64 * ROW + groups as f64 * GROUP + 46.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"Throughput relative to {} \
         as bars; the table has the numbers\">",
        escape(&names[base])
    );
    frame(&mut svg, axis, height, &names[base], &x);
    let mut y = 18.0;
    for line in &lines {
        y += if matches!(line, Line::Step(_)) { GROUP } else { 0.0 };
        let middle = y + ROW / 2.0;
        match line {
            Line::Step(step) => text(&mut svg, "strong", 0.0, middle + 5.0, "start", step),
            Line::Bar(name, verdict) => bar(&mut svg, y, name, *verdict, axis, &x),
            Line::Invalid(name) => {
                text(&mut svg, "", NAMES, middle + 4.0, "end", &shortened(name, 25));
                text(&mut svg, "dim", VALUES, middle + 4.0, "start", "invalid");
            }
        }
        y += ROW;
    }
    svg + "</svg>"
}

/// A text; `anchor` is start, middle or end.
fn text(svg: &mut String, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(words)
    );
}

/// Marks of the axis above, what it is below, and the line of the base.
fn frame(svg: &mut String, axis: Axis, height: f64, base: &str, x: &dyn Fn(f64) -> f64) {
    let bottom = height - 24.0;
    for mark in axis.marks() {
        let (at, class) = (x(mark), if (mark - 1.0).abs() < 1e-9 { "one" } else { "axis" });
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"16\" y2=\"{bottom:.0}\"/>"
        );
        text(svg, "dim", at, 12.0, "middle", &trimmed(mark));
    }
    let words = format!("relative QPS (1 = {})", shortened(base, 40));
    text(svg, "dim", (PLOT + WIDTH - 16.0) / 2.0, height - 8.0, "middle", &words);
}

fn bar(svg: &mut String, y: f64, name: &str, verdict: Verdict, axis: Axis, x: &dyn Fn(f64) -> f64) {
    let ratio = verdict.ratio;
    // Where the axis does not start at 0 a bar's length means nothing: it grows from 1 instead.
    let origin = if axis.from > 0.0 { 1.0 } else { 0.0 };
    let (left, right) = (x(ratio.min(origin)), x(ratio.max(origin)));
    let middle = y + ROW / 2.0;
    text(svg, "", NAMES, middle + 4.0, "end", &shortened(name, 25));
    text(svg, "", VALUES, middle + 4.0, "start", &format!("{ratio:.2} {}", verdict.word.sign()));
    let _ = write!(
        svg,
        "<rect class=\"b-{}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        verdict.word.word(),
        y + 3.0,
        (right - left).max(1.0),
        ROW - 6.0
    );
    if let (Some(low), Some(high)) = (verdict.low, verdict.high)
        && low < axis.to
        && high > axis.from
    {
        let (start, end) = (x(low), x(high));
        // An interval that goes on beyond the axis ends in an arrow, any other in a bar.
        let tip = |at: f64, inside: bool, back: f64| {
            let top = middle - 3.0;
            if inside {
                format!("M{at:.1} {top:.1} v6")
            } else {
                format!("M{:.1} {top:.1} L{at:.1} {middle:.1} l{back:.1} 3", at + back)
            }
        };
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"{} M{start:.1} {middle:.1} H{end:.1} {}\"/>",
            tip(start, low >= axis.from, 4.0),
            tip(end, high <= axis.to, -4.0)
        );
    }
    if ratio > axis.to || ratio < axis.from {
        // Two strokes across the bar: it is longer than drawn.
        let at = if ratio > axis.to { right - 14.0 } else { left + 8.0 };
        for shift in [0.0, 5.0] {
            let _ = write!(
                svg,
                "<path class=\"cut\" d=\"M{:.1} {:.1} l5 {:.1}\"/>",
                at + shift,
                y + ROW - 1.0,
                2.0 - ROW
            );
        }
    }
}

/// A name of at most `longest` characters. Characters are left out in the middle: targets differ in engine and
/// version, which come first, or in configuration and in being the base again, which come last.
fn shortened(name: &str, longest: usize) -> String {
    let count = name.chars().count();
    if count <= longest {
        return name.to_string();
    }
    let end = (longest - 1) / 2;
    let start = longest - 1 - end;
    name.chars().take(start).chain(['…']).chain(name.chars().skip(count - end)).collect()
}

/// A number without needless zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// One line of a chart over versions: name, and a verdict for each version that has one (the base is 1).
pub(super) type VersionLine = (String, Vec<Option<Verdict>>);

/// Patterns that tell lines apart: as stroke-dasharray, and in words.
const DASHES: [(&str, &str); 4] =
    [("none", "solid"), ("6 3", "dashed"), ("2 3", "dotted"), ("8 3 2 3", "dash-dotted")];
/// Lines of a chart whose numbers have room beside their ends.
const NUMBERED: usize = 10;

/// The meaning of the lines of a chart over versions: their patterns, or their numbers where patterns do not suffice.
pub(super) fn line_key(names: &[String]) -> String {
    let list = |each: &dyn Fn(usize, &String) -> String| {
        names.iter().enumerate().map(|(number, name)| each(number, name)).collect::<Vec<_>>().join(", ")
    };
    match names.len() {
        0 | 1 => String::new(),
        n if n <= DASHES.len() => {
            format!("Lines: {}.", list(&|number, name| format!("{name} ({})", DASHES[number].1)))
        }
        _ => format!(
            "Lines, by the number at their end: {}.",
            list(&|number, name| format!("{} {name}", number + 1))
        ),
    }
}

/// A step's charts over versions, with as many lines in each as have room; a line that has one point is a sentence.
pub(super) fn of_versions(step: &str, versions: &[String], lines: &[VersionLine]) -> Markup {
    let known = |(_, points): &VersionLine| points.iter().flatten().count();
    if lines.iter().map(known).sum::<usize>() < 2 {
        // The base alone.
        return html! {};
    }
    let numbered = lines.len() > DASHES.len();
    let drawn: Vec<(usize, &VersionLine)> =
        lines.iter().enumerate().filter(|(_, line)| known(line) > 1).collect();
    let alone = lines.iter().filter(|line| known(line) == 1).filter_map(|(name, points)| {
        let at = points.iter().position(Option::is_some)?;
        Some(format!("{step}: {name} has {} alone, {:.2}.", versions[at], points[at].as_ref()?.ratio))
    });
    html! {
        @for part in drawn.chunks(if numbered { NUMBERED } else { DASHES.len() }) {
            (maud::PreEscaped(over_versions(step, versions, part, numbered)))
        }
        @for sentence in alone { p.small { (sentence) } }
    }
}

/// Heights of the numbers of lines that end at `ends`: the same order, none closer to another than a number is high.
fn apart(ends: &[f64], bottom: f64) -> Vec<f64> {
    const HIGH: f64 = 12.0;
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let mut heights = ends.to_vec();
    for pair in order.windows(2) {
        heights[pair[1]] = heights[pair[1]].max(heights[pair[0]] + HIGH);
    }
    // Labels that were pushed below the plot go up again.
    let mut limit = bottom;
    for index in order.into_iter().rev() {
        heights[index] = heights[index].min(limit);
        limit = heights[index] - HIGH;
    }
    heights
}

/// Ratios over versions in the order of their release; `lines` with their places in the key.
fn over_versions(
    title: &str,
    versions: &[String],
    lines: &[(usize, &VersionLine)],
    numbered: bool,
) -> String {
    const W: f64 = 340.0;
    const LEFT: f64 = 40.0;
    const PLOT_HEIGHT: f64 = 150.0;
    let all = || lines.iter().flat_map(|(_, (_, points))| points.iter().flatten());
    let low = all().map(|point| point.low.unwrap_or(point.ratio)).fold(1.0, f64::min);
    let high = all().map(|point| point.high.unwrap_or(point.ratio)).fold(1.0, f64::max);
    // An interval that is wider than the ratios themselves would hide how they differ.
    let spread = all().map(|point| (point.ratio.ln()).abs()).fold(0.05, f64::max) * 1.5;
    let axis = Axis {
        from: (low * 0.97).max((-spread).exp() * 0.9).max(0.0),
        to: (high * 1.03).min(spread.exp() * 1.1),
    };
    let gap = (W - LEFT - 44.0) / (versions.len().max(2) - 1) as f64;
    // Neighbours' labels go to rows of their own where they would meet.
    let longest = versions.iter().map(|version| version.chars().count()).max().unwrap_or(0);
    let needed = ((longest as f64 * 6.8 + 6.0) / gap).ceil().max(1.0);
    // More rows than that are not read; some labels stay away instead.
    let every = (needed / 5.0).ceil() as usize;
    let rows = (needed / every as f64).ceil();
    let bottom = 24.0 + PLOT_HEIGHT;
    let height = bottom + 8.0 + rows * 13.0;
    let y = |value: f64| {
        bottom - (value.clamp(axis.from, axis.to) - axis.from) / (axis.to - axis.from) * (PLOT_HEIGHT - 6.0)
    };
    let x = |index: usize| LEFT + 18.0 + index as f64 * gap;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {W} {height:.0}\" width=\"{W}\" role=\"img\" aria-label=\"{}: relative QPS over versions\">",
        escape(title)
    );
    text(&mut svg, "strong", 0.0, 12.0, "start", &shortened(title, 48));
    // Every other mark, counted from 1, which is always there.
    let marks = axis.marks();
    let at_one = marks.iter().position(|mark| (mark - 1.0).abs() < 1e-9).unwrap_or(0);
    for mark in marks.into_iter().skip(at_one % 2).step_by(2) {
        let class = if (mark - 1.0).abs() < 1e-9 { "one" } else { "axis" };
        let at = y(mark);
        let _ =
            write!(svg, "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{W}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
        text(&mut svg, "dim", LEFT - 4.0, at + 4.0, "end", &trimmed(mark));
    }
    for (index, version) in versions.iter().enumerate().step_by(every) {
        let row = (index / every) as f64 % rows;
        text(&mut svg, "dim", x(index), bottom + 14.0 + 13.0 * row, "middle", version);
    }
    let mut ends = Vec::new();
    for (number, (_, points)) in lines {
        let known: Vec<(usize, &Verdict)> =
            points.iter().enumerate().filter_map(|(index, point)| Some((index, point.as_ref()?))).collect();
        let path: Vec<String> =
            known.iter().map(|(index, point)| format!("{:.1} {:.1}", x(*index), y(point.ratio))).collect();
        let dashes = DASHES[number % DASHES.len()].0;
        ends.extend(known.last().map(|(index, point)| (*number, x(*index), y(point.ratio))));
        let _ =
            write!(svg, "<path class=\"curve\" stroke-dasharray=\"{dashes}\" d=\"M{}\"/>", path.join(" L"));
        for (index, point) in known {
            let at = x(index);
            if let (Some(low), Some(high)) = (point.low, point.high) {
                let _ = write!(svg, "<path class=\"whisker\" d=\"M{at:.1} {:.1} V{:.1}\"/>", y(low), y(high));
            }
            let _ =
                write!(svg, "<circle class=\"mark\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\"/>", y(point.ratio));
        }
    }
    if numbered {
        // Above the names of the versions.
        let lowest = bottom - 8.0;
        let heights = apart(&ends.iter().map(|(_, _, height)| *height).collect::<Vec<_>>(), lowest);
        for ((number, at, _), height) in ends.iter().zip(heights) {
            text(&mut svg, "", at + 8.0, height + 4.0, "start", &(number + 1).to_string());
        }
    }
    svg + "</svg>"
}

/// Something counted in each second, a line for each of `sessions` that has two seconds or more; those of `dashed` are dashed.
/// `top` is the label of `most`, the upper end of the axis.
pub(super) fn by_second(title: &str, top: &str, sessions: &[&[u64]], dashed: &[&[u64]], most: u64) -> String {
    const W: f64 = 340.0;
    const H: f64 = 136.0;
    const LEFT: f64 = 62.0;
    let bottom = H - 20.0;
    let all = || sessions.iter().map(|line| (line, "none")).chain(dashed.iter().map(|line| (line, "4 3")));
    let longest = all().map(|(line, _)| line).map(|seconds| seconds.len()).max().unwrap_or(1);
    let x = |second: usize| LEFT + second as f64 * (W - LEFT - 6.0) / (longest.max(2) - 1) as f64;
    let y = |ops: u64| bottom - ops as f64 / most.max(1) as f64 * (bottom - 24.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {W} {H}\" width=\"{W}\" role=\"img\" aria-label=\"{}: every second\">",
        escape(title)
    );
    text(&mut svg, "strong", 0.0, 12.0, "start", &shortened(title, 48));
    for (ops, words) in [(0, "0"), (most, top)] {
        let at = y(ops);
        let _ = write!(svg, "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{W}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
        text(&mut svg, "dim", LEFT - 4.0, at + 4.0, "end", words);
    }
    for (seconds, dashes) in all().filter(|(seconds, _)| seconds.len() > 1) {
        let points =
            seconds.iter().enumerate().map(|(second, ops)| format!("{:.1} {:.1}", x(second), y(*ops)));
        let path: Vec<String> = points.collect();
        let _ = write!(
            svg,
            "<path class=\"curve thin\" stroke-dasharray=\"{dashes}\" d=\"M{}\"/>",
            path.join(" L")
        );
    }
    text(&mut svg, "dim", LEFT, H - 4.0, "start", "1 s");
    if longest > 1 {
        text(&mut svg, "dim", W - 1.0, H - 4.0, "end", &format!("{longest} s"));
    }
    svg + "</svg>"
}

/// A count in few characters.
pub(super) fn short_count(count: u64) -> String {
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
    fn shortened_names_of_different_targets_differ() {
        let names =
            ["rocksdb@11.8.1/aligned", "rocksdb@11.8.1/aligned (A/A)", "rocksdb@8.11.4/aligned (A/A)"];
        let short = names.map(|name| shortened(name, 25));
        assert_eq!(
            short,
            ["rocksdb@11.8.1/aligned", "rocksdb@11.8…ligned (A/A)", "rocksdb@8.11…ligned (A/A)"]
        );
        assert!(short.iter().all(|name| name.chars().count() <= 25));
    }

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
        let svg = by_second("a & b", "/s", &[&[], &[3, 4], &[2]], &[&[1, 1]], 4);
        assert!(svg.contains("a &amp; b") && svg.ends_with("</svg>"));
        assert_eq!(
            (svg.matches("<path").count(), svg.matches("<circle").count()),
            (2, 0),
            "a dot is no line"
        );
    }

    fn line(name: &str, ratios: &[Option<f64>]) -> VersionLine {
        use crate::analysis::judge::Word;
        let point = |ratio: f64| Verdict {
            ratio,
            low: None,
            high: None,
            pairs: 1,
            q: None,
            word: Word::Unknown,
            why: "",
        };
        (name.to_string(), ratios.iter().map(|ratio| ratio.map(point)).collect())
    }

    #[test]
    fn a_line_of_one_version_is_a_sentence_and_no_dot() {
        let versions = ["1", "2", "3"].map(str::to_string);
        let both = [line("a", &[Some(1.0), Some(1.1), Some(1.2)]), line("b", &[None, Some(0.8), None])];
        let text = of_versions("fillseq", &versions, &both).into_string();
        assert!(text.contains("fillseq: b has 2 alone, 0.80."), "{text}");
        assert_eq!((text.matches("class=\"curve\"").count(), text.matches("<circle").count()), (1, 3));
        assert_eq!(of_versions("s", &versions, &[line("base", &[Some(1.0), None, None])]).into_string(), "");
    }

    #[test]
    fn more_lines_than_patterns_have_their_numbers_at_their_ends() {
        let names = |count: usize| (0..count).map(|number| format!("l{number}")).collect::<Vec<_>>();
        assert_eq!(line_key(&names(1)), "");
        assert_eq!(line_key(&names(2)), "Lines: l0 (solid), l1 (dashed).");
        assert!(line_key(&names(5)).ends_with("1 l0, 2 l1, 3 l2, 4 l3, 5 l4."), "{}", line_key(&names(5)));
        let versions = ["v1", "v2"].map(str::to_string);
        let lines: Vec<VersionLine> =
            names(23).iter().map(|name| line(name, &[Some(1.0), Some(1.3)])).collect();
        let text = of_versions("s", &versions, &lines).into_string();
        assert_eq!(text.matches("<svg").count(), 3);
        for number in 1..=23 {
            // Each of the three axes has a 1, too.
            let count = text.matches(&format!(">{number}</text>")).count();
            assert_eq!(count, 1 + usize::from(number == 1) * 3, "{number}");
        }
        assert!(!of_versions("s", &versions, &lines[..4]).into_string().contains(">4</text>"));
        let heights = apart(&[10.0, 10.0, 170.0, 174.0, 11.0], 174.0);
        assert_eq!(heights, [10.0, 22.0, 162.0, 174.0, 34.0]);
    }
}
