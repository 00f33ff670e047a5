//! Money that moves between accounts: transactions lock the keys they touch, so threads take turns and the sum stays.
//!
//! ```text
//! after 200 transfers by 4 threads there are 300
//! a transaction that is dropped never happens: 300
//! ```

use outcrop::{Db, LockMode, Result, Transaction, TransactionDb, TransactionDbOptions};

const ACCOUNTS: [&str; 3] = ["ann", "bob", "cid"];

fn balance(value: Option<impl AsRef<[u8]>>) -> u64 {
    value.map_or(0, |bytes| u64::from_le_bytes(bytes.as_ref().try_into().expect("eight bytes")))
}

/// Moves `amount`, or as much as there is.
fn transfer(txn: &mut Transaction, from: &str, to: &str, amount: u64) -> Result<()> {
    // Always in the order of the keys: no two transactions wait for each other.
    for account in [from.min(to), from.max(to)] {
        txn.get_for_update(account, LockMode::Exclusive)?;
    }
    let (source, target) = (balance(txn.get(from)?), balance(txn.get(to)?));
    let amount = amount.min(source);
    txn.put(from, (source - amount).to_le_bytes())?;
    txn.put(to, (target + amount).to_le_bytes())
}

fn sum(db: &Db) -> Result<u64> {
    ACCOUNTS.iter().map(|account| db.get(account).map(balance)).sum()
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let builder = Db::builder(dir.path()).create_if_missing(true);
    let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
    for account in ACCOUNTS {
        db.put(account, 100u64.to_le_bytes())?;
    }
    std::thread::scope(|scope| {
        let run = |thread: usize| {
            let db = &db;
            move || {
                (0..50).try_for_each(|i| {
                    let mut txn = db.begin();
                    transfer(&mut txn, ACCOUNTS[(thread + i) % 3], ACCOUNTS[(thread + i + 1) % 3], 7)?;
                    txn.commit()
                })
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    println!("after 200 transfers by 4 threads there are {}", sum(db.db())?);

    let mut txn = db.begin();
    txn.delete("ann")?;
    drop(txn);
    println!("a transaction that is dropped never happens: {}", sum(db.db())?);
    Ok(())
}
