//! Errors in the server's words.

use crate::connection::Refused;

/// An error that the server reported.
#[derive(Debug)]
pub(super) struct Said {
    code: String,
    text: String,
}

impl Said {
    /// Reads the fields of the message: a letter and a text each.
    pub fn read(body: &[u8]) -> Said {
        let field = |wanted: u8| {
            let mut fields = body.split(|byte| *byte == 0);
            let found = fields.find(|field| field.first() == Some(&wanted))?;
            Some(String::from_utf8_lossy(&found[1..]).into_owned())
        };
        let mut text = format!(
            "{}: {}",
            field(b'S').unwrap_or("ERROR".to_string()),
            field(b'M').unwrap_or("it does not say why".to_string())
        );
        for (letter, word) in [(b'D', "DETAIL"), (b'H', "HINT")] {
            if let Some(more) = field(letter) {
                text = format!("{text}; {word}: {more}");
            }
        }
        Said { code: field(b'C').unwrap_or_default(), text }
    }

    /// The server's words.
    pub fn text(self) -> String {
        self.text
    }

    /// Deadlocks, rows that somebody else inserted first, and snapshots that are too old may pass when they are done again, as
    /// sysbench sees it.
    pub fn refused(self) -> Refused {
        const CONFLICTS: [&str; 3] = ["40P01", "23505", "40001"];
        let conflict = CONFLICTS.contains(&self.code.as_str());
        Refused { text: self.text, conflict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_servers_words_and_conflicts_are_known() {
        let said = Said::read(b"SERROR\0VERROR\0C40P01\0Mdeadlock detected\0DProcess 1 waits.\0\0");
        let refused = said.refused();
        assert_eq!(refused.text, "ERROR: deadlock detected; DETAIL: Process 1 waits.");
        assert!(refused.conflict);
        assert!(!Said::read(b"SFATAL\0C57P01\0Mterminating connection\0\0").refused().conflict);
        assert_eq!(Said::read(b"").text(), "ERROR: it does not say why");
    }
}
