//! `daily_offpeak_time_utc`: the hours in which compactions that are due within a day are done already.
//!
//! Source: RocksDB `options/offpeak_time_info.cc`.

const DAY: u64 = 24 * 60 * 60;

/// `HH:mm-HH:mm`, two different times, as seconds since midnight: the end is that of its minute.
pub fn parse(text: &str) -> Option<(u64, u64)> {
    let seconds = |time: &str| {
        let (hours, minutes) = time.split_once(':')?;
        let number =
            |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        (time.len() == 5 && hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60)
    };
    let (start, end) = text.split_once('-')?;
    let (start, end) = (seconds(start)?, seconds(end)?);
    (start != end).then_some((start, end + 59))
}

/// How much earlier than due a periodic compaction is done at `now`, seconds since the epoch: in these hours, what would come due before
/// they begin again; else 0.
pub fn seconds_ahead(text: &str, now: u64) -> u64 {
    let Some((start, end)) = parse(text) else { return 0 };
    let time = now % DAY;
    let inside = if start < end { start <= time && time <= end } else { time <= end || start <= time };
    match inside {
        true if time < start => start - time,
        true => start + DAY - time,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn spans_are_two_different_times() {
        assert_eq!(parse("04:30-07:30"), Some((4 * HOUR + 1800, 7 * HOUR + 1859)));
        for wrong in ["", "04:30", "04:30-04:30", "4:30-07:30", "24:00-01:00", "01:60-02:00", "+1:00-02:00"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn inside_the_span_what_comes_before_the_next_is_ahead() {
        let day = 1000 * DAY;
        assert_eq!(seconds_ahead("04:00-06:00", day + 3 * HOUR), 0);
        assert_eq!(seconds_ahead("04:00-06:00", day + 4 * HOUR), 24 * HOUR);
        assert_eq!(seconds_ahead("04:00-06:00", day + 6 * HOUR), 22 * HOUR);
        assert_eq!(seconds_ahead("04:00-06:00", day + 6 * HOUR + 60), 0);
        assert_eq!(seconds_ahead("23:00-02:00", day + HOUR), 22 * HOUR);
        assert_eq!(seconds_ahead("23:00-02:00", day + 23 * HOUR + 1800), 23 * HOUR + 1800);
        assert_eq!(seconds_ahead("23:00-02:00", day + 12 * HOUR), 0);
    }
}
