//! One cycle, drawn: who writes with how many threads under which options, when it is killed, who opens it in which mode.

use super::MODES;
use crate::features::OUTCROP;
use crate::history::{Lasting, Shape};
use outcrop_base::random::SplitMix as Random;
use serde::{Deserialize, Serialize};

/// A cycle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the engine that writes.
    pub writer: String,
    /// Threads that write; without any the database is only opened.
    pub threads: usize,
    /// The writes.
    pub shape: Shape,
    /// Options of the database and of each column family, `name=value`, for everybody who opens it.
    pub options: Vec<String>,
    /// Microseconds from the opening to the kill.
    pub micros: u64,
    /// Those microseconds begin when the process does: it may be killed while it opens.
    pub while_opening: bool,
    /// The mode of recovery, a place in `MODES`.
    pub mode: usize,
    /// A process that opens the database in between, and is killed.
    pub recovering: Option<Box<Plan>>,
    /// The engines that open it then, one after the other.
    pub openers: Vec<String>,
}

impl Plan {
    /// The writes that are there after a kill.
    pub fn lasting(&self) -> Lasting {
        match self.options.iter().any(|option| option == "manual_wal_flush=true") {
            true => Lasting::Synced,
            false => Lasting::Acknowledged,
        }
    }

    /// The mode that the writer opens with: one that refuses nothing.
    pub fn writing_mode(&self) -> &'static str {
        MODES[2]
    }
}

/// The cycle of a history with this number. Modes and openers alternate, everything else is drawn.
pub fn plan(seed: u64, cycle: u64, engines: &[&str]) -> Plan {
    let mut random = Random::new(seed.wrapping_mul(1000).wrapping_add(cycle));
    let reference = engines.iter().find(|name| **name != OUTCROP).expect("two engines");
    let by = |ours: bool| if ours { OUTCROP } else { reference }.to_string();
    let mut options = vec![
        "write_buffer_size=65536".to_string(),
        "level0_file_num_compaction_trigger=3".to_string(),
        "max_bytes_for_level_base=262144".to_string(),
        "target_file_size_base=65536".to_string(),
    ];
    let flags = [
        ("manual_wal_flush=true", 4),
        ("enable_pipelined_write=true", 3),
        ("recycle_log_file_num=2", 3),
        ("wal_compression=kZSTD", 4),
        ("max_total_wal_size=100000", 3),
        ("atomic_flush=true", 5),
        ("wal_bytes_per_sync=4096", 6),
        ("allow_concurrent_memtable_write=false", 5),
        ("max_background_jobs=4", 2),
        ("max_write_buffer_number=4", 2),
    ];
    // RocksDB refuses these two together.
    let excluded = ("enable_pipelined_write=true", "atomic_flush=true");
    for (flag, one_in) in flags {
        let clashes = flag == excluded.1 && options.iter().any(|option| option == excluded.0);
        if random.one_in(one_in) && !clashes {
            options.push(flag.to_string());
        }
    }
    let shape = Shape {
        cycle,
        seed: random.next(),
        sync_one_in: random.pick(&[0, 1, 3, 10, 100]),
        keys: random.pick(&[3, 20, 60]),
        longest: random.pick(&[40, 1000, 4000]),
        merge_one_in: 0,
    };
    let first_is_ours = cycle.is_multiple_of(2);
    let openers = match random.one_in(3) {
        true => vec![by(first_is_ours), by(!first_is_ours)],
        false => vec![by(first_is_ours)],
    };
    let longest = random.pick(&[10, 13, 15, 17]);
    let micros = random.below(1 << longest);
    let mut plan = Plan {
        writer: by(!random.one_in(4)),
        threads: random.pick(&[1, 1, 2, 4, 8, 16, 32]),
        shape,
        options,
        micros,
        while_opening: random.one_in(6),
        mode: (seed.wrapping_add(cycle / 2) % MODES.len() as u64) as usize,
        recovering: None,
        openers,
    };
    if random.one_in(4) {
        let recovering = Plan {
            writer: by(random.one_in(2)),
            threads: 0,
            micros: random.below(30_000),
            while_opening: true,
            openers: Vec::new(),
            ..plan.clone()
        };
        plan.recovering = Some(Box::new(recovering));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_repeated_by_their_seed_and_reach_everything() {
        let plans: Vec<Plan> = (0..20)
            .flat_map(|seed| (0..12).map(move |cycle| plan(seed, cycle, &["11.8.1", OUTCROP])))
            .collect();
        assert_eq!(format!("{:?}", plans[17]), format!("{:?}", plan(1, 5, &["11.8.1", OUTCROP])));
        for mode in 0..MODES.len() {
            for engine in ["11.8.1", OUTCROP] {
                assert!(
                    plans.iter().any(|plan| plan.mode == mode && plan.openers[0] == engine),
                    "{mode} {engine}"
                );
            }
        }
        assert!(plans.iter().any(|plan| plan.threads == 32 && plan.lasting() == Lasting::Synced));
        assert!(plans.iter().any(|plan| plan.recovering.is_some() && plan.openers.len() == 2));
        let both = |plan: &Plan| {
            ["enable_pipelined_write=true", "atomic_flush=true"]
                .map(String::from)
                .iter()
                .all(|option| plan.options.contains(option))
        };
        assert!(!plans.iter().any(both), "RocksDB does not open that");
    }
}
