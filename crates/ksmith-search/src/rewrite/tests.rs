use super::*;

fn none() -> BTreeMap<usize, usize> {
    BTreeMap::new()
}

const SOFTMAX: &str = include_str!("../../../../tasks/softmax/baseline/cpu/kernel.c");
const COLUMNS: &str = include_str!("../../../../tasks/column_sum/baseline/cpu/kernel.c");
const SCAN: &str = include_str!("../../../../tasks/scan/baseline/cpu/kernel.c");

fn marked(text: &str) -> Option<String> {
    apply(text, "f", SIMD, &none())
}

#[test]
fn reductions_and_independent_loops_are_marked() {
    let text = apply(
        SOFTMAX,
        "softmax",
        Recipe {
            polynomial_exp: true,
            ..SIMD
        },
        &none(),
    )
    .expect("softmax is rewritten");
    assert!(text.contains("#pragma omp simd reduction(max:max)"), "{text}");
    assert!(text.contains("#pragma omp simd reduction(+:sum)"), "{text}");
    assert!(
        text.contains("const float *restrict x, float *restrict y"),
        "{text}"
    );
    assert_eq!(text.matches("= polynomial_expf(").count(), 1, "{text}");
}

#[test]
fn a_carried_sum_that_is_stored_is_not_marked() {
    assert_eq!(apply(SCAN, "scan", SIMD, &none()), None);
}

#[test]
fn loops_that_may_depend_on_themselves_are_not_marked() {
    for body in [
        "for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];",
        "for (int i = 0; i < n; i++) y[x[i]] += 1;",
        "for (int i = 0; i < n; i++) { if (x[i]) break; y[i] = 1; }",
        "for (int i = 0; i < n; i++) y[i] = next();",
        "for (int i = 0; i < n; i++) y[2 * i] = x[i];",
        "for (int i = 0; i < n; i++) *p++ = x[i];",
        "for (int i = 0; i < n; i += 2) y[i] = x[i];",
        "for (int i = 0; i < n; i++) y[0] = x[i];",
        "for (int i = 0; i < n; i++) { s += x[i]; y[i] = s; }",
        "for (int i = 0; i < n; i++) if (x[i] > m) { m = x[i]; at = i; }",
    ] {
        let text =
            format!("void f(int *x, int *y, int n) {{ int s = 0, m = 0, at = 0; int *p = y; {body} }}");
        assert_eq!(marked(&text), None, "{body}");
    }
}

#[test]
fn a_stencil_into_another_array_is_marked() {
    let text = "void f(const float *x, float *y, int n) { for (int i = 1; i < n - 1; i++) { float l = x[i - 1]; y[i] = l + x[i + 1]; } }";
    assert!(marked(text).expect("a stencil").contains("#pragma omp simd\nfor"));
}

#[test]
fn columns_are_summed_in_strips() {
    let text = apply(
        COLUMNS,
        "column_sum",
        Recipe {
            interchange: true,
            ..SIMD
        },
        &none(),
    )
    .expect("columns are rewritten");
    assert!(
        text.contains("sum_strip[c - c_strip] += x[r * cols + c];"),
        "{text}"
    );
    assert!(text.contains("y[c] = (float)sum_strip[c - c_strip];"), "{text}");
}

#[test]
fn a_column_loop_that_reads_its_result_is_not_interchanged() {
    let text = "void f(float *x, float *y, int m, int n) { for (int c = 0; c < n; c++) { float s = 0; for (int r = 0; r < m; r++) s += x[r * n + c] * y[r]; y[c] = s; } }";
    assert_eq!(
        apply(
            text,
            "f",
            Recipe {
                interchange: true,
                ..SIMD
            },
            &none(),
        ),
        None
    );
}

#[test]
fn text_that_is_not_c_is_left_alone() {
    assert_eq!(
        apply(
            "template <class T> T f(T x) { return x ;; ] }",
            "f",
            SIMD,
            &none()
        ),
        None
    );
}

