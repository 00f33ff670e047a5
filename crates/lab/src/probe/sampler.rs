//! A reading a second in a thread of its own, and whenever asked.
//!
//! Concurrency: the thread appends to a list behind a lock that nobody holds longer than a push or a copy.

use super::sources;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One look at everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Seconds since the sampler started.
    pub at: f64,
    /// A number for each series; [`sources::ABSENT`] if not known.
    pub values: Vec<i64>,
}

impl Reading {
    /// The number of a series.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.get(super::series_index(name)?).copied().filter(|value| *value != sources::ABSENT)
    }

    /// This reading, with the numbers of devices of a later one: what was written took until then to reach them.
    pub fn with_devices_of(mut self, later: &Reading) -> Reading {
        let both = self.values.iter_mut().zip(&later.values);
        for ((value, later), row) in both.zip(sources::SERIES.iter()) {
            if row.name.starts_with("device.") {
                *value = *later;
            }
        }
        self
    }
}

/// Readings of a process before and after a pause, as if there had been none: counts in the pause are left out.
pub fn joined(mut earlier: Vec<Reading>, later: &[Reading]) -> Vec<Reading> {
    let (Some(stopped), Some(again)) = (earlier.last().cloned(), later.first()) else { return earlier };
    let pause = again.at - stopped.at;
    let without_pause = |(index, value): (usize, &i64)| match (stopped.values[index], again.values[index]) {
        (sources::ABSENT, _) | (_, sources::ABSENT) => *value,
        _ if *value == sources::ABSENT || sources::SERIES[index].kind == sources::Kind::Level => *value,
        (before, after) => value - (after - before),
    };
    // The edge after the pause is the one before it.
    earlier.extend(later[1..].iter().map(|reading| Reading {
        at: reading.at - pause,
        values: reading.values.iter().enumerate().map(without_pause).collect(),
    }));
    earlier
}

/// Samples until it is dropped.
pub struct Sampler {
    device: String,
    process: u32,
    start: Instant,
    readings: Arc<Mutex<Vec<Reading>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Samples `device` and `process` every `interval`.
    pub fn start(device: &str, process: u32, interval: Duration) -> Sampler {
        let (stop, stopped) = channel();
        let start = Instant::now();
        let readings = Arc::new(Mutex::new(Vec::new()));
        let (list, name) = (Arc::clone(&readings), device.to_string());
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let reading = look(start, &name, process);
                list.lock().expect("nobody panics with it").push(reading);
            }
        });
        Sampler {
            device: device.to_string(),
            process,
            start,
            readings,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// A reading now, at the edge of a step.
    pub fn edge(&self) -> Reading {
        look(self.start, &self.device, self.process)
    }

    /// The readings between two edges, with the edges.
    pub fn between(&self, first: &Reading, last: &Reading) -> Vec<Reading> {
        let list = self.readings.lock().expect("nobody panics with it");
        let inside = list.iter().filter(|reading| reading.at > first.at && reading.at < last.at).cloned();
        std::iter::once(first.clone()).chain(inside).chain(std::iter::once(last.clone())).collect()
    }
}

fn look(start: Instant, device: &str, process: u32) -> Reading {
    let values = sources::read(device, Some(process));
    Reading { at: start.elapsed().as_secs_f64(), values }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_left_out_of_what_is_counted_and_not_of_what_is() {
        let of = |name: &str| crate::probe::series_index(name).unwrap();
        let reading = |at: f64, reads: i64, rss: i64| {
            let mut values = vec![sources::ABSENT; sources::SERIES.len()];
            (values[of("device.reads")], values[of("process.rss")]) = (reads, rss);
            Reading { at, values }
        };
        let before = vec![reading(0.0, 100, 7), reading(1.0, 110, 8)];
        // Others read 1000 blocks meanwhile; the clock of the second sampler began anew.
        let after = [reading(0.1, 1110, 9), reading(0.6, 1114, 5), reading(1.1, 1120, 6)];
        let expected =
            [reading(0.0, 100, 7), reading(1.0, 110, 8), reading(1.5, 114, 5), reading(2.0, 120, 6)];
        assert_eq!(joined(before.clone(), &after), expected);
        assert_eq!(joined(Vec::new(), &after), []);
        assert_eq!(joined(before.clone(), &[]), before);
    }

    #[test]
    fn devices_are_read_once_what_was_written_has_reached_them_and_nothing_else_is() {
        let of = |name: &str| crate::probe::series_index(name).unwrap();
        let reading = |at: f64, number: i64| {
            let mut values = vec![sources::ABSENT; sources::SERIES.len()];
            for name in ["device.writes", "cpu.user", "context_switches"] {
                values[of(name)] = number;
            }
            Reading { at, values }
        };
        let both = reading(1.0, 10).with_devices_of(&reading(1.5, 30));
        assert_eq!(both.at, 1.0);
        assert_eq!(
            ["device.writes", "cpu.user", "context_switches"].map(|name| both.get(name)),
            [Some(30), Some(10), Some(10)]
        );
    }

    #[test]
    fn readings_between_edges_are_in_order_and_include_the_edges() {
        let sampler = Sampler::start("", std::process::id(), Duration::from_millis(5));
        let first = sampler.edge();
        std::thread::sleep(Duration::from_millis(60));
        let last = sampler.edge();
        let all = sampler.between(&first, &last);
        assert!(all.len() >= 4, "{} readings", all.len());
        assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert_eq!((&all[0], all.last().unwrap()), (&first, &last));
        assert!(first.get("process.rss").unwrap() > 0);
        assert_eq!(first.get("device.reads"), None);
    }
}
