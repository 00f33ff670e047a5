//! `FlinkCompactionFilter`, which only the jar of Flink has: entries of state whose time to live is over go in compactions.
//!
//! ```text
//! state that is a value (or an entry of a map)      | timestamp:i64 BE at an offset | ... |      a value
//! state that is a list                              | element | element | ... |                  a value, or a merge operand
//!                                                     timestamp:i64 BE first in each element
//! ```
//! The elements of a list are in the order of their times: a filter takes the expired ones from its front. An operand has several of them
//! where a program adds them at once, or where operands were combined. Elements of one length are stepped over here; for others
//! Java says where the first that is left begins. A filter reads the clock, which is Java's, once in so many entries. The state's kind is
//! configured after the filter's factory was given to the options, and once.
//! Source: Flink's fork of RocksDB, `utilities/flink/flink_compaction_filter.cc`.

use crate::callbacks::{Global, Method};
use crate::env::Env;
use crate::glue::{Answer, dispose, handle, illegal, object};
use crate::objects::Filter;
use jni_sys::{jint, jlong, jobject, jvalue};
use outcrop::{CompactionFilter, FilterDecision};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// `FlinkCompactionFilter.Config`.
struct Config {
    state: State,
    /// Where the timestamp is in a value, in bytes.
    timestamp_offset: usize,
    /// Milliseconds, as the timestamps.
    ttl: i64,
    /// How many entries pass before the clock is read again.
    entries_per_time: i64,
}

/// `FlinkCompactionFilter.StateType`.
enum State {
    Disabled,
    Value,
    List(Elements),
}

/// How a list is taken apart.
enum Elements {
    /// They have this many bytes each.
    Fixed(usize),
    /// A `ListElementFilterFactory` of Java's: each filter has it make one of its own.
    Java(Global),
    /// Nobody says: what begins with an expired element stays.
    Unknown,
}

/// Configured once, for all filters of a factory.
type Holder = Arc<OnceLock<Config>>;

pub(crate) fn create_holder() -> Answer<jlong> {
    Ok(handle(Holder::default()))
}

pub(crate) fn dispose_holder(holder: jlong) -> Answer<()> {
    dispose::<Holder>(holder)
}

/// The settings of a configuration, in the order of its native.
pub(crate) struct Settings {
    pub(crate) state: jint,
    pub(crate) timestamp_offset: jint,
    pub(crate) ttl: jlong,
    pub(crate) entries_per_time: jlong,
    /// Not above zero for elements of different lengths.
    pub(crate) element_len: jint,
    pub(crate) factory: jobject,
}

/// Gives false if it was configured before.
pub(crate) fn configure(env: Env, holder: jlong, settings: &Settings) -> Answer<bool> {
    let elements = match usize::try_from(settings.element_len) {
        Ok(len) if len > 0 => Elements::Fixed(len),
        _ if settings.factory.is_null() => Elements::Unknown,
        _ => Elements::Java(Global::new(env, settings.factory)?),
    };
    let state = match settings.state {
        0 => State::Disabled,
        1 => State::Value,
        2 => State::List(elements),
        other => {
            return Err(illegal(format!("FlinkCompactionFilter: no type of state has the number {other}")));
        }
    };
    let timestamp_offset = usize::try_from(settings.timestamp_offset).map_err(|_| {
        illegal(format!("FlinkCompactionFilter: the timestamp is at {}", settings.timestamp_offset))
    })?;
    let config =
        Config { state, timestamp_offset, ttl: settings.ttl, entries_per_time: settings.entries_per_time };
    Ok(object::<Holder>(holder).set(config).is_ok())
}

/// A filter with a clock of Java's. It logs nothing, whatever `logger` is.
pub(crate) fn create(env: Env, holder: jlong, clock: jobject) -> Answer<jlong> {
    let filter = FlinkFilter {
        holder: object::<Holder>(holder).clone(),
        current_timestamp: Method::of(env, clock, c"currentTimestamp", c"()J")?,
        clock: Global::new(env, clock)?,
        now: Mutex::new(Now { read_in: 0, millis: i64::MIN }),
        java_elements: OnceLock::new(),
    };
    Ok(handle::<Filter>(Arc::new(filter)))
}

struct FlinkFilter {
    holder: Holder,
    clock: Global,
    current_timestamp: Method,
    now: Mutex<Now>,
    /// The `ListElementFilter` that Java made for this filter; `None` if that threw.
    java_elements: OnceLock<Option<ListElements>>,
}

/// `FlinkCompactionFilter.ListElementFilter`.
struct ListElements {
    object: Global,
    next_unexpired_offset: Method,
}

impl ListElements {
    /// Has a `ListElementFilterFactory` make one.
    fn of(factory: &Global) -> Option<ListElements> {
        factory.run(|env, factory| {
            let signature = "()Lorg/rocksdb/FlinkCompactionFilter$ListElementFilter;";
            let made = env.given(env.call(factory, "createListElementFilter", signature, &[])?)?;
            let next_unexpired_offset = Method::of(env, made, c"nextUnexpiredOffset", c"([BJJ)I")?;
            Ok(ListElements { object: Global::new(env, made)?, next_unexpired_offset })
        })
    }
}

