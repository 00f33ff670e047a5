//! The ledger: which seeds were played, for how long, and what was found. One JSON object per line, appended.
//!
//! A line is written before a slice and after it. A run that is killed leaves a slice that has begun and not ended, and half a line
//! at most, which is passed over.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// A slice to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// Name of the campaign.
    pub campaign: String,
    /// Its first seed.
    pub seed: u64,
    /// The time it is given.
    pub seconds: u64,
}

/// A slice that was played.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Name of the campaign.
    pub campaign: String,
    /// Its first seed.
    pub seed: u64,
    /// How long it took, in seconds.
    pub took: f64,
    /// Cases it said it played.
    pub cases: u64,
    /// The command that plays the failing case again, if one failed.
    pub again: Option<String>,
    /// Why it played nothing, if it did not: this machine lacks something.
    pub skipped: Option<String>,
}

/// The ledger of a directory.
pub struct Ledger {
    file: File,
    begun: Vec<Begun>,
    ended: Vec<Ended>,
    /// The slice that a killed run had begun and not ended.
    left_over: Option<Begun>,
    /// Campaigns that this run has found to be impossible here. One that resumes tries them again.
    impossible: BTreeSet<String>,
}

impl Ledger {
    /// Opens that of `dir`.
    ///
    /// # Errors
    /// It is there though nothing is resumed, or not there though something is.
    pub fn open(dir: &Path, resume: bool) -> Result<Ledger, String> {
        let path = dir.join("ledger.jsonl");
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        if path.exists() != resume {
            return Err(match resume {
                true => format!("--resume: no campaign was begun in {}", dir.display()),
                false => format!(
                    "{} has a campaign already: go on with --resume, or choose another --dir",
                    dir.display()
                ),
            });
        }
        std::fs::create_dir_all(dir).map_err(named)?;
        let text = if resume { super::read(&path)? } else { String::new() };
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(named)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(named)?;
        }
        let mut ledger = Ledger {
            file,
            begun: Vec::new(),
            ended: Vec::new(),
            left_over: None,
            impossible: BTreeSet::new(),
        };
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|line| ledger.take(&line));
        Ok(ledger)
    }

    /// Takes in a line that is there.
    fn take(&mut self, line: &Value) {
        let text = |value: &Value, name: &str| value[name].as_str().map(String::from);
        if let (Some(campaign), Some(seed), Some(seconds)) = (
            text(&line["begun"], "campaign"),
            line["begun"]["seed"].as_u64(),
            line["begun"]["seconds"].as_u64(),
        ) {
            let begun = Begun { campaign, seed, seconds };
            self.left_over = Some(begun.clone());
            self.begun.push(begun);
        }
        let ended = &line["ended"];
        if let (Some(campaign), Some(seed), Some(took), Some(cases)) =
            (text(ended, "campaign"), ended["seed"].as_u64(), ended["took"].as_f64(), ended["cases"].as_u64())
        {
            self.left_over = None;
            let (again, skipped) = (text(ended, "again"), text(ended, "skipped"));
            self.ended.push(Ended { campaign, seed, took, cases, again, skipped });
        }
    }

    /// Writes down that a slice begins.
    pub fn begin(&mut self, begun: &Begun) -> Result<(), String> {
        self.append(&json!({"begun":
            {"campaign": begun.campaign, "seed": begun.seed, "seconds": begun.seconds}}))
    }

    /// Writes down how a slice ended.
    pub fn end(&mut self, ended: Ended) -> Result<(), String> {
        self.append(&json!({"ended": {"campaign": ended.campaign, "seed": ended.seed, "took": ended.took,
            "cases": ended.cases, "again": ended.again, "skipped": ended.skipped}}))?;
        if ended.skipped.is_some() {
            self.impossible.insert(ended.campaign);
        }
        Ok(())
    }

    /// True if a campaign played nothing in this run, and would not the next time either.
    pub fn is_impossible(&self, campaign: &str) -> bool {
        self.impossible.contains(campaign)
    }

    /// Why a campaign has played nothing at all.
    pub fn skipped(&self, campaign: &str) -> Option<&str> {
        let played = self.of(campaign).any(|ended| ended.skipped.is_none());
        self.of(campaign).next_back().and_then(|ended| ended.skipped.as_deref()).filter(|_| !played)
    }

    fn append(&mut self, line: &Value) -> Result<(), String> {
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.flush());
        written.map_err(|error| format!("ledger.jsonl: {error}"))?;
        self.take(line);
        Ok(())
    }

    /// The slice of `campaign` that a killed run had begun and not ended.
    pub fn left_over(&self, campaign: &str) -> Option<Begun> {
        self.left_over.clone().filter(|begun| begun.campaign == campaign)
    }

    /// Slices that ended.
    pub fn ended(&self) -> &[Ended] {
        &self.ended
    }

    /// True if a slice began with `seed`.
    pub fn has_seed(&self, seed: u64) -> bool {
        self.begun.iter().any(|begun| begun.seed == seed)
    }

    /// The time of all slices.
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.ended.iter().map(|ended| ended.took).sum())
    }

    /// The time of one campaign's slices.
    pub fn time_of(&self, campaign: &str) -> Duration {
        Duration::from_secs_f64(self.of(campaign).map(|ended| ended.took).sum())
    }

    /// Slices of one campaign that ended.
    pub fn of(&self, campaign: &str) -> impl DoubleEndedIterator<Item = &Ended> {
        self.ended.iter().filter(move |ended| ended.campaign == campaign)
    }

    /// Slices that failed.
    pub fn findings(&self) -> usize {
        self.ended.iter().filter(|ended| ended.again.is_some()).count()
    }

    /// The last slices of a campaign that all failed.
    pub fn failures_in_a_row(&self, campaign: &str) -> u32 {
        self.of(campaign).rev().take_while(|ended| ended.again.is_some()).count() as u32
    }
}
