//! A report over a moment, while writers go on: an account is never counted twice, nor left out.
//!
//! ```text
//! all accounts of the moment: 1000
//! richest first: z 600, m 300, a 100
//! accounts from m on: m z
//! now: 1000 in 2 accounts
//! ```

use outcrop::{Db, ReadOptions, Result, WriteBatch};

fn amount(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Moves everything of one account to another, in one batch.
fn close_account(db: &Db, from: &str, to: &str) -> Result<()> {
    let money = |account: &str| Ok(db.get(account)?.map_or(0, |value| amount(&value)));
    let sum: u64 = money(from)? + money(to)?;
    let mut batch = WriteBatch::new();
    batch.delete(from);
    batch.put(to, sum.to_le_bytes());
    db.write(&mut batch)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::builder(dir.path()).create_if_missing(true).open()?;
    for (account, money) in [("a", 100u64), ("m", 300), ("z", 600)] {
        db.put(account, money.to_le_bytes())?;
    }

    // The options own the snapshot: it lives until they are dropped. Blocks of a long scan need not stay in the cache.
    let moment = ReadOptions { fill_cache: false, ..ReadOptions::at(&db.snapshot()) };
    close_account(&db, "a", "z")?;

    let sum: Result<u64> = db.iter_with(&moment).map(|row| Ok(amount(&row?.1))).sum();
    println!("all accounts of the moment: {}", sum?);

    let mut ranking: Vec<(u64, String)> = Vec::new();
    for row in db.iter_with(&moment) {
        let (account, money) = row?;
        ranking.push((amount(&money), String::from_utf8_lossy(&account).into_owned()));
    }
    ranking.sort_by(|a, b| b.cmp(a));
    let ranking: Vec<String> = ranking.iter().map(|(money, account)| format!("{account} {money}")).collect();
    println!("richest first: {}", ranking.join(", "));

    // A cursor seeks, and copies no row.
    let mut cursor = db.cursor_with(&moment)?;
    let mut names = Vec::new();
    cursor.seek(b"m");
    while cursor.valid() {
        names.push(String::from_utf8_lossy(cursor.key()).into_owned());
        cursor.next();
    }
    cursor.status()?;
    println!("accounts from m on: {}", names.join(" "));

    let now: Result<Vec<u64>> = db.iter().map(|row| Ok(amount(&row?.1))).collect();
    let now = now?;
    println!("now: {} in {} accounts", now.iter().sum::<u64>(), now.len());
    Ok(())
}