struct Now {
    /// Entries until the clock is read again.
    read_in: i64,
    millis: i64,
}

impl FlinkFilter {
    /// The time, at most so many entries old. A clock that throws leaves the time as it was: nothing expires by it.
    fn now(&self, config: &Config) -> i64 {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.read_in <= 0 {
            now.read_in = config.entries_per_time;
            let read = self.clock.run(|env, clock| self.current_timestamp.call_long(env, clock, &[]));
            if let Some(millis) = read {
                now.millis = millis;
            }
        }
        now.read_in -= 1;
        now.millis
    }

    /// Where the first element of `list` begins that has not expired; `None` if Java cannot say.
    fn first_left(&self, elements: &Elements, list: &[u8], ttl: i64, now: i64) -> Option<usize> {
        let factory = match elements {
            Elements::Fixed(len) => return Some(first_left(list, *len, ttl, now)),
            Elements::Unknown => return None,
            Elements::Java(factory) => factory,
        };
        let made = self.java_elements.get_or_init(|| ListElements::of(factory)).as_ref()?;
        let offset = made.object.run(|env, object| {
            let arguments = [jvalue { l: env.new_bytes(list)? }, jvalue { j: ttl }, jvalue { j: now }];
            made.next_unexpired_offset.call_int(env, object, &arguments)
        })?;
        usize::try_from(offset).ok()
    }

    /// The fate of a value, or of a merge operand of a list.
    fn judge(&self, config: &Config, bytes: &[u8]) -> FilterDecision {
        let now = self.now(config);
        if !expired(bytes, config.timestamp_offset, config.ttl, now) {
            return FilterDecision::Keep;
        }
        match &config.state {
            State::Disabled => FilterDecision::Keep,
            State::Value => FilterDecision::Remove,
            State::List(elements) => without_front(bytes, self.first_left(elements, bytes, config.ttl, now)),
        }
    }
}

impl CompactionFilter for FlinkFilter {
    fn name(&self) -> &str {
        "FlinkCompactionFilter"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        self.holder.get().map_or(FilterDecision::Keep, |config| self.judge(config, value))
    }

    /// Only lists are made of operands.
    fn filter_merge_operand(&self, _level: usize, _key: &[u8], operand: &[u8]) -> FilterDecision {
        match self.holder.get() {
            Some(config) if matches!(config.state, State::List(_)) => self.judge(config, operand),
            _ => FilterDecision::Keep,
        }
    }
}

/// A list without what is before `left`, where its first element begins that has not expired; `None` if Java cannot say.
fn without_front(list: &[u8], left: Option<usize>) -> FilterDecision {
    match left {
        None | Some(0) => FilterDecision::Keep,
        Some(left) if left >= list.len() => FilterDecision::Remove,
        Some(left) => FilterDecision::ChangeValue(list[left..].to_vec()),
    }
}

/// Whether the time at `offset` of `bytes` and `ttl` together are over. Bytes that have no time there never expire.
fn expired(bytes: &[u8], offset: usize, ttl: i64, now: i64) -> bool {
    let Some(time) = bytes.get(offset..).and_then(|rest| rest.first_chunk()) else { return false };
    i64::from_be_bytes(*time).saturating_add(ttl) <= now
}

/// Where the first element that has not expired begins, in a list of elements of `len` bytes.
fn first_left(list: &[u8], len: usize, ttl: i64, now: i64) -> usize {
    list.chunks(len).take_while(|element| expired(element, 0, ttl, now)).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_expires_once_its_time_and_its_life_are_over() {
        let value = [&[9][..], &1000i64.to_be_bytes(), b"value"].concat();
        assert!(!expired(&value, 1, 500, 1499));
        assert!(expired(&value, 1, 500, 1500));
        assert!(!expired(&value[..8], 1, 500, i64::MAX));
        let endless = i64::MAX.to_be_bytes();
        assert!(!expired(&endless, 0, 1, i64::MAX - 1));
        assert!(!expired(&1i64.to_be_bytes(), 0, i64::MAX, 5));
    }

    #[test]
    fn the_expired_front_of_a_list_goes() {
        let list: Vec<u8> =
            [10i64, 20, 30].iter().flat_map(|time| [&time.to_be_bytes()[..], b"xx"].concat()).collect();
        assert_eq!(first_left(&list, 10, 5, 14), 0);
        assert_eq!(first_left(&list, 10, 5, 15), 10);
        assert_eq!(first_left(&list, 10, 5, 26), 20);
        assert_eq!(first_left(&list, 10, 5, 35), 30);
        assert_eq!(first_left(&list[..25], 10, 5, 35), 20, "an element that is cut off has no time");
    }

    #[test]
    fn elements_that_live_stay_whatever_expired_before_them() {
        assert_eq!(without_front(b"oldold,new", Some(7)), FilterDecision::ChangeValue(b"new".to_vec()));
        assert_eq!(without_front(b"old", Some(4)), FilterDecision::Remove);
        assert_eq!(without_front(b"new", Some(0)), FilterDecision::Keep);
        assert_eq!(without_front(b"old,new", None), FilterDecision::Keep);
    }
}
