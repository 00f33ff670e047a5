//! `PerfContext` and `PerfLevel`: the counters of the calling thread.

use crate::glue::{Answer, illegal, not_implemented};
use jni_sys::{jbyte, jlong};
use outcrop::{PerfContext, PerfLevel, PerfMetric};

const OUT_OF_BOUNDS: jbyte = 6;

/// RocksJava's object has a handle, which stands for whichever thread calls.
pub(crate) fn context() -> Answer<jlong> {
    PerfContext::enable();
    Ok(1)
}

/// The counter of a getter: its name in words, with or without its `get_`.
pub(crate) fn metric(name: &str) -> Answer<u64> {
    let metric = PerfMetric::by_name(name).or_else(|| PerfMetric::by_name(name.strip_prefix("get_")?));
    match metric {
        Some(metric) => Ok(PerfContext::get(metric)),
        None => not_implemented(&format!("PerfContext: {name}")),
    }
}

/// The number of `PerfLevel`. RocksJava has none for the level that only times waits: it shows as out of bounds there.
/// Source: RocksDB `java/rocksjni/portal.h`, `PerfLevelTypeJni`.
pub(crate) fn level() -> Answer<jbyte> {
    Ok(match PerfContext::level().0 {
        own @ 0..=2 => own as jbyte,
        own @ 4..=6 => own as jbyte - 1,
        _ => OUT_OF_BOUNDS,
    })
}

/// Sets the level of a number of `PerfLevel`; the jar refuses those that are no level.
pub(crate) fn set_level(level: jbyte) -> Answer<()> {
    let own = match level {
        0..=2 => level as u8,
        3..=5 => level as u8 + 1,
        _ => return Err(illegal(format!("no level of the perf context: {level}"))),
    };
    PerfContext::set_level(PerfLevel(own));
    Ok(())
}

pub(crate) fn reset() -> Answer<()> {
    PerfContext::reset();
    Ok(())
}

/// As in RocksDB, counters with their names.
pub(crate) fn text(without_zeros: bool) -> Answer<String> {
    Ok(PerfContext::text(without_zeros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_numbers_of_rocksjava() {
        let set = |java| {
            assert!(set_level(java).is_ok());
            PerfContext::level()
        };
        assert_eq!(set(2), PerfLevel::COUNTS);
        assert_eq!(set(3), PerfLevel::TIMES_EXCEPT_MUTEX);
        assert_eq!(set(4), PerfLevel::CPU_TIMES);
        assert_eq!(set(5), PerfLevel::ALL);
        assert!(matches!(level(), Ok(5)));
        assert!(set_level(6).is_err());
        PerfContext::set_level(PerfLevel::WAITS);
        assert!(matches!(level(), Ok(OUT_OF_BOUNDS)));
    }
}
