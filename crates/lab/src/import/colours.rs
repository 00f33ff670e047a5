//! The colour rules of the posts and of the Insert Benchmark's page.
//!
//! | table | red or yellow | green or blue |
//! |---|---|---|
//! | posts | ratio <= 0.95 | ratio >= 1.05, else grey |
//! | page, relative | below 95 % | above 105 %, else plain |
//! | page, absolute | worst quarter of the gap | best quarter; grey below the SLA |

use crate::analysis::judge;

/// Ratios from here on down are red in the posts, from its counterpart on up green.
const RED_UP_TO: f64 = 0.95;
const GREEN_FROM: f64 = 1.05;
/// Share of the gap between best and worst that is coloured on the Insert Benchmark's page.
const QUARTER: f64 = 0.25;
/// Nothing is red where the worst is at least this share of the best.
const NARROW: f64 = 0.8;
/// Share of the asked insert rate below which a step with background writes does not count.
const SLA: f64 = 0.95;
/// Metrics of files that are better when low and that the lab has no name of its own for: of db_bench, of the Insert Benchmark, of fio.
const COSTS: [&str; 28] = [
    "pmax",
    "usec_op",
    "lsm_sz",
    "blob_sz",
    "c_wgb",
    "w_amp",
    "w_amp_legacy",
    "c_wsecs",
    "c_csecs",
    "b_rgb",
    "b_wgb",
    "stall%",
    "Nstall",
    "u_cpu",
    "s_cpu",
    "maxop",
    "rpq",
    "rkbpq",
    "wpi",
    "wkbpi",
    "cspq",
    "cpupq",
    "ccpupq",
    "dbgb",
    "vsz",
    "rss",
    "dbms_cpu",
    "sync_us",
];
/// Colour of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Worse, in the posts and in absolute tables.
    Red,
    /// Better, there.
    Green,
    /// Inside the band of the posts; below the SLA in absolute tables.
    Grey,
    /// Worse, in relative tables of the page.
    Yellow,
    /// Better, there.
    Blue,
    /// Nothing to say.
    Plain,
}

impl Colour {
    /// The sign that stands for the colour.
    pub fn sign(self) -> char {
        match self {
            Colour::Red | Colour::Yellow => '-',
            Colour::Green | Colour::Blue => '+',
            Colour::Grey => '=',
            Colour::Plain => ' ',
        }
    }

