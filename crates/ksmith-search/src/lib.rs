//! The offline agent: structures, spaces, strategies.
