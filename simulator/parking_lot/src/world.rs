//! The scheduler: which thread runs, and what time it is.
//!
//! ```text
//! thread 0 (main) --spawn--> 1, 2, ...       operating system's threads, of which all but one wait at their gates
//! step: at a lock, a wait, a sleep           the seed says whether another one goes on, and which
//! nobody can run                             time jumps to the first who waits for it; nobody does: a deadlock, told and ended
//! ```
//! The history of a seed is a function of the seed alone, as long as the program's steps are. [`trace`] sums it up: equal traces are
//! equal histories.

use std::cell::Cell;
use std::panic::Location;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The status of a process that ended because all its threads wait.
pub const DEADLOCK: i32 = 70;

/// The status of a process that took more steps than it may.
pub const ENDLESS: i32 = 71;

thread_local! {
    static ME: Cell<Option<usize>> = const { Cell::new(None) };
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// What the threads of the simulation wait for their turn at.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.changed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        *open = false;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runnable,
    /// For something at this address, or until a time.
    Waits {
        key: usize,
        until: Option<u64>,
    },
    Ended,
}

struct Thread {
    name: String,
    state: State,
    timed_out: bool,
    gate: Arc<Gate>,
    /// Where it gave up its turn.
    place: &'static Location<'static>,
}

struct World {
    random: u64,
    /// One step in so many has another thread go on.
    switch_one_in: u64,
    now: u64,
    steps: u64,
    most_steps: u64,
    trace: u64,
    threads: Vec<Thread>,
}

/// The rules of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Decides everything.
    pub seed: u64,
    /// One step in so many has another thread go on; at least 1.
    pub switch_one_in: u64,
    /// Nanoseconds since the epoch at which it begins.
    pub begins: u64,
    /// Steps after which the process is ended: it does not come to an end.
    pub most_steps: u64,
}

fn lock() -> MutexGuard<'static, Option<World>> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<R>(act: impl FnOnce(&mut World) -> R) -> R {
    act(lock().as_mut().expect("a thread of the simulation is in a simulation"))
}

impl World {
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn note(&mut self, what: u64) {
        self.trace = (self.trace ^ what).wrapping_mul(0x100_0000_01B3);
    }

    /// A step: time passes.
    fn step(&mut self) {
        self.steps += 1;
        self.now += 20 + self.draw() % 100;
        if self.steps > self.most_steps {
            self.tell("it does not come to an end");
            std::process::exit(ENDLESS);
        }
        self.wake_due();
    }

    fn wake_due(&mut self) {
        let now = self.now;
        for thread in &mut self.threads {
            if let State::Waits { until: Some(until), .. } = thread.state
                && until <= now
            {
                (thread.state, thread.timed_out) = (State::Runnable, true);
            }
        }
    }

    /// The next to run: drawn from those that can; if none can, time jumps.
    fn next(&mut self) -> usize {
        loop {
            let able: Vec<usize> =
                (0..self.threads.len()).filter(|&id| self.threads[id].state == State::Runnable).collect();
            if !able.is_empty() {
                let next = able[self.draw() as usize % able.len()];
                self.note(next as u64 + 1);
                return next;
            }
            let times = self.threads.iter().filter_map(|thread| match thread.state {
                State::Waits { until, .. } => until,
                _ => None,
            });
            let Some(first) = times.min() else {
                self.tell("a deadlock: all threads wait");
                std::process::exit(DEADLOCK);
            };
            self.now = self.now.max(first);
            self.wake_due();
        }
    }

    fn tell(&self, what: &str) {
        eprintln!("simulation: {what}, after {} steps", self.steps);
        for (id, thread) in self.threads.iter().enumerate() {
            eprintln!("  {id} {}: {:?} at {}", thread.name, thread.state, thread.place);
        }
    }

    fn add(&mut self, name: &str) -> (usize, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        self.threads.push(Thread {
            name: name.to_string(),
            state: State::Runnable,
            timed_out: false,
            gate: gate.clone(),
            place: Location::caller(),
        });
        (self.threads.len() - 1, gate)
    }
}

/// Runs `main` as the first thread of a simulation; one at a time in a process. Its threads must have ended when it does.
pub fn run<R>(rules: Rules, main: impl FnOnce() -> R) -> R {
    let mut world = World {
        random: rules.seed,
        switch_one_in: rules.switch_one_in.max(1),
        now: rules.begins,
        steps: 0,
        most_steps: rules.most_steps,
        trace: 0xCBF2_9CE4_8422_2325,
        threads: Vec::new(),
    };
    world.add("main");
    *lock() = Some(world);
    ME.set(Some(0));
    let result = main();
    ME.set(None);
    let running =
        with(|world| world.threads.iter().skip(1).filter(|thread| thread.state != State::Ended).count());
    assert_eq!(running, 0, "threads outlive their simulation");
    result
}

/// A thread of the simulation.
pub struct Joining {
    id: usize,
    thread: std::thread::JoinHandle<()>,
}

