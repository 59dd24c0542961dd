//! What tokens cost: a dated table kept as data (`prices.toml`), and rows of the user's own before it.

use serde::Deserialize;

use super::Usage;

/// Output tokens that a call may cost where neither the request nor the table says less.
const MAX_OUTPUT: u64 = 128_000;

/// Dollars per million tokens. What is absent costs as much as plain input; an hour's write as a short one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
    output: f64,
}

/// Rates for calls with long input.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    over: u64,
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
    output: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    checked: String,
    source: String,
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
    output: f64,
    max_output: Option<u64>,
    long: Option<Long>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    date: String,
    #[serde(default)]
    model: Vec<Row>,
}

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The text is no such table.
    #[error("the price table cannot be read: {0}")]
    Unreadable(String),
    /// A row says something impossible.
    #[error("the price table's row `{0}` has a price that is no number of dollars, or no date and source")]
    Row(String),
    /// Without a price the money could not be counted.
    #[error("no price is known for model `{model}` (table of {date}); give one with `--prices FILE`")]
    Unknown {
        /// The model.
        model: String,
        /// The table's date.
        date: String,
    },
}

/// The price of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The row's name, and when it was checked: what a record says it was priced by.
    pub by: String,
    rates: Rates,
    long: Option<(u64, Rates)>,
    max_output: u64,
}

impl Price {
    /// A price of nothing, for servers of the user's own.
    pub fn free() -> Self {
        Self::flat("free", 0.0, 0.0)
    }

    /// One rate for all input and one for output, in dollars per million tokens.
    pub fn flat(by: &str, input: f64, output: f64) -> Self {
        Self {
            by: by.to_owned(),
            rates: Rates {
                input,
                cached: None,
                cache_write: None,
                cache_write_long: None,
                output,
            },
            long: None,
            max_output: MAX_OUTPUT,
        }
    }

    /// What a call costs, in dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let rates = match &self.long {
            Some((over, rates)) if usage.all_input() > *over => rates,
            Some(_) | None => &self.rates,
        };
        let write = rates.cache_write.unwrap_or(rates.input);
        let parts = [
            (usage.input, rates.input),
            (usage.cached, rates.cached.unwrap_or(rates.input)),
            (usage.cache_write, write),
            (usage.cache_write_long, rates.cache_write_long.unwrap_or(write)),
            (usage.output, rates.output),
        ];
        parts
            .iter()
            .map(|(tokens, rate)| *tokens as f64 * rate)
            .sum::<f64>()
            / 1e6
    }

    /// The most that a call can use: a token covers at least one byte, and the output ends at a limit.
    pub fn bound(&self, request_bytes: usize, max_output: Option<u64>) -> Usage {
        Usage {
            input: request_bytes as u64,
            output: max_output.unwrap_or(self.max_output),
            ..Usage::default()
        }
    }
}

/// A dated table of prices.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceTable {
    date: String,
    rows: Vec<Row>,
}

impl PriceTable {
    /// The table that comes with the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn built_in() -> Self {
        Self::parse(include_str!("prices.toml")).expect("the built-in table is read by a test")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// When it has another shape, or a row makes no sense.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let document: Document =
            toml::from_str(text).map_err(|error| PriceError::Unreadable(error.to_string()))?;
        if document.schema != 1 {
            return Err(PriceError::Unreadable(format!(
                "schema {} is not known; expected 1",
                document.schema
            )));
        }
        for row in &document.model {
            let long = row.long.iter().flat_map(|long| {
                [
                    Some(long.input),
                    long.cached,
                    long.cache_write,
                    long.cache_write_long,
                    Some(long.output),
                ]
            });
            let fine = [
                Some(row.input),
                row.cached,
                row.cache_write,
                row.cache_write_long,
                Some(row.output),
            ]
            .into_iter()
            .chain(long)
            .flatten()
            .all(|rate| rate.is_finite() && rate >= 0.0);
            if !fine || row.checked.is_empty() || row.source.is_empty() {
                return Err(PriceError::Row(row.name.clone()));
            }
        }
        Ok(Self {
            date: document.date,
            rows: document.model,
        })
    }

    /// Puts the rows of another table before these.
    pub fn with_first(mut self, first: Self) -> Self {
        self.rows.splice(0..0, first.rows);
        self
    }

    /// The table's date.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The price of a model; one that runs on this machine, and stands in no row, is free.
    ///
    /// # Errors
    /// When it runs elsewhere and has no row: its cost could not be counted.
    pub fn price_of(&self, model: &str, is_local: bool) -> Result<Price, PriceError> {
        match self.find(model) {
            Some(price) => Ok(price),
            None if is_local => Ok(Price::free()),
            None => Err(PriceError::Unknown {
                model: model.to_owned(),
                date: self.date.clone(),
            }),
        }
    }

    /// The price of a model: by its name, or by its name without a trailing date.
    pub fn find(&self, model: &str) -> Option<Price> {
        let row = |name: &str| self.rows.iter().find(|row| row.name == name);
        let row = row(model).or_else(|| row(undated(model)?))?;
        Some(Price {
            by: format!("{} checked {}", row.name, row.checked),
            rates: Rates {
                input: row.input,
                cached: row.cached,
                cache_write: row.cache_write,
                cache_write_long: row.cache_write_long,
                output: row.output,
            },
            long: row.long.map(|long| {
                let rates = Rates {
                    input: long.input,
                    cached: long.cached,
                    cache_write: long.cache_write,
                    cache_write_long: long.cache_write_long,
                    output: long.output,
                };
                (long.over, rates)
            }),
            max_output: row.max_output.unwrap_or(MAX_OUTPUT),
        })
    }
}

