//! Token counts, made alike.
//!
//! The formats disagree on what "input" means: in chat and responses it holds the cached part, in messages it does
//! not. Here each token is in exactly one of the input fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wire;

/// Tokens of one call; the input fields do not overlap, `reasoning` is a part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input neither read from nor written to the provider's cache.
    pub input: u64,
    /// Input read from the cache.
    pub cached: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Input written to the cache for an hour, which costs more.
    pub cache_write_long: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of the output that was reasoning, where the provider says so.
    pub reasoning: u64,
}

impl Usage {
    /// Reads a `usage` object; `None` where it has no counts.
    pub fn read(wire: Wire, usage: &Value) -> Option<Self> {
        let count = |value: &Value| value.as_u64();
        let of = |value: &Value| value.as_u64().unwrap_or(0);
        Some(match wire {
            Wire::Chat => {
                let details = &usage["prompt_tokens_details"];
                Self::with_whole_input(
                    count(&usage["prompt_tokens"])?,
                    details,
                    of(&usage["completion_tokens"]),
                    of(&usage["completion_tokens_details"]["reasoning_tokens"]),
                )
            }
            Wire::Responses => Self::with_whole_input(
                count(&usage["input_tokens"])?,
                &usage["input_tokens_details"],
                of(&usage["output_tokens"]),
                of(&usage["output_tokens_details"]["reasoning_tokens"]),
            ),
            Wire::Messages => {
                let long = of(&usage["cache_creation"]["ephemeral_1h_input_tokens"]);
                Self {
                    input: count(&usage["input_tokens"])?,
                    cached: of(&usage["cache_read_input_tokens"]),
                    cache_write: of(&usage["cache_creation_input_tokens"]).saturating_sub(long),
                    cache_write_long: long,
                    output: of(&usage["output_tokens"]),
                    reasoning: 0,
                }
            }
        })
    }

    fn with_whole_input(whole: u64, details: &Value, output: u64, reasoning: u64) -> Self {
        let cached = details["cached_tokens"].as_u64().unwrap_or(0).min(whole);
        let written = details["cache_write_tokens"]
            .as_u64()
            .unwrap_or(0)
            .min(whole - cached);
        Self {
            input: whole - cached - written,
            cached,
            cache_write: written,
            cache_write_long: 0,
            output,
            reasoning,
        }
    }

    /// Everything that was read.
    pub fn all_input(&self) -> u64 {
        [self.cached, self.cache_write, self.cache_write_long]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// Everything that was read or written: what a budget of tokens counts.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_three_formats_say_the_same() {
        let chat = json!({"prompt_tokens": 140, "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 5}});
        let responses = json!({"input_tokens": 140, "output_tokens": 20,
            "input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 5}});
        let messages = json!({"input_tokens": 100, "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 0, "output_tokens": 20});
        let expected = Usage {
            input: 100,
            cached: 40,
            output: 20,
            reasoning: 5,
            ..Usage::default()
        };
        assert_eq!(Usage::read(Wire::Chat, &chat), Some(expected));
        assert_eq!(Usage::read(Wire::Responses, &responses), Some(expected));
        assert_eq!(
            Usage::read(Wire::Messages, &messages),
            Some(Usage {
                reasoning: 0,
                ..expected
            })
        );
        assert_eq!((expected.all_input(), expected.total()), (140, 160));
    }

    #[test]
    fn writes_to_a_cache_are_counted_once() {
        let messages = json!({"input_tokens": 1, "cache_creation_input_tokens": 30, "output_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}});
        let usage = Usage::read(Wire::Messages, &messages).unwrap();
        assert_eq!(
            (usage.cache_write, usage.cache_write_long, usage.all_input()),
            (10, 20, 31)
        );
        let chat = json!({"prompt_tokens": 10, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}});
        let usage = Usage::read(Wire::Chat, &chat).unwrap();
        assert_eq!((usage.input, usage.cached, usage.cache_write), (1, 4, 5));
    }

    proptest! {
        #[test]
        fn no_counts_whatever_they_are_overflow(whole: u64, cached: u64, written: u64, output: u64) {
            for (wire, usage) in [
                (Wire::Chat, json!({"prompt_tokens": whole, "completion_tokens": output,
                    "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written}})),
                (Wire::Responses, json!({"input_tokens": whole, "output_tokens": output,
                    "input_tokens_details": {"cached_tokens": cached}})),
                (Wire::Messages, json!({"input_tokens": whole, "output_tokens": output,
                    "cache_read_input_tokens": cached, "cache_creation_input_tokens": written})),
            ] {
                let usage = Usage::read(wire, &usage).unwrap();
                if wire != Wire::Messages {
                    prop_assert_eq!(usage.all_input(), whole);
                }
                prop_assert!(usage.total() >= output);
            }
        }
    }
}