#[test]
fn arrays_that_may_be_the_same_memory_are_not_independent() {
    for (body, independent) in [
        (
            "float *z = y + 1; for (int i = 0; i < n; i++) y[i] = z[i];",
            false,
        ),
        ("float *z = y + 1; for (int i = 0; i < n; i++) z[i] = x[i];", true),
        (
            "const float *z = x + n; for (int i = 0; i < n; i++) y[i] = z[i];",
            true,
        ),
        (
            "float *z; z = y; for (int i = 0; i < n; i++) z[i] = y[i + 1];",
            false,
        ),
        (
            "float *z[2] = {y, y + 1}; for (int i = 0; i < n; i++) y[i] = z[1][i];",
            false,
        ),
        ("for (int i = 0; i < n; i++) { y[i] = 1; n -= 1; }", false),
    ] {
        let text = format!("void f(const float *x, float *y, int n) {{ {body} }}");
        assert_eq!(marked(&text).is_some(), independent, "{body}");
    }
    // Only the entry's parameters are known not to overlap.
    for (parameters, independent) in [
        ("const float *x, float *y", false),
        ("const float *restrict x, float *restrict y", true),
    ] {
        let text = format!(
            "static void g({parameters}, int n) {{ for (int i = 0; i < n; i++) y[i] = x[i]; }}
            void f(const float *x, float *y, int n) {{ g(y, y + 1, n); }}"
        );
        assert_eq!(
            marked(&text).is_some_and(|text| text.contains("#pragma")),
            independent,
            "{parameters}"
        );
    }
}

fn interchanged(text: &str) -> Option<String> {
    let recipe = Recipe {
        interchange: true,
        ..NOTHING
    };
    apply(text, "f", recipe, &none())
}

#[test]
fn nests_maxima_and_declared_values_are_interchanged_too() {
    for (body, found) in [
        (
            "float s = 0; for (int a = 0; a < 3; a++) for (int b = 0; b < 3; b++) s += x[a * n + b + j] * w[a * 3 + b]; y[j] = s;",
            "s_strip[j - j_strip] += x[a * n + b + j] * w[a * 3 + b];",
        ),
        (
            "float m = x[j]; for (int a = 1; a < 9; a++) if (x[a * n + j] > m) m = x[a * n + j]; y[j] = m;",
            "if (x[a * n + j] > m_strip[j - j_strip]) m_strip[j - j_strip] = x[a * n + j];",
        ),
        (
            "float s = 0; for (int a = 0; a < 9; a++) { float d = x[a] - w[a * n + j]; s += d * d; } y[j] = sqrtf(s);",
            "{ float d = x[a] - w[a * n + j]; s_strip[j - j_strip] += d * d; }",
        ),
        (
            "float s = 0; for (int a = 0; a < 9; a++) s += x[a * n + j]; y[j] = y[j] + s;",
            "y[j] = y[j] + s_strip[j - j_strip];",
        ),
    ] {
        let text = format!(
            "void f(const float *x, const float *w, float *y, int n) {{ for (int j = 0; j < n; j++) {{ {body} }} }}"
        );
        let rewritten = interchanged(&text).unwrap_or_else(|| panic!("{body}"));
        assert!(rewritten.contains(found), "{rewritten}");
    }
    for body in [
        "float s = 0; for (int a = 0; a < j; a++) s += x[a * n + j]; y[j] = s;",
        "float s = 0; for (int a = 0; a < 9; a++) s += y[a]; y[j] = s;",
        "float s = 0; for (int a = 0; a < 9; a++) { y[a] = 1; s += x[a]; } y[j] = s;",
        "float s = 0; for (int a = 0; a < 9; a++) { if (x[a] > 1) break; s += x[a]; } y[j] = s;",
        "float s = 0; for (int a = 0; a < 9; a++) s += x[a] * s; y[j] = s;",
        "float s = 0; for (int a = 0; a < 9; a++) if (x[a] > s) s = w[a]; y[j] = s;",
        "float s = 0; for (int a = 0; a < next(); a++) s += x[a]; y[j] = s;",
    ] {
        let text = format!(
            "void f(const float *x, const float *w, float *y, int n) {{ for (int j = 0; j < n; j++) {{ {body} }} }}"
        );
        assert_eq!(interchanged(&text), None, "{body}");
    }
}

fn counted(text: &str) -> Option<String> {
    let recipe = Recipe {
        narrow_counts: true,
        ..NOTHING
    };
    apply(text, "f", recipe, &none())
}