/// The name without `-20261101` or `-2026-11-01` at its end.
fn undated(model: &str) -> Option<&str> {
    let (name, last) = model.rsplit_once('-')?;
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(last, 8) {
        return Some(name);
    }
    let (name, month) = name.rsplit_once('-')?;
    let (name, year) = name.rsplit_once('-')?;
    (digits(year, 4) && digits(month, 2) && digits(last, 2)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_reads_and_is_dated() {
        let table = PriceTable::built_in();
        assert_eq!(table.date(), "2026-11-05");
        for row in &table.rows {
            let price = table.find(&row.name).unwrap();
            assert!(price.by.contains(&row.checked), "{}", row.name);
            assert!(row.checked <= table.date, "{}", row.name);
            assert!(
                row.output > row.input && row.cached.is_some_and(|cached| cached < row.input),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn a_model_is_found_by_its_name_with_or_without_date_and_never_by_a_part_of_it() {
        let table = PriceTable::built_in();
        let opus = table.find("claude-opus-5-5");
        assert!(opus.is_some());
        assert_eq!(table.find("claude-opus-5-5-20260922"), opus);
        assert_eq!(table.find("claude-opus-5-5-2026-09-22"), opus);
        for other in [
            "claude-opus-5-5-pro",
            "claude-opus",
            "gpt-5.4-pro",
            "",
            "-",
            "20260922",
        ] {
            assert_eq!(table.find(other), None, "{other}");
        }
    }

    #[test]
    fn an_unpriced_model_is_free_on_this_machine_and_refused_elsewhere() {
        let table = PriceTable::built_in();
        assert_eq!(table.price_of("qwen3-local", true), Ok(Price::free()));
        let error = table.price_of("qwen3-local", false).unwrap_err();
        assert!(
            error.to_string().contains("`qwen3-local` (table of 2026-"),
            "{error}"
        );
    }

    #[test]
    fn each_kind_of_token_has_its_rate() {
        let table = PriceTable::built_in();
        let usage = Usage {
            input: 1_000_000,
            cached: 2_000_000,
            cache_write: 3_000_000,
            cache_write_long: 1_000_000,
            output: 1_000_000,
            reasoning: 500_000,
        };
        let cost = table.find("claude-opus-5-5").unwrap().cost(&usage);
        assert!((cost - (4.0 + 0.4 + 15.0 + 8.0 + 20.0)).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn long_input_has_rates_of_its_own_for_every_token() {
        let price = PriceTable::built_in().find("claude-haiku-5-5").unwrap();
        let cost = |cached: u64| {
            price.cost(&Usage {
                cached,
                output: 1_000_000,
                ..Usage::default()
            })
        };
        assert!((cost(100_000) - (0.001 + 0.5)).abs() < 1e-9);
        assert!((cost(100_001) - (0.005 + 2.5)).abs() < 1e-6);
    }

    #[test]
    fn rows_of_the_users_own_come_first_and_wrong_ones_are_named() {
        let own = |price: &str| {
            PriceTable::parse(&format!(
                "schema = 1\ndate = \"2026-12-01\"\n[[model]]\nname = \"gpt-5-codex\"\nchecked = \"2026-12-01\"\n\
                 source = \"invoice\"\ninput = {price}\noutput = 2.0\n"
            ))
        };
        let table = PriceTable::built_in().with_first(own("1.0").unwrap());
        let million = Usage {
            input: 1_000_000,
            ..Usage::default()
        };
        assert!((table.find("gpt-5-codex").unwrap().cost(&million) - 1.0).abs() < 1e-12);
        assert_eq!(own("-1.0"), Err(PriceError::Row("gpt-5-codex".into())));
        assert!(matches!(own("\"cheap\""), Err(PriceError::Unreadable(_))));
    }
}
