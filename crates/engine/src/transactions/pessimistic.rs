//! Transactions that lock keys: states, locking, and commit in one or two phases.
//!
//! ```text
//! Started -> AwaitingPrepare -> Prepared -> AwaitingCommit -> Committed
//!    |                             '------> AwaitingRollback -> RolledBack
//!    |-> AwaitingCommit -> Committed
//!    '-> LocksStolen (by another, once it has expired)
//! ```
//! Source: RocksDB `utilities/transactions/pessimistic_transaction.cc`.

use super::locks::{LockRequest, Owner, TransactionState};
use super::options::TransactionOptions;
use super::shared::{Pessimistic, duplicate_name, new_id};
use super::tracking::Access;
use super::transaction::{LockMode, Transaction, Validate};
use super::validation::{Reach, check_unchanged};
use crate::column_family::ColumnFamily;
use crate::db::writes::check_batch;
use crate::write::options::WriteOptions;
use outcrop_base::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Longest name, in bytes.
const LONGEST_NAME: usize = 512;

fn invalid(text: &str) -> Error {
    Error::invalid_argument(text)
}

fn expired() -> Error {
    Error::new(ErrorKind::Expired, "")
}

/// The part of a transaction under `options` that others look at.
pub(super) fn new_owner(shared: &Pessimistic, options: &TransactionOptions) -> Arc<Owner> {
    let expires = match u64::try_from(options.expiration) {
        Ok(millis) => shared.now_micros().saturating_add(millis.saturating_mul(1000)),
        Err(_) => 0,
    };
    let depth = options.deadlock_detect.then(|| options.deadlock_detect_depth.max(0) as usize);
    let owner = Owner::new(new_id(), expires, depth);
    if expires > 0 {
        shared.locks.add_expirable(&owner);
    }
    owner
}

impl Transaction {
    /// Takes over what `options` say.
    pub(super) fn configure(&mut self, shared: &Pessimistic, options: &TransactionOptions) {
        let timeout = if options.lock_timeout < 0 {
            shared.options.transaction_lock_timeout
        } else {
            options.lock_timeout
        };
        self.set_lock_timeout(timeout);
        self.skip_concurrency_control = options.skip_concurrency_control;
        self.skip_prepare = options.skip_prepare;
        self.batch.set_max_bytes(options.max_write_batch_size);
        if options.set_snapshot {
            self.set_snapshot();
        }
    }

    /// Begins a transaction with locks anew, as [`crate::TransactionDb::begin_with`] would; what was not committed is gone.
    ///
    /// # Panics
    /// If it is an optimistic transaction.
    pub fn reinitialize_with(&mut self, write_options: &WriteOptions, options: &TransactionOptions) {
        let super::transaction::Manager::Pessimistic(shared) = self.manager.clone() else {
            panic!("an optimistic transaction has other options");
        };
        // Before its owner changes: the locks are the old one's.
        self.clear();
        self.leave(&shared);
        self.begin_anew(new_owner(&shared, options), write_options);
        self.configure(&shared, options);
    }

    /// Nobody has it in hand any more under its present name and number.
    pub(super) fn leave(&self, shared: &Pessimistic) {
        shared.locks.remove_expirable(&self.owner);
        if !self.name.is_empty() && self.state() != TransactionState::Committed {
            shared.unregister(&self.name);
            if self.state() == TransactionState::Prepared {
                self.db.core().versions.state.lock().prepared.leave(&self.name);
            }
        }
    }

