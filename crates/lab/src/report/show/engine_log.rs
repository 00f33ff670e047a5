//! An engine's own log of one session.

use crate::analysis::results::Results;
use crate::store::{SessionRow, Store};

/// The log of a target's session in `block`, counted from 1, or of its last session that has one.
///
/// # Errors
/// Says of which blocks there is one.
pub fn engine_log(
    store: &Store,
    results: &Results,
    target: usize,
    block: Option<i64>,
) -> Result<String, String> {
    let own = |session: &&SessionRow| {
        session.target == target && results.engine_logs.contains_key(&session.id) && session.block >= 0
    };
    let kept: Vec<&SessionRow> = results.sessions.iter().filter(own).collect();
    let wanted = |session: &&&SessionRow| block.is_none_or(|block| session.block + 1 == block);
    let log = match kept.iter().rfind(wanted) {
        Some(session) => store.engine_log(session.id)?,
        None => None,
    };
    log.map(|log| log.text).ok_or_else(|| {
        let name = results.target_names()[target];
        let blocks: Vec<String> = kept.iter().map(|session| (session.block + 1).to_string()).collect();
        if blocks.is_empty() {
            format!("no log of {name} was kept: its engine wrote none, or no session of it has ended")
        } else {
            format!("no log of {name} was kept there; there are those of blocks {}", blocks.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EngineLog;

    #[test]
    fn the_last_log_is_shown_or_the_one_of_a_block() {
        let (_temp, store) = crate::testing::fake_record(3, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let sessions = store.sessions(1).unwrap();
        for session in sessions.iter().filter(|session| session.target == 1 && session.block < 2) {
            let text = format!("block {}\n", session.block + 1);
            store.record_engine_log(session.id, &EngineLog { bytes: 8, text }).unwrap();
        }
        let results = Results::load(&store, 1).unwrap();
        let shown = |target, block| engine_log(&store, &results, target, block);
        assert_eq!(shown(1, None).unwrap(), "block 2\n");
        assert_eq!(shown(1, Some(1)).unwrap(), "block 1\n");
        assert!(shown(1, Some(3)).unwrap_err().ends_with("those of blocks 1, 2"));
        assert!(shown(0, None).unwrap_err().contains("no log of outcrop/a was kept"));
        let text = crate::report::show::show(&results);
        assert!(text.contains("logs of 2 sessions: outcrop lab log 1 TARGET [--block N]"), "{text}");
    }
}
