//! Transactions, and reading what was not committed yet.

mod read_through;
