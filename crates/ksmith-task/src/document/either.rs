//! Values with more than one spelling: numbers or expressions, one or a table, a word or a table.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{At, Ordered};
use crate::DType;

/// A number, or an expression as text.
#[derive(Debug, Clone)]
pub(crate) enum Literal {
    Int(i64),
    Float(f64),
    Text(String),
}

/// A number or expression with its place.
pub(crate) type Formula = At<Literal>;

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Literal;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or an expression in quotes")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Literal, E> {
                Ok(Literal::Int(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Literal, E> {
                i64::try_from(value).map(Literal::Int).map_err(E::custom)
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Literal, E> {
                if value.is_finite() {
                    Ok(Literal::Float(value))
                } else {
                    Err(E::custom("expected a finite number"))
                }
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Literal, E> {
                Ok(Literal::Text(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for Literal {
    fn schema_name() -> Cow<'static, str> {
        "Formula".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or an expression over axes.",
            "type": ["integer", "number", "string"],
        })
    }
}

/// One formula for all dtypes, or one per dtype.
#[derive(Debug, Clone)]
pub(crate) enum PerType {
    All(Literal),
    Each(Vec<(At<String>, Formula)>),
}

impl<'de> Deserialize<'de> for PerType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = PerType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, an expression in quotes, or a table from dtype to either")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<PerType, E> {
                Ok(PerType::All(Literal::Int(value)))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<PerType, E> {
                if value.is_finite() {
                    Ok(PerType::All(Literal::Float(value)))
                } else {
                    Err(E::custom("expected a finite number"))
                }
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<PerType, E> {
                Ok(PerType::All(Literal::Text(value.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerType, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(PerType::Each(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for PerType {
    fn schema_name() -> Cow<'static, str> {
        "FormulaPerType".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let formula = generator.subschema_for::<Literal>();
        json_schema!({
            "description": "A number or expression, or a table from dtype to either.",
            "anyOf": [formula, { "type": "object", "additionalProperties": formula }],
        })
    }
}

/// The dtypes of a variable: one list for all backends, or one per backend.
#[derive(Debug, Clone)]
pub(crate) enum DTypes {
    All(Vec<At<DType>>),
    Each(Vec<(At<String>, Vec<At<DType>>)>),
}

impl<'de> Deserialize<'de> for DTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = DTypes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of dtypes, or a table from backend to such a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<DTypes, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(DTypes::All)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DTypes, A::Error> {
                let table: Ordered<Vec<At<DType>>> =
                    Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DTypes::Each(table.0))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for DTypes {
    fn schema_name() -> Cow<'static, str> {
        "DTypes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<At<DType>>>();
        json_schema!({
            "description": "Dtypes of a variable: a list, or a table from backend to a list.",
            "anyOf": [
                list,
                { "type": "object", "additionalProperties": false, "properties": { "cpu": list, "cuda": list } },
            ],
        })
    }
}

/// One number for all backends, or one per backend.
#[derive(Debug, Clone)]
pub(crate) enum PerBackend {
    All(f64),
    Each(BackendNumbers),
}

/// A number per backend.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackendNumbers {
    /// On the CPU.
    pub(crate) cpu: Option<At<f64>>,
    /// On a CUDA device.
    pub(crate) cuda: Option<At<f64>>,
}

impl<'de> Deserialize<'de> for PerBackend {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = PerBackend;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a table from backend to a number")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<PerBackend, E> {
                Ok(PerBackend::All(value as f64))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<PerBackend, E> {
                Ok(PerBackend::All(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PerBackend, A::Error> {
                BackendNumbers::deserialize(MapAccessDeserializer::new(map)).map(PerBackend::Each)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for PerBackend {
    fn schema_name() -> Cow<'static, str> {
        "PerBackend".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let each = generator.subschema_for::<BackendNumbers>();
        json_schema!({
            "description": "A number, or a table from backend to a number.",
            "anyOf": [{ "type": "number" }, each],
        })
    }
}

/// A word, or a table with details.
#[derive(Debug, Clone)]
pub(crate) enum TextOr<T> {
    Text(String),
    Table(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a table")
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(value.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Table)
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for TextOr<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Text_or_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}

/// A number of bytes: an integer, or text such as `256MiB`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteCount(pub(crate) u64);

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = ByteCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes such as 1048576 or \"256MiB\"")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<ByteCount, E> {
                u64::try_from(value)
                    .map(ByteCount)
                    .map_err(|_| E::custom("expected a number of bytes >= 0"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteCount, E> {
                let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let factor: Option<u64> = match text[digits..].trim() {
                    "" | "B" => Some(1),
                    "kB" => Some(1000),
                    "MB" => Some(1_000_000),
                    "GB" => Some(1_000_000_000),
                    "KiB" => Some(1 << 10),
                    "MiB" => Some(1 << 20),
                    "GiB" => Some(1 << 30),
                    _ => None,
                };
                let count: Option<u64> = text[..digits].parse().ok();
                count
                    .zip(factor)
                    .and_then(|(count, factor)| count.checked_mul(factor))
                    .map(ByteCount)
                    .ok_or_else(|| E::custom("expected a number of bytes such as 1048576 or \"256MiB\""))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for ByteCount {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *([kMG]?B|[KMG]iB)?$" })
    }
}
