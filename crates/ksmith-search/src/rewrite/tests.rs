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
