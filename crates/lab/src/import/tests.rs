//! Parsers on small fixtures.