/// Starts a thread that runs `task` when its turn comes.
///
/// # Errors
/// The operating system's.
///
/// # Panics
/// Outside of a simulation.
pub fn spawn(name: &str, task: impl FnOnce() + Send + 'static) -> std::io::Result<Joining> {
    let (id, gate) = with(|world| world.add(name));
    let thread = std::thread::Builder::new().name(name.to_string()).spawn(move || {
        ME.set(Some(id));
        gate.wait();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
        end(id);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    })?;
    step();
    Ok(Joining { id, thread })
}

impl Joining {
    /// Waits for its end; the error is its panic.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<()> {
        self.join_while(None, || true)
    }

    /// The same; each time that `patience` has passed in the simulation, `ask` says whether it is to be asked again.
    #[track_caller]
    pub fn join_while(
        self,
        mut patience: Option<Duration>,
        mut ask: impl FnMut() -> bool,
    ) -> std::thread::Result<()> {
        while ME.get().is_some() && with(|world| world.threads[self.id].state != State::Ended) {
            if wait(key_of_end(self.id), patience.map(after)) && !ask() {
                patience = None;
            }
        }
        self.thread.join()
    }
}

fn key_of_end(id: usize) -> usize {
    // No object is at so low an address.
    1 + id
}

/// The running thread ends, and another goes on.
fn end(id: usize) {
    wake_all(key_of_end(id));
    ME.set(None);
    let gate = with(|world| {
        world.threads[id].state = State::Ended;
        let next = world.next();
        world.threads[next].gate.clone()
    });
    gate.open();
}

/// True in a thread of a simulation.
pub fn is_simulated() -> bool {
    ME.get().is_some()
}

/// A point at which another thread may go on.
#[track_caller]
pub fn step() {
    let Some(me) = ME.get() else { return };
    let place = Location::caller();
    let gates = with(|world| {
        world.step();
        if world.draw() % world.switch_one_in != 0 {
            return None;
        }
        let next = world.next();
        world.threads[me].place = place;
        (next != me).then(|| (world.threads[next].gate.clone(), world.threads[me].gate.clone()))
    });
    if let Some((next, mine)) = gates {
        next.open();
        mine.wait();
    }
}

/// Waits until somebody wakes those at `key`, or that time has come; true if it was the time.
#[track_caller]
pub fn wait(key: usize, until: Option<u64>) -> bool {
    let Some(me) = ME.get() else {
        std::thread::yield_now();
        return false;
    };
    let place = Location::caller();
    let gates = with(|world| {
        let thread = &mut world.threads[me];
        (thread.state, thread.timed_out, thread.place) = (State::Waits { key, until }, false, place);
        world.step();
        let next = world.next();
        (next != me).then(|| (world.threads[next].gate.clone(), world.threads[me].gate.clone()))
    });
    if let Some((next, mine)) = gates {
        next.open();
        mine.wait();
    }
    with(|world| world.threads[me].timed_out)
}

/// Wakes one of those that wait at `key`, drawn.
pub fn wake_one(key: usize) {
    wake(key, |world, waiting| vec![waiting[world.draw() as usize % waiting.len()]]);
}

/// Wakes all that wait at `key`.
pub fn wake_all(key: usize) {
    wake(key, |_, waiting| waiting.to_vec());
}

fn wake(key: usize, choose: impl FnOnce(&mut World, &[usize]) -> Vec<usize>) {
    if ME.get().is_none() {
        return;
    }
    with(|world| {
        let at = |thread: &Thread| matches!(thread.state, State::Waits { key: at, .. } if at == key);
        let waiting: Vec<usize> = (0..world.threads.len()).filter(|&id| at(&world.threads[id])).collect();
        if waiting.is_empty() {
            return;
        }
        for id in choose(world, &waiting) {
            world.threads[id].state = State::Runnable;
        }
    });
}

/// Nanoseconds since the epoch.
pub fn now() -> u64 {
    with(|world| {
        world.now += 1;
        world.now
    })
}

/// The time `duration` from now.
pub fn after(duration: Duration) -> u64 {
    with(|world| world.now.saturating_add(duration.as_nanos() as u64))
}

/// Time jumps on by `duration`: a clock that was set, or a machine that slept.
pub fn jump(duration: Duration) {
    with(|world| {
        world.now += duration.as_nanos() as u64;
        world.wake_due();
    });
}

/// Lets `duration` pass, for this thread.
#[track_caller]
pub fn sleep(duration: Duration) {
    let until = after(duration);
    // Nobody wakes those at no address.
    wait(0, Some(until));
}

/// A number below `most`, of the stream that decides everything.
pub fn draw(most: u64) -> u64 {
    with(|world| world.draw() % most.max(1))
}

/// Adds to the trace.
pub fn note(what: u64) {
    with(|world| world.note(what));
}

/// The history so far: which thread went on at each step, and all that was noted.
pub fn trace() -> u64 {
    lock().as_ref().map_or(0, |world| world.trace)
}

/// Steps so far.
pub fn steps() -> u64 {
    lock().as_ref().map_or(0, |world| world.steps)
}
