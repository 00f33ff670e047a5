//! The lines printed of a benchmark that runs several times, `NAME[X3]`: RocksDB's own.
//!
//! ```text
//! readrandom [AVG 2 runs] : 401213 (\u{b1} 8122) ops/sec;   38.2 (\u{b1} 0.8) MB/sec
//! readrandom [AVG    3 runs] : ..       readrandom [MEDIAN 3 runs] : ..                     at the end
//! ```
//!
//! Source: RocksDB `tools/db_bench_tool.cc`, `CombinedStats`.

use crate::StepResult;

/// Runs of one benchmark.
pub(super) struct Repeated<'a> {
    name: &'a str,
    intervals: bool,
    ops: Vec<f64>,
    mb: Vec<f64>,
}

impl<'a> Repeated<'a> {
    /// Says how often it will run, if that is not once.
    pub fn new(name: &'a str, runs: u32, warm_ups: u32, intervals: bool) -> Repeated<'a> {
        if warm_ups > 0 {
            println!("Warming up benchmark by running {warm_ups} times");
        }
        if runs > 1 {
            println!("Running benchmark for {runs} times");
        }
        Repeated { name, intervals, ops: Vec::new(), mb: Vec::new() }
    }

    /// Takes a run, and prints what there is since the second.
    pub fn add(&mut self, result: &StepResult) {
        let seconds = result.seconds.max(1e-9);
        self.ops.push(result.ops.max(1) as f64 / seconds);
        if result.bytes > 0 {
            self.mb.push(result.bytes as f64 / 1_048_576.0 / seconds);
        }
        print!("{}", self.so_far());
    }

    /// Prints means and medians of all runs.
    pub fn end(&self) {
        print!("{}", self.whole());
    }

    fn has_bytes(&self) -> bool {
        self.mb.len() == self.ops.len()
    }

    fn so_far(&self) -> String {
        if self.ops.len() < 2 {
            return String::new();
        }
        let (name, runs) = (self.name, self.ops.len());
        let (ops, ops_half) = (mean(&self.ops), half(&self.ops));
        let mb = self.has_bytes().then(|| (mean(&self.mb), half(&self.mb)));
        if self.intervals {
            let bytes = mb
                .map_or(String::new(), |(mb, half)| format!("; ({:.1}, {:.1}) MB/sec", mb - half, mb + half));
            // Differences of whole numbers, as there.
            let (low, high) = (ops as i64 - ops_half as i64, ops as i64 + ops_half as i64);
            return format!("{name} [CI95 {runs} runs] : ({low}, {high}) ops/sec{bytes}\n");
        }
        let bytes = mb.map_or(String::new(), |(mb, half)| format!("; {mb:6.1} (\u{b1} {half:.1}) MB/sec"));
        format!("{name} [AVG {runs} runs] : {} (\u{b1} {}) ops/sec{bytes}\n", ops as i64, ops_half as i64)
    }

    fn whole(&self) -> String {
        if self.ops.len() < 2 {
            return String::new();
        }
        let (name, runs, ops) = (self.name, self.ops.len(), mean(&self.ops));
        let millis = 1000.0 / ops;
        let (mut average, mut middle) = (String::new(), String::new());
        if self.has_bytes() {
            average = format!("; {:6.1} (\u{b1} {:.1}) MB/sec", mean(&self.mb), half(&self.mb));
            middle = format!("; {:6.1} MB/sec", median(&self.mb));
        }
        format!(
            "\n{name} [AVG    {runs} runs] : {} (\u{b1} {}) ops/sec; {millis:.3} ms/op{average}\n\
             {name} [MEDIAN {runs} runs] : {} ops/sec{middle}\n",
            ops as i64,
            half(&self.ops) as i64,
            median(&self.ops) as i64
        )
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Half the width of a 95 % interval, as RocksDB's tool has it: values taken for normal, however few.
fn half(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    1.959964 * (squares / (values.len() - 1) as f64).sqrt() / (values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_summed_up_in_rocksdbs_words() {
        let mut all = Repeated { name: "readrandom", intervals: false, ops: Vec::new(), mb: Vec::new() };
        let run = |ops: u64| StepResult { ops, seconds: 2.0, bytes: ops * 524_288, ..StepResult::nothing() };
        all.add(&run(200));
        assert_eq!((all.so_far(), all.whole()), (String::new(), String::new()), "one run has no mean");
        all.add(&run(220));
        assert_eq!(
            all.so_far(),
            "readrandom [AVG 2 runs] : 105 (\u{b1} 9) ops/sec;   52.5 (\u{b1} 4.9) MB/sec\n"
        );
        all.add(&run(400));
        assert_eq!(
            all.whole(),
            "\nreadrandom [AVG    3 runs] : 136 (\u{b1} 62) ops/sec; 7.317 ms/op;   68.3 (\u{b1} 31.2) MB/sec\n\
             readrandom [MEDIAN 3 runs] : 110 ops/sec;   55.0 MB/sec\n"
        );
        all.intervals = true;
        assert!(
            all.so_far().starts_with("readrandom [CI95 3 runs] : (74, 198) ops/sec; ("),
            "{}",
            all.so_far()
        );
        all.mb.clear();
        assert!(all.whole().ends_with("readrandom [MEDIAN 3 runs] : 110 ops/sec\n"), "{}", all.whole());
    }
}
