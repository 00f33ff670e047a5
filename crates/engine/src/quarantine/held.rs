//! The tables of a column family that are in quarantine, as its state has them.

use crate::state::CfState;
use outcrop_base::Error;
use outcrop_manifest::FileNumber;

impl CfState {
    /// Puts a table into quarantine; false if it is there already, a job has it, or the newest version does not.
    pub fn quarantine(&mut self, number: FileNumber, error: Error) -> bool {
        let is_there = self.version.files().any(|(_, file)| file.number == number);
        let is_new = is_there && self.busy.insert(number);
        if is_new {
            self.quarantined.insert(number, error);
            self.refresh_debt();
        }
        is_new
    }

    /// A job takes a table, out of quarantine if it is there: the job reads nothing of it. False if another job has it.
    pub fn take_table(&mut self, number: FileNumber) -> bool {
        self.quarantined.remove(&number).is_some() || self.busy.insert(number)
    }

    /// True if a job has the table.
    pub fn is_taken(&self, number: FileNumber) -> bool {
        self.busy.contains(&number) && !self.quarantined.contains_key(&number)
    }

    /// The error of a caller that wants the tables `numbers`, if one of them is in quarantine.
    pub fn quarantine_error(&self, numbers: impl IntoIterator<Item = FileNumber>) -> Option<Error> {
        let found = numbers.into_iter().find_map(|number| self.quarantined.get_key_value(&number));
        let what = |(number, error): (&FileNumber, &Error)| {
            format!("table {} is damaged, and compactions leave it alone: {error}", number.0)
        };
        found.map(|found| Error::corruption(what(found)))
    }

    /// Takes all tables out of quarantine; gives how many there were.
    pub fn release_quarantine(&mut self) -> usize {
        let released = std::mem::take(&mut self.quarantined);
        self.busy.retain(|number| !released.contains_key(number));
        self.refresh_debt();
        released.len()
    }
}
