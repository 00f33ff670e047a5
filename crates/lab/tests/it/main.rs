//! Integration tests of the laboratory.

mod archive;
mod import;
mod imported;
