//! The keys that agents hold: random, good for one gateway, and each the name of a role.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Keys of one gateway and the roles that they stand for.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<String, String>>);

impl Keys {
    /// Draws a key for a role. Its beginning keeps clients content that look at the shape of a key.
    pub(crate) fn issue(&self, role: &str) -> io::Result<String> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = format!("ksmith-dummy-{digits}");
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.clone(), role.to_owned());
        Ok(key)
    }

    /// The role of a key. Looking it up takes time that depends on the key; its 128 random bits outlive any guessing
    /// within a run.
    pub(crate) fn role(&self, key: &str) -> Option<String> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(key).cloned()
    }
}