    /// Text in this colour on a terminal: the posts' text colours and the page's palette.
    pub(super) fn paint(self, text: &str) -> String {
        let code = match self {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Grey => "90",
            Colour::Yellow => "30;48;2;255;221;129",
            Colour::Blue => "30;48;2;129;255;249",
            Colour::Plain => return text.to_string(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Colour of a ratio in the posts. The printed two decimals decide, as they do for a reader.
pub fn post_colour(ratio: f64) -> Colour {
    let printed = (ratio * 100.0).round() / 100.0;
    if printed <= RED_UP_TO {
        Colour::Red
    } else if printed >= GREEN_FROM {
        Colour::Green
    } else {
        Colour::Grey
    }
}

/// Colour of a ratio on the Insert Benchmark's page.
pub fn page_colour(ratio: f64) -> Colour {
    let percent = (ratio * 100.0).round();
    if percent < 95.0 {
        Colour::Yellow
    } else if percent > 105.0 {
        Colour::Blue
    } else {
        Colour::Plain
    }
}

/// Which end of a range is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Rates.
    Higher,
    /// Response times, and costs per operation.
    Lower,
}

impl Better {
    /// The good end of a metric's range.
    pub(crate) fn of(metric: &str) -> Better {
        let named = COSTS.contains(&metric);
        // The lab's own names know their good end.
        let own = crate::probe::derive::metric(metric).is_some_and(|row| row.better == judge::Better::Lower);
        let cost = own || named || metric.contains("rt_") || metric.ends_with("/o");
        if cost { Better::Lower } else { Better::Higher }
    }

    /// The colour of a ratio, turned round where low is better.
    pub(crate) fn turn(self, colour: Colour) -> Colour {
        match (self, colour) {
            (Better::Higher, colour) => colour,
            (Better::Lower, Colour::Red) => Colour::Green,
            (Better::Lower, Colour::Green) => Colour::Red,
            (Better::Lower, Colour::Yellow) => Colour::Blue,
            (Better::Lower, Colour::Blue) => Colour::Yellow,
            (Better::Lower, colour @ (Colour::Grey | Colour::Plain)) => colour,
        }
    }
}

/// Colours of absolute values beside each other: the worst quarter of the gap red, the best green. `None`
/// stands for a target that missed the SLA: it is grey and does not count towards the best.
pub fn page_absolute_colours(values: &[Option<f64>], better: Better) -> Vec<Colour> {
    let met = || values.iter().flatten().copied();
    let (min, max) = (met().fold(f64::INFINITY, f64::min), met().fold(f64::NEG_INFINITY, f64::max));
    let gap = max - min;
    let (low, high) = match better {
        Better::Higher => (Colour::Red, Colour::Green),
        Better::Lower => (Colour::Green, Colour::Red),
    };
    let unless_narrow =
        |colour| if colour == Colour::Red && min >= NARROW * max { Colour::Plain } else { colour };
    values
        .iter()
        .map(|value| match value {
            None => Colour::Grey,
            Some(_) if gap <= 0.0 => Colour::Plain,
            Some(value) if *value <= min + QUARTER * gap => unless_narrow(low),
            Some(value) if *value >= max - QUARTER * gap => unless_narrow(high),
            Some(_) => Colour::Plain,
        })
        .collect()
}

/// Whether a step with background writes, such as `qr500`, reached the rate its name asks for. Steps without a
/// rate in their name always do.
pub fn meets_sla(step: &str, inserts_per_second: f64) -> bool {
    let rate = step.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let asked: Option<f64> = rate.split('.').next().and_then(|rate| rate.parse().ok());
    match asked {
        Some(asked) if step.starts_with('q') => inserts_per_second >= SLA * asked,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Colour::{Blue, Green, Grey, Plain, Red, Yellow};

    #[test]
    fn the_posts_colour_what_a_reader_sees() {
        let colours = [0.5, 0.9549, 0.95, 0.956, 1.0, 1.044, 1.045, 1.05, 2.0].map(post_colour);
        assert_eq!(colours, [Red, Red, Red, Grey, Grey, Grey, Green, Green, Green]);
    }

    #[test]
    fn the_page_colours_beyond_five_percent() {
        let colours = [0.94, 0.944, 0.95, 1.0, 1.05, 1.054, 1.056].map(page_colour);
        assert_eq!(colours, [Yellow, Yellow, Plain, Plain, Plain, Plain, Blue]);
    }

    #[test]
    fn absolute_values_are_coloured_by_quarters_of_the_gap() {
        let values = [Some(100.0), Some(125.0), Some(126.0), Some(174.0), Some(175.0), Some(200.0)];
        let colours = page_absolute_colours(&values, Better::Higher);
        assert_eq!(colours, [Red, Red, Plain, Plain, Green, Green]);
        let colours = page_absolute_colours(&values, Better::Lower);
        assert_eq!(colours, [Green, Green, Plain, Plain, Red, Red]);
    }

    #[test]
    fn nothing_is_red_when_all_are_close_and_grey_does_not_count() {
        let values = [Some(80.0), Some(100.0), None, Some(90.0)];
        assert_eq!(page_absolute_colours(&values, Better::Higher), [Plain, Green, Grey, Plain]);
        assert_eq!(page_absolute_colours(&[Some(1.0), Some(1.0)], Better::Higher), [Plain, Plain]);
        assert_eq!(page_absolute_colours(&[None], Better::Higher), [Grey]);
    }

    #[test]
    fn a_step_names_the_insert_rate_it_asks_for() {
        assert!(meets_sla("qr100", 95.0) && !meets_sla("qr100", 94.9));
        assert!(!meets_sla("q1000.2", 900.0));
        assert!(meets_sla("l.i0", 1.0) && meets_sla("readrandom", 0.0));
    }

    #[test]
    fn costs_are_better_when_low() {
        assert_eq!(Better::of("cpu/o"), Better::Lower);
        assert_eq!(Better::of("insert_rt_max"), Better::Lower);
        assert_eq!(Better::of("o/s"), Better::Higher);
        assert_eq!(Better::of("ips"), Better::Higher);
        for cost in [
            "w_amp", "stall%", "Nstall", "c_wsecs", "c_csecs", "lsm_sz", "u_cpu", "sync_us", "cpupq", "rpq",
            "rkbpq", "wpi", "cspq", "dbgb", "dbgb1", "rss",
        ] {
            assert_eq!(Better::of(cost), Better::Lower, "{cost}");
        }
        for rate in ["ops_sec", "qps", "w/s", "c_mbps", "rate_p99_floor"] {
            assert_eq!(Better::of(rate), Better::Higher, "{rate}");
        }
    }
}
