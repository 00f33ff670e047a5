//! The table of a run: for people in 80 columns, and as JSON.

use super::ledger::Ledger;
use serde_json::json;
use std::fmt::Write;

/// One campaign in the table.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub campaign: String,
    /// Cases played.
    pub cases: u64,
    /// Seconds they took.
    pub seconds: f64,
    /// Slices that failed.
    pub findings: usize,
    /// Why it played nothing.
    pub skipped: Option<String>,
}

impl Row {
    fn cases_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.cases as f64 / self.seconds } else { 0.0 }
    }
}

/// A row for each campaign.
pub fn rows<'n>(names: impl Iterator<Item = &'n str>, ledger: &Ledger) -> Vec<Row> {
    let row = |name: &str| Row {
        campaign: name.to_string(),
        cases: ledger.of(name).map(|ended| ended.cases).sum(),
        seconds: ledger.time_of(name).as_secs_f64(),
        findings: ledger.of(name).filter(|ended| ended.again.is_some()).count(),
        skipped: ledger.skipped(name).map(String::from),
    };
    names.map(row).collect()
}

/// The table for people.
pub fn print(rows: &[Row]) -> String {
    let mut text =
        format!("{:<14}{:>16}{:>12}{:>16}{:>14}\n", "campaign", "cases", "hours", "cases/s", "findings");
    for row in rows {
        let (hours, rate) = (row.seconds / 3600.0, row.cases_per_second());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<14}{:>16}{hours:>12.3}{rate:>16.2}{:>14}",
            row.campaign, row.cases, row.findings
        );
    }
    for row in rows {
        if let Some(why) = &row.skipped {
            let _ = writeln!(text, "{} was SKIPPED:\n  {why}", row.campaign);
        }
    }
    text
}

/// The same with every finding, as JSON.
pub fn json(rows: &[Row], ledger: &Ledger, tree: Option<&str>) -> String {
    let campaigns: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({"campaign": row.campaign, "cases": row.cases, "hours": row.seconds / 3600.0,
                "cases_per_second": row.cases_per_second(), "findings": row.findings,
                "skipped": row.skipped})
        })
        .collect();
    let findings: Vec<_> = ledger
        .ended()
        .iter()
        .filter_map(|ended| {
            let again = ended.again.as_ref()?;
            Some(json!({"campaign": ended.campaign, "seed": ended.seed, "again": again}))
        })
        .collect();
    let seeds: Vec<_> =
        ledger.ended().iter().map(|ended| json!({"campaign": ended.campaign, "seed": ended.seed})).collect();
    format!("{:#}\n", json!({"tree": tree, "campaigns": campaigns, "findings": findings, "seeds": seeds}))
}
