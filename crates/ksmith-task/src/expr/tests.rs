use proptest::prelude::*;

use super::*;
use crate::DType;

fn env() -> Env {
    [("rows", 7), ("cols", 12)].into_iter().collect()
}

fn eval(text: &str) -> Result<Value, String> {
    Expr::parse(text)
        .and_then(|expr| expr.eval(&env()))
        .map_err(|error| error.message)
}

#[test]
fn precedence_is_that_of_c() {
    assert_eq!(eval("2 + 3 * 4 - 10 / 3"), Ok(Value::Int(11)));
    assert_eq!(eval("1 + 1 == 2 && !(3 < 2) || false"), Ok(Value::Bool(true)));
    assert_eq!(eval("rows > 5 ? cols : 0"), Ok(Value::Int(12)));
    assert_eq!(eval("10 - 4 - 3"), Ok(Value::Int(3)));
    assert_eq!(eval("-rows + 1"), Ok(Value::Int(-6)));
}

#[test]
fn integers_and_floats_mix() {
    assert_eq!(eval("1 / 2"), Ok(Value::Int(0)));
    assert_eq!(eval("1 / 2.0"), Ok(Value::Float(0.5)));
    assert_eq!(eval("1 / sqrt(float(cols + 4))"), Ok(Value::Float(0.25)));
    assert_eq!(eval("int(2.9)"), Ok(Value::Int(2)));
    assert_eq!(eval("max(1, 2.5, rows)"), Ok(Value::Float(7.0)));
}

#[test]
fn named_functions_compute() {
    assert_eq!(eval("ceil_div(cols, 5)"), Ok(Value::Int(3)));
    assert_eq!(eval("round_up(rows, 8)"), Ok(Value::Int(8)));
    assert_eq!(
        eval("is_pow2(64) && !is_pow2(cols) && !is_pow2(0)"),
        Ok(Value::Bool(true))
    );
    assert_eq!(eval("log2(8)"), Ok(Value::Float(3.0)));
    assert_eq!(eval("8 * u(f32)"), Ok(Value::Float(8.0 * 2f64.powi(-24))));
    assert_eq!(eval("min(rows, cols)"), Ok(Value::Int(7)));
    let mut with_type = env();
    with_type.set("T", DType::Bf16);
    assert_eq!(Expr::parse("T == bf16").unwrap().eval_bool(&with_type), Ok(true));
}

#[test]
fn overflow_and_division_by_zero_are_errors() {
    for text in [
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "9223372036854775807 * 2",
        "1e308 * 10",
        "int(1e300)",
        "round_up(9223372036854775807, 2)",
    ] {
        assert_eq!(
            eval(text),
            Err("overflow: the value does not fit".to_owned()),
            "{text}"
        );
    }
    for text in ["1 / 0", "1 % 0", "1.0 / 0", "(0 - 9223372036854775807 - 1) / 0"] {
        assert_eq!(eval(text), Err("division by zero".to_owned()), "{text}");
    }
    assert!(eval("(0 - 9223372036854775807 - 1) / -1").is_err());
    assert!(eval("(0 - 9223372036854775807 - 1) % -1").is_err());
}

#[test]
fn errors_point_at_the_part_to_blame() {
    let error = Expr::parse("rows + colz").unwrap().eval(&env()).unwrap_err();
    assert_eq!(
        (error.span, error.help),
        (7..11, Some("did you mean `cols`?".to_owned()))
    );
    let error = Expr::parse("ciel_div(1, 2)").unwrap_err();
    assert_eq!(error.help, Some("did you mean `ceil_div`?".to_owned()));
    assert_eq!(
        Expr::parse("k = 3").unwrap_err().help,
        Some("equality is `==`".to_owned())
    );
    assert!(Expr::parse("").is_err());
    assert!(Expr::parse("1 2").is_err());
    assert!(Expr::parse("min()").is_err());
}

#[test]
fn deep_nesting_is_an_error_and_no_stack_overflow() {
    assert!(Expr::parse(&"(".repeat(4000)).is_err());
    assert!(Expr::parse(&"-".repeat(4000)).is_err());
    assert!(Expr::parse(&"1?".repeat(2000)).is_err());
    assert!(Expr::parse(&format!("1{}", "+1".repeat(2000))).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_parser_or_evaluator_panic(text in "[-+*/%<>=!?:&|(),. a-z0-9_µé]{0,60}") {
        let _ = Expr::parse(&text).and_then(|expr| expr.eval(&env()));
    }

    #[test]
    fn sums_of_products_agree_with_checked_arithmetic(a: i64, b in -1000i64..1000, c: i64) {
        let env: Env = [("a", a), ("b", b), ("c", c)].into_iter().collect();
        let found = Expr::parse("a * b + c").unwrap().eval_int(&env).ok();
        prop_assert_eq!(found, a.checked_mul(b).and_then(|product| product.checked_add(c)));
    }

    #[test]
    fn ceil_div_is_the_least_sufficient_count(a in 0i64..1_000_000_000, b in 1i64..1_000_000) {
        let env: Env = [("a", a), ("b", b)].into_iter().collect();
        let count = Expr::parse("ceil_div(a, b)").unwrap().eval_int(&env).unwrap();
        prop_assert!(count * b >= a && (count - 1) * b < a);
    }

    #[test]
    fn an_integer_literal_survives_its_text_form(value: i64) {
        if value != i64::MIN {
            prop_assert_eq!(Expr::parse(&value.to_string()).unwrap().eval_int(&Env::new()), Ok(value));
        }
    }
}
