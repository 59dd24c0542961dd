//! Text to tokens.

use std::ops::Range;

use super::ExprError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Int(i64),
    Float(f64),
    Name(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 19] = [
    "&&", "||", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "!", "?", ":", "(", ")", ",",
];

/// Splits `text` into tokens with their byte ranges; the last one is `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if first.is_ascii_digit() || (first == '.' && digit_at(text, at + 1)) {
            let end = number_end(text, at);
            tokens.push((number(&text[at..end], at..end)?, at..end));
            at = end;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let rest = &text[at..];
            let length = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            tokens.push((Token::Name(rest[..length].to_owned()), at..at + length));
            at += length;
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| text[at..].starts_with(**symbol)) {
            tokens.push((Token::Symbol(symbol), at..at + symbol.len()));
            at += symbol.len();
        } else {
            let span = at..at + first.len_utf8();
            let error = ExprError::new(format!("`{}` has no meaning here", first.escape_debug()), span);
            return Err(match first {
                '=' => error.with_help("equality is `==`"),
                '&' | '|' => error.with_help("logic is `&&` and `||`"),
                '^' => error.with_help("there is no power operator; multiply"),
                _ => error,
            });
        }
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

fn digit_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

/// The end of the number that starts at `start`: digits, underscores, one point, one exponent.
fn number_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
            at += 1;
        }
        at
    };
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digit_at(text, end + 1 + sign) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

fn number(text: &str, span: Range<usize>) -> Result<Token, ExprError> {
    let plain = text.replace('_', "");
    if plain.contains(['.', 'e', 'E']) {
        match plain.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Token::Float(value)),
            _ => Err(ExprError::new(format!("`{text}` is not a finite number"), span)),
        }
    } else {
        plain
            .parse()
            .map(Token::Int)
            .map_err(|_| ExprError::new(format!("`{text}` does not fit in 64 bits"), span))
    }
}
