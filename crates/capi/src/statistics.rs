//! Statistics of options with `enable_statistics`, and the counters of the calling thread.

use crate::memory::{copy_out_text, give_back, hand_out};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_double, c_int, c_uchar};
use outcrop::{HistogramData, HistogramKind, PerfContext, PerfLevel, PerfMetric, StatsLevel, Ticker};
use std::sync::Arc;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_enable_statistics(options: *mut rocksdb_options_t) {
    boundary!((*options).statistics = Some(Arc::default()))
}

/// Null unless statistics are enabled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_string(
    options: *mut rocksdb_options_t,
) -> *mut c_char {
    boundary!(match &(*options).statistics {
        Some(statistics) => copy_out_text(&statistics.text()),
        None => std::ptr::null_mut(),
    })
}

/// 0 without statistics, and of numbers that no ticker has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_ticker_count(
    options: *mut rocksdb_options_t,
    ticker_type: u32,
) -> u64 {
    boundary!({
        let ticker = Ticker::ALL.get(ticker_type as usize).copied();
        (*options).statistics.as_ref().zip(ticker).map_or(0, |(statistics, ticker)| statistics.ticker(ticker))
    })
}

/// Values of one histogram: all 0 until they are asked for.
#[derive(Default)]
pub struct rocksdb_statistics_histogram_data_t {
    median: c_double,
    p95: c_double,
    p99: c_double,
    average: c_double,
    std_dev: c_double,
    max: c_double,
    min: c_double,
    count: u64,
    sum: u64,
}

impl From<&HistogramData> for rocksdb_statistics_histogram_data_t {
    fn from(data: &HistogramData) -> Self {
        Self {
            median: data.percentile(50.0),
            p95: data.percentile(95.0),
            p99: data.percentile(99.0),
            average: data.average(),
            std_dev: data.standard_deviation(),
            max: data.max() as c_double,
            min: data.min() as c_double,
            count: data.count(),
            sum: data.sum(),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_statistics_histogram_data_create() -> *mut rocksdb_statistics_histogram_data_t {
    boundary!(hand_out(rocksdb_statistics_histogram_data_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_statistics_histogram_data_destroy(
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    boundary!(give_back(data))
}

/// Leaves `data` as it is without statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_histogram_data(
    options: *mut rocksdb_options_t,
    histogram_type: u32,
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    boundary!({
        if let Some(statistics) = &(*options).statistics
            && let Some(kind) = HistogramKind::ALL.get(histogram_type as usize)
        {
            *data = (&statistics.histogram(*kind)).into();
        }
    })
}

macro_rules! values {
    ($($name:ident $field:ident $type:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(data: *mut rocksdb_statistics_histogram_data_t) -> $type {
                boundary!((*data).$field)
            }
        )*
    };
}

values! {
    rocksdb_statistics_histogram_data_get_median median c_double;
    rocksdb_statistics_histogram_data_get_p95 p95 c_double;
    rocksdb_statistics_histogram_data_get_p99 p99 c_double;
    rocksdb_statistics_histogram_data_get_average average c_double;
    rocksdb_statistics_histogram_data_get_std_dev std_dev c_double;
    rocksdb_statistics_histogram_data_get_max max c_double;
    rocksdb_statistics_histogram_data_get_min min c_double;
    rocksdb_statistics_histogram_data_get_count count u64;
    rocksdb_statistics_histogram_data_get_sum sum u64;
}

/// Without statistics it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_statistics_level(options: *mut rocksdb_options_t, level: c_int) {
    boundary!({
        if let Some(statistics) = &(*options).statistics {
            statistics.set_level(StatsLevel::from_number(i64::from(level)));
        }
    })
}

/// 0, which is nothing, without statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_statistics_level(options: *mut rocksdb_options_t) -> c_int {
    boundary!((*options).statistics.as_ref().map_or(0, |statistics| statistics.level() as c_int))
}

/// Stands for the calling thread's counters, whichever thread that is.
pub struct rocksdb_perfcontext_t(PerfContext);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_create() -> *mut rocksdb_perfcontext_t {
    boundary!({
        PerfContext::enable();
        hand_out(rocksdb_perfcontext_t(PerfContext))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_perfcontext_destroy(context: *mut rocksdb_perfcontext_t) {
    boundary!(give_back(context))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_perf_level(level: c_int) {
    boundary!(PerfContext::set_level(PerfLevel(level.clamp(0, i32::from(u8::MAX)) as u8)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_reset(_context: *mut rocksdb_perfcontext_t) {
    boundary!(PerfContext::reset())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_report(
    _context: *mut rocksdb_perfcontext_t,
    exclude_zero_counters: c_uchar,
) -> *mut c_char {
    boundary!(copy_out_text(&PerfContext::text(exclude_zero_counters != 0)))
}

/// 0 for numbers that no metric has.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_metric(_context: *mut rocksdb_perfcontext_t, metric: c_int) -> u64 {
    boundary!({
        let known = usize::try_from(metric).ok().and_then(PerfMetric::by_c_number);
        known.map_or(0, PerfContext::get)
    })
}
