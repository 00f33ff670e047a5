//! The process that does it: cycles of opening, everything at once, and closing.

use super::plan::Plan;
use super::readers;
use super::resources::{self, Held};
use super::shape::{Change, FAMILIES, Shape, head, head_key, key};
use super::upkeep;
use crate::batch::{self, Batch};
use crate::database::{Database, Handle};
use crate::library::Api;
use crate::options::Options;
use outcrop_base::random::SplitMix as Random;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// All that the threads of one opening share.
pub struct Stage<'s, 'a> {
    /// The engine.
    pub api: &'a Api,
    /// The database.
    pub database: &'s Database<'a>,
    /// Its column families, in the order of `FAMILIES`.
    pub handles: &'s [Handle],
    /// The writes.
    pub shape: Shape,
    /// The directory of everything.
    pub dir: &'s Path,
    /// The options it was opened with.
    pub options: &'s [String],
    /// Of each writer.
    pub clock: &'s [Hand],
    /// All writes were made.
    pub over: &'s AtomicBool,
    /// Moments that were judged.
    pub moments: &'s AtomicU64,
    /// Where draws begin.
    pub seed: u64,
}

/// Writes of one thread.
#[derive(Default)]
pub struct Hand {
    /// Writes that began.
    pub begun: AtomicU64,
    /// Writes that were acknowledged.
    pub done: AtomicU64,
}

/// The child.
///
/// # Errors
/// What is broken.
pub fn serve(library: &Path, dir: &Path, seed: u64, cycles: u64) -> Result<(), String> {
    let api = Api::load(library)?;
    let plan = Plan::draw(seed);
    let clock: Vec<Hand> = (0..plan.writers).map(|_| Hand::default()).collect();
    let moments = AtomicU64::new(0);
    let mut held = Vec::new();
    for cycle in 0..cycles {
        let written: u64 = clock.iter().map(|hand| hand.done.load(Ordering::SeqCst)).sum();
        let judged = moments.load(Ordering::SeqCst);
        let options = plan.options(cycle);
        one_cycle(&api, &plan, cycle, dir, &options, &clock, &moments)
            .map_err(|why| format!("cycle {cycle} of {plan:?}, {options:?}: {why}"))?;
        held.push(Held::now(dir)?);
        let after: u64 = clock.iter().map(|hand| hand.done.load(Ordering::SeqCst)).sum();
        println!("cycle: {} {}", after - written, moments.load(Ordering::SeqCst) - judged);
    }
    resources::judge(&held)
}

fn open<'a>(api: &'a Api, dir: &Path, options: &[String]) -> Result<(Database<'a>, Vec<Handle>), String> {
    let families = FAMILIES
        .iter()
        .map(|name| {
            let options = Options::new(api, options)?;
            options.create_missing()?;
            Ok(((*name).to_string(), options))
        })
        .collect::<Result<Vec<_>, String>>()?;
    Database::open(api, &dir.to_string_lossy(), families)
}

fn one_cycle(
    api: &Api,
    plan: &Plan,
    cycle: u64,
    dir: &Path,
    options: &[String],
    clock: &[Hand],
    moments: &AtomicU64,
) -> Result<(), String> {
    let path = dir.join("db");
    let (database, handles) = open(api, &path, options).map_err(|error| format!("opening: {error}"))?;
    let over = AtomicBool::new(false);
    let stage = Stage {
        api,
        database: &database,
        handles: &handles,
        shape: Shape { seed: plan.seed, longest: plan.longest },
        dir,
        options,
        clock,
        over: &over,
        moments,
        seed: plan.seed ^ cycle << 20,
    };
    // Nothing was written since the close, so all has to be there.
    readers::all_is_there(&stage).map_err(|why| format!("after opening: {why}"))?;
    let failures = Mutex::new(Vec::new());
    let note = |what: &str, outcome: Result<(), String>| {
        if let Err(why) = outcome {
            failures.lock().expect("no thread panics with it").push(format!("{what}: {why}"));
            over.store(true, Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        let (stage, note) = (&stage, &note);
        for reader in 0..plan.readers {
            scope.spawn(move || note("a reader", readers::read(stage, reader)));
        }
        scope.spawn(move || note("upkeep", upkeep::keep_up(stage)));
        scope.spawn(move || note("another that opens", open_beside(stage)));
        let writers: Vec<_> = (0..plan.writers)
            .map(|writer| scope.spawn(move || note("a writer", write(stage, writer, plan.writes))))
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
        stage.over.store(true, Ordering::SeqCst);
    });
    if let Some(first) = failures.into_inner().expect("no thread panics with it").into_iter().next() {
        return Err(first);
    }
    readers::all_is_there(&stage).map_err(|why| format!("at the end: {why}"))?;
    handles.iter().try_for_each(|handle| database.destroy_handle(*handle))?;
    database.close()
}

fn write(stage: &Stage<'_, '_>, writer: usize, writes: u64) -> Result<(), String> {
    let hand = &stage.clock[writer];
    let first = hand.done.load(Ordering::SeqCst);
    let mut random = Random::new(stage.seed ^ writer as u64);
    for number in first..first + writes {
        if stage.over.load(Ordering::SeqCst) {
            break;
        }
        let mut batch = Batch::new(stage.api)?;
        for (family, change) in stage.shape.draw(writer, number) {
            let handle = stage.handles[family];
            match change {
                Change::Put(row) => {
                    let value = stage.shape.value(writer, number, family, row);
                    batch.add(handle, batch::Change::Put(&key(writer, row), &value))?;
                }
                Change::Delete(row) => batch.add(handle, batch::Change::Delete(&key(writer, row)))?,
                Change::DeleteRange(from, to) => {
                    batch.add(handle, batch::Change::DeleteRange(&key(writer, from), &key(writer, to)))?;
                }
            }
        }
        for handle in stage.handles {
            batch.add(*handle, batch::Change::Put(&head_key(writer), &head(writer, number)))?;
        }
        hand.begun.store(number + 1, Ordering::SeqCst);
        stage.database.write(&batch, random.one_in(30), true)?;
        hand.done.store(number + 1, Ordering::SeqCst);
    }
    Ok(())
}

/// Opens and closes other databases of the same process, and this one, which has to be refused.
fn open_beside(stage: &Stage<'_, '_>) -> Result<(), String> {
    let mut number = 0;
    while !stage.over.load(Ordering::SeqCst) {
        let refused = open(stage.api, &stage.dir.join("db"), stage.options);
        match refused {
            Err(error) if error.to_lowercase().contains("lock") => {}
            Err(error) => return Err(format!("the database opened twice fails by {error}")),
            Ok(_) => return Err("the database was opened twice".into()),
        }
        let path = stage.dir.join(format!("other-{}", number % 2));
        let (database, handles) = open(stage.api, &path, stage.options)?;
        database.write_one(handles[1], batch::Change::Put(b"k", b"v"), number % 3 == 0, true)?;
        handles.iter().try_for_each(|handle| database.destroy_handle(*handle))?;
        database.close()?;
        number += 1;
    }
    Ok(())
}
