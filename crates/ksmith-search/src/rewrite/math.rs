//! Reformulations of mathematics from a short list.

use super::edit::Edits;
use super::source::Source;

/// Name of the inserted function.
pub(super) const EXP: &str = "polynomial_expf";

/// Branch-free, so that loops that call it vectorise; relative error about 2 u over the whole range.
const EXP_SOURCE: &str = "
#include <stdint.h>

/* e^v = 2^n * 2^f with n the nearest integer to v * log2(e); minimax polynomial of degree 5, without branches. */
static inline __attribute__((always_inline)) float polynomial_expf(float v) {
    v = v < -87.0f ? -87.0f : v;
    v = v > 88.37f ? 88.37f : v;
    float t = v * 1.44269502f + 12582912.0f;
    float n = t - 12582912.0f;
    float f = v * 1.44269502f - n;
    f = v * 1.92596303e-8f + f;
    float p = f * 0.001326445346f + 0.009671725519f;
    p = p * f + 0.05550736326f;
    p = p * f + 0.2402223883f;
    p = p * f + 0.6931469752f;
    p = p * f + 1.0f;
    uint32_t bits, shift;
    __builtin_memcpy(&bits, &p, 4);
    __builtin_memcpy(&shift, &t, 4);
    bits += shift << 23;
    __builtin_memcpy(&p, &bits, 4);
    return p;
}
";

/// Replaces calls of `expf`; `None` where there are none.
pub(super) fn polynomial_exp(source: &Source<'_>) -> Option<String> {
    let mut edits = Edits::default();
    for call in source.all(source.root(), "call_expression") {
        let function = call.child_by_field_name("function")?;
        if source.text_of(function) == "expf" {
            edits.replace(function.byte_range(), EXP);
        }
    }
    if edits.is_empty() {
        return None;
    }
    let last_include = source
        .all(source.root(), "preproc_include")
        .into_iter()
        .map(|node| node.end_byte())
        .max();
    edits.insert(last_include.unwrap_or(0), EXP_SOURCE);
    Some(edits.apply(source.text))
}

/// Declares double sums as float; `None` where there are none, or where a loop over them does more than add.
pub(super) fn narrow_sums(source: &Source<'_>) -> Option<String> {
    let mut edits = Edits::default();
    for declaration in source.all(source.root(), "declaration") {
        let kind = declaration.child_by_field_name("type")?;
        let is_zero = source.all(declaration, "init_declarator").iter().all(|one| {
            one.child_by_field_name("value")
                .is_some_and(|value| matches!(source.text_of(value), "0.0" | "0"))
        });
        if source.text_of(kind) == "double"
            && is_zero
            && !source.all(declaration, "init_declarator").is_empty()
        {
            edits.replace(kind.byte_range(), "float");
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}
