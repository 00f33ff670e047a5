//! Processor time, so that a run of CI says which step costs.

/// Of a second: how `/proc` counts it on every Linux.
const TICKS: f64 = 100.0;

/// Seconds of processors that this process has used, and those of its children that have ended. 0 where there is no `/proc`.
pub fn seconds() -> f64 {
    std::fs::read_to_string("/proc/self/stat").ok().and_then(|line| of_line(&line)).unwrap_or(0.0)
}

fn of_line(line: &str) -> Option<f64> {
    // The name before them may have anything in it.
    let (_, rest) = line.rsplit_once(')')?;
    // User and system time of the process, then of its children.
    let times = rest.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>());
    let ticks = times.collect::<Result<Vec<u64>, _>>().ok().filter(|times| times.len() == 4)?;
    Some(ticks.iter().sum::<u64>() as f64 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_and_its_children_are_added_whatever_its_name() {
        let line = "7 (a ) 1) S 1 7 7 0 -1 4194304 10 20 0 0 100 20 3000 4 20 0 1 0 99";
        assert_eq!(of_line(line), Some(31.24));
        assert_eq!(of_line("7 (a) S 1 7"), None);
    }
}