    pub(super) fn set_name_in(&mut self, shared: &Pessimistic, name: &[u8]) -> Result<()> {
        if self.state() != TransactionState::Started {
            return Err(invalid("Transaction is beyond state for naming."));
        }
        if !self.name.is_empty() {
            return Err(invalid("Transaction has already been named."));
        }
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(invalid("Transaction name length must be between 1 and 512 chars."));
        }
        if self.db.core().versions.state.lock().prepared.get(name).is_some() {
            return Err(duplicate_name(name));
        }
        self.take_name(shared, name)
    }

    /// Its name is `name` from here on, which nobody else has in hand.
    pub(super) fn take_name(&mut self, shared: &Pessimistic, name: &[u8]) -> Result<()> {
        shared.register(name)?;
        self.name = name.to_vec();
        Ok(())
    }

    /// Locks `key`, checks that it did not change since the snapshot, and remembers it.
    pub(super) fn lock(
        &mut self,
        shared: &Pessimistic,
        cf: &ColumnFamily,
        key: &[u8],
        access: Access,
        mode: LockMode,
        validate: Validate,
    ) -> Result<()> {
        let exclusive = mode == LockMode::Exclusive;
        let known = self.tracked(cf.id(), key);
        let upgrade = known.is_some_and(|known| exclusive && !known.exclusive);
        let request = LockRequest { column_family: cf.id(), key, exclusive };
        let locked = match known.is_none() || upgrade {
            true => shared.locks.lock(&self.owner, request, self.lock_timeout),
            false => Ok(()),
        };
        self.take_wanted_snapshot();
        locked?;
        let seq = match (&self.snapshot, validate, known) {
            (Some(snapshot), Validate::Snapshot, known) => {
                let since = snapshot.sequence();
                match known.filter(|known| known.seq <= since) {
                    Some(known) => known.seq,
                    None => {
                        let unchanged = self.check_unchanged(cf, key, since);
                        if unchanged.is_err() && upgrade {
                            // Its own shared lock: nobody can be in the way.
                            let shared_again = LockRequest { exclusive: false, ..request };
                            shared.locks.lock(&self.owner, shared_again, 0)?;
                        } else if unchanged.is_err() && known.is_none() {
                            shared.locks.unlock(&self.owner, cf.id(), key);
                        }
                        unchanged?;
                        since
                    }
                }
            }
            (.., Some(known)) => known.seq,
            (.., None) => self.db.latest_sequence_number(),
        };
        self.tracker.track(cf.id(), key, seq, access, exclusive);
        Ok(())
    }

    fn check_unchanged(&self, cf: &ColumnFamily, key: &[u8], since: outcrop_base::SeqNum) -> Result<()> {
        let sources = cf.superversion.load();
        check_unchanged(cf, &sources, key, since, Reach::Tables(&self.db.core().ctx.tables))
    }

    pub(super) fn prepare_in(&mut self, shared: &Pessimistic) -> Result<()> {
        use TransactionState as State;
        if self.name.is_empty() {
            return Err(invalid("Cannot prepare a transaction that has not been named."));
        }
        if shared.is_expired(&self.owner) {
            return Err(expired());
        }
        if !self.owner.change_state(State::Started, State::AwaitingPrepare) {
            return Err(match self.state() {
                State::LocksStolen => expired(),
                State::Prepared => invalid("Transaction has already been prepared."),
                State::Committed => invalid("Transaction has already been committed."),
                State::RolledBack => invalid("Transaction has already been rolledback."),
                _ => invalid("Transaction is not in state for commit."),
            });
        }
        self.owner.never_expires();
        let core = self.db.core();
        let writes = Arc::new(self.batch.batch().clone());
        check_batch(core, &writes, &self.write_options)?;
        self.log_number = core.commit.prepare(&self.write_options, &self.name, &writes)?.0;
        self.owner.set_state(State::Prepared);
        Ok(())
    }

    pub(super) fn commit_in(&mut self, shared: &Pessimistic) -> Result<()> {
        use TransactionState as State;
        if shared.is_expired(&self.owner) {
            return Err(expired());
        }
        let state = self.state();
        if self.owner.expires() == 0 && state == State::Prepared {
            return self.commit_prepared(shared);
        }
        if self.owner.expires() == 0 && state == State::Started && !self.skip_prepare {
            return Err(invalid("Txn not prepared"));
        }
        let may_expire = self.owner.expires() > 0;
        let begun = match may_expire {
            // Another may steal its locks at this moment.
            true => self.owner.change_state(State::Started, State::AwaitingCommit),
            false => state == State::Started,
        };
        if !begun {
            return Err(match self.state() {
                State::LocksStolen => expired(),
                State::Committed => invalid("Transaction has already been committed."),
                State::RolledBack => invalid("Transaction has already been rolledback."),
                _ => invalid("Transaction is not in state for commit."),
            });
        }
        if !self.commit_time.is_empty() {
            return Err(invalid("Commit-time batch contains values that will not be committed."));
        }
        self.owner.set_state(State::AwaitingCommit);
        let written = self.batch.write_to_with(&self.db, &self.write_options);
        self.clear();
        written?;
        if !self.name.is_empty() {
            shared.unregister(&self.name);
        }
        self.owner.set_state(State::Committed);
        Ok(())
    }

    fn commit_prepared(&mut self, shared: &Pessimistic) -> Result<()> {
        self.owner.set_state(TransactionState::AwaitingCommit);
        let core = self.db.core();
        let committed = check_batch(core, &self.commit_time, &self.write_options)
            .and_then(|()| core.commit.commit_prepared(&self.write_options, &self.name, &self.commit_time));
        if let Err(error) = committed {
            self.owner.set_state(TransactionState::Prepared);
            return Err(error);
        }
        shared.unregister(&self.name);
        self.clear();
        self.owner.set_state(TransactionState::Committed);
        Ok(())
    }

    pub(super) fn rollback_in(&mut self, _: &Pessimistic) -> Result<()> {
        use TransactionState as State;
        match self.state() {
            State::Prepared => {
                self.owner.set_state(State::AwaitingRollback);
                let rolled_back = self.db.core().commit.rollback_prepared(&self.write_options, &self.name);
                if let Err(error) = rolled_back {
                    self.owner.set_state(State::Prepared);
                    return Err(error);
                }
                self.clear();
                self.owner.set_state(State::RolledBack);
                Ok(())
            }
            State::Started => {
                self.clear();
                Ok(())
            }
            State::Committed => Err(invalid("This transaction has already been committed.")),
            _ => Err(invalid("Two phase transaction is not in state for rollback.")),
        }
    }
}
