//! The events that a writer tells the log of its disk, and what they say about a state that the power leaves.

use super::disk::Record;
use crate::history::{Event, Log};
use std::fs::File;
use std::io::Write;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The database is open.
    Opened,
    /// A thread's next write begins.
    Begun(u8),
    /// It is acknowledged.
    Done(u8),
    /// A checkpoint with this number begins.
    CheckpointBegun(u8),
    /// It was made.
    CheckpointMade(u8),
    /// A backup begins.
    BackupBegun(u8),
    /// It was made.
    BackupMade(u8),
    /// A column family is about to be created, or dropped.
    FamilyBegun(u8),
    /// It was created.
    FamilyMade(u8),
    /// It was dropped.
    FamilyDropped(u8),
}

impl Told {
    fn bytes(self) -> [u8; 2] {
        match self {
            Told::Opened => [b'O', 0],
            Told::Begun(thread) => [b'B', thread],
            Told::Done(thread) => [b'D', thread],
            Told::CheckpointBegun(number) => [b'k', number],
            Told::CheckpointMade(number) => [b'K', number],
            Told::BackupBegun(number) => [b'u', number],
            Told::BackupMade(number) => [b'U', number],
            Told::FamilyBegun(number) => [b'f', number],
            Told::FamilyMade(number) => [b'F', number],
            Told::FamilyDropped(number) => [b'X', number],
        }
    }

    fn of(bytes: &[u8]) -> Option<Told> {
        let &[kind, number] = bytes else { return None };
        Some(match kind {
            b'O' => Told::Opened,
            b'B' => Told::Begun(number),
            b'D' => Told::Done(number),
            b'k' => Told::CheckpointBegun(number),
            b'K' => Told::CheckpointMade(number),
            b'u' => Told::BackupBegun(number),
            b'U' => Told::BackupMade(number),
            b'f' => Told::FamilyBegun(number),
            b'F' => Told::FamilyMade(number),
            b'X' => Told::FamilyDropped(number),
            _ => return None,
        })
    }

    /// Writes it to the file of marks.
    ///
    /// # Errors
    /// The disk is gone.
    pub fn tell(self, mut marks: &File) -> Result<(), String> {
        marks.write_all(&self.bytes()).map_err(|error| format!("marks: {error}"))
    }
}

/// A checkpoint or a backup that was made.
#[derive(Clone)]
pub struct Taken {
    /// Its number.
    pub number: u8,
    /// The writes when it was made, of which those that were acknowledged when it began are done.
    pub log: Log,
}

/// All that was told before a moment.
pub struct Story {
    /// The database had been opened.
    pub opened: bool,
    /// The writes.
    pub log: Log,
    /// Checkpoints.
    pub checkpoints: Vec<Taken>,
    /// Backups.
    pub backups: Vec<Taken>,
    /// A backup was under way: the ones before may be there or not.
    pub backing_up: bool,
    /// Column families: created, being created or dropped.
    pub families: Vec<(u8, Family)>,
}

/// The state of a column family, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Its creation, or its dropping, was under way.
    Between,
    /// It was created.
    There,
    /// It was dropped.
    Dropped,
}

impl Story {
    /// Of the marks among `records`, by so many threads.
    pub fn of(records: &[Record], threads: usize) -> Story {
        let mut story = Story {
            opened: false,
            log: Log::new(threads),
            checkpoints: Vec::new(),
            backups: Vec::new(),
            backing_up: false,
            families: Vec::new(),
        };
        let mut began = Log::new(threads);
        for record in records {
            let Record::Mark(bytes) = record else { continue };
            match Told::of(bytes) {
                None => {}
                Some(Told::Opened) => story.opened = true,
                Some(Told::Begun(thread)) => story.log.add(usize::from(thread), Event::Begun),
                Some(Told::Done(thread)) => story.log.add(usize::from(thread), Event::Done),
                Some(Told::CheckpointBegun(_)) => began = story.log.clone(),
                Some(Told::BackupBegun(_)) => {
                    began = story.log.clone();
                    story.backing_up = true;
                }
                Some(Told::CheckpointMade(number)) => {
                    let log = story.log.clone().acknowledged_by(&began);
                    story.checkpoints.push(Taken { number, log });
                }
                Some(Told::BackupMade(number)) => {
                    story.backing_up = false;
                    let log = story.log.clone().acknowledged_by(&began);
                    story.backups.push(Taken { number, log });
                }
                Some(Told::FamilyBegun(number)) => story.family(number, Family::Between),
                Some(Told::FamilyMade(number)) => story.family(number, Family::There),
                Some(Told::FamilyDropped(number)) => story.family(number, Family::Dropped),
            }
        }
        story
    }

    fn family(&mut self, number: u8, state: Family) {
        match self.families.iter_mut().find(|family| family.0 == number) {
            Some(family) => family.1 = state,
            None => self.families.push((number, state)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_as_it_was_told() {
        let all = [
            Told::Opened,
            Told::Begun(3),
            Told::Done(3),
            Told::CheckpointBegun(1),
            Told::CheckpointMade(1),
            Told::BackupBegun(2),
            Told::BackupMade(2),
            Told::FamilyBegun(4),
            Told::FamilyMade(4),
            Told::FamilyDropped(4),
        ];
        for told in all {
            assert_eq!(Told::of(&told.bytes()), Some(told));
        }
        assert_eq!(Told::of(b"?"), None);
    }

    #[test]
    fn a_story_is_of_what_was_told_until_then() {
        let told =
            [Told::Opened, Told::Begun(0), Told::CheckpointBegun(0), Told::Done(0), Told::CheckpointMade(0)];
        let records: Vec<Record> = told.iter().map(|told| Record::Mark(told.bytes().to_vec())).collect();
        let before = Story::of(&records[..4], 1);
        assert!(before.opened && before.checkpoints.is_empty());
        assert_eq!(before.log.acknowledged(), 1);
        let after = Story::of(&records, 1);
        // It was not acknowledged when the checkpoint began.
        assert_eq!((after.checkpoints.len(), after.checkpoints[0].log.acknowledged()), (1, 0));
    }
}
