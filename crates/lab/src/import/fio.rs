//! fio summaries: `sum.JOBS.FS.HOST.csv`, lines of writes/s, MB/s, sync latency, jobs, test.

use super::model::{Target, number};
use super::names::Names;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::summary_line::table_tag;

/// The five cells of a line: four numbers and a name.
pub(super) fn cells(text: &str) -> Option<([f64; 4], &str)> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    let [writes, megabytes, sync, jobs, test] = cells.as_slice() else { return None };
    if test.is_empty() || number(test).is_some() {
        return None;
    }
    Some(([number(writes)?, number(megabytes)?, number(sync)?, number(jobs)?], test))
}

/// Reads a whole file. A test measured twice has two targets, `#2` being the second.
pub(super) fn parse(source: &Source, sink: &mut Sink) {
    let tag = table_tag(&source.name);
    let mut names = Names::default();
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let Some(([writes, megabytes, sync, jobs], test)) = cells(text) else {
            sink.reject(line, "not 'w/s,MB/s,sync_us,jobs,test'");
            continue;
        };
        let configuration = tag.as_str().into();
        let target =
            Target { name: tag.as_str().into(), engine: "fio".into(), configuration, ..Target::default() };
        let target = names.unique(test, target, line, sink);
        let place = CellOrigin { target, step: test.into(), line };
        sink.number(&place, "w/s", "1/s", writes);
        sink.number(&place, "MB/s", "MB/s", megabytes);
        sink.number(&place, "sync_us", "us", sync);
        sink.number(&place, "jobs", "count", jobs);
    }
}
