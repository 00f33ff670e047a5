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
