//! For unit tests: the owners of a database without the database.

pub mod cases;
pub mod parts;