#[test]
fn counters_are_narrowed_within_blocks() {
    let text = "void f(const char *x, long *y, int n) { long a = 0, b = 0; \
        for (int i = 0; i < n; i++) { if (x[i] > 3) a += 2; else b++; if (x[i] == 9) ++a; } y[0] = a; y[1] = b; }";
    let found = counted(text).expect("two counters");
    for piece in [
        "i_block += 21824)",
        "unsigned short a_part = 0, b_part = 0;",
        "a_part += 2; else b_part += 1; if (x[i] == 9) a_part += 1;",
        "a += a_part; b += b_part;",
    ] {
        assert!(found.contains(piece), "{piece} in {found}");
    }
    for change in [
        "a += x[i];",
        "{ a += 1; y[i] = a; }",
        "{ if (x[i]) break; a += 1; }",
        "{ a += 1; n += 1; }",
        "a += 5000;",
        "{ int *p = &c; c += 1; }",
        "z += 1;",
    ] {
        let text = format!(
            "int z; void f(const char *x, long *y, int n) {{ long a = 0; int c = 0; for (int i = 0; i < n; i++) {change} y[0] = a + c; }}"
        );
        assert_eq!(counted(&text), None, "{change}");
    }
}

fn bordered(text: &str) -> Option<String> {
    let recipe = Recipe {
        borders: true,
        ..NOTHING
    };
    apply(text, "f", recipe, &none())
}

#[test]
fn what_is_overwritten_is_not_written_first() {
    let body = "for (long i = 0; i < h * w; i++) y[i] = x[i] * 2; \
        for (long i = 1; i < h - 1; i++) for (long j = 2; j < w; j++) { float l = x[i * w + j - 1]; y[i * w + j] = l; }";
    let text = format!("void f(const float *x, float *y, long h, long w) {{ {body} }}");
    let found = bordered(&text).expect("a border");
    assert!(
        found.contains("y[i_row * w + i_col] = x[(i_row * w + i_col)] * 2;"),
        "{found}"
    );
    assert!(found.contains("i_row >= 1 && i_row < h - 1"), "{found}");
    for (from, to) in [
        ("= l;", "= l + y[0];"),
        ("= l;", "+= l;"),
        ("= x[i] * 2", "= y[i] * 2"),
        ("i < h * w", "i < h * 2"),
        ("j < w;", "j < w + 1;"),
        ("j = 2;", "j = h;"),
        ("y[i * w + j] = l;", "if (l > 0) y[i * w + j] = l;"),
        ("y[i * w + j] = l;", "y[j * w + i] = l;"),
        ("float l", "if (x[j] > 1) break; float l"),
    ] {
        assert_eq!(bordered(&text.replace(from, to)), None, "{to}");
    }
}

fn several(text: &str) -> Option<String> {
    let recipe = Recipe {
        several_tables: true,
        ..NOTHING
    };
    apply(text, "f", recipe, &BTreeMap::from([(1, 256)]))
}

#[test]
fn counts_in_a_table_of_fixed_size_are_kept_several_times() {
    for change in [
        "count[x[i]] += 1;",
        "count[x[i]]++;",
        "{ count[x[i] & 15] += 3; }",
    ] {
        let text = format!(
            "void f(const uint8_t *x, int64_t *count, int64_t n) {{ for (int64_t i = 0; i < n; i++) {change} }}"
        );
        let found = several(&text).unwrap_or_else(|| panic!("{change} is not rewritten"));
        assert!(found.contains("int64_t count_ways[4][256]"), "{found}");
        assert!(found.contains("count_ways[3][x[(i + 3)]"), "{found}");
    }
}

#[test]
fn tables_that_are_read_or_not_whole_or_not_fixed_are_left_alone() {
    for change in [
        "count[count[i]] += 1;",
        "count[x[i]] += x[i];",
        "count[x[i]] -= 1;",
        "other[x[i]] += 1;",
        "count[next(i)] += 1;",
        "count[0] += 1;",
        "{ count[x[i]] += 1; other[i] = count[0]; }",
    ] {
        let text = format!(
            "void f(const uint8_t *x, int64_t *count, int64_t *other, int64_t n) {{ for (int64_t i = 0; i < n; i++) {change} }}"
        );
        assert_eq!(several(&text), None, "{change}");
    }
    let floats = "void f(const uint8_t *x, float *count, int64_t n) { for (int64_t i = 0; i < n; i++) count[x[i]] += 1; }";
    assert_eq!(several(floats), None);
}
