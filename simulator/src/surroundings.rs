//! Clock and threads of a simulation.

use outcrop_base::ErrorKind;
use outcrop_base::{Error, Result};
use outcrop_env::Clock;
use outcrop_env::threads::{JoinHandle, Task, Threads};
use parking_lot::world;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The simulation's time. The wall clock can be set; the other never goes back.
#[derive(Debug, Default)]
pub struct SimulatedClock {
    /// Microseconds that the wall clock is ahead.
    ahead: AtomicI64,
}

impl SimulatedClock {
    /// Sets the wall clock on or back by so many seconds.
    pub fn set_by(&self, seconds: i64) {
        self.ahead.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for SimulatedClock {
    fn now_micros(&self) -> u64 {
        (world::now() / 1000).saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    fn monotonic_nanos(&self) -> u64 {
        world::now()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        world::now()
    }

    fn sleep(&self, duration: Duration) {
        world::sleep(duration);
    }
}

/// Threads of the simulation.
#[derive(Debug)]
pub struct SimulatedThreads;

struct Joining(world::Joining);

impl JoinHandle for Joining {
    fn join(self: Box<Self>) -> Result<()> {
        self.0.join().map_err(|_| Error::new(ErrorKind::Aborted, "a thread panicked"))
    }
}

impl Threads for SimulatedThreads {
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        let spawned = world::spawn(name, task);
        let joining = spawned.map_err(|source| Error::io(format!("spawn thread {name}"), source))?;
        Ok(Box::new(Joining(joining)))
    }

    fn parallelism(&self) -> usize {
        4
    }
}
