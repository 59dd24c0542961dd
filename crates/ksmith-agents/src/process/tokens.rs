//! C-like text as tokens: comments and layout gone, names that the text itself declares replaced by numbers.
//!
//! Only declared names are replaced: `exp` and `expf` stay two, while `sum` and `total` become one. Whether a name is
//! declared is read from its neighbours and not from a grammar, so a name may stay that could have gone; never the
//! other way round for names that the text only calls.

use std::collections::BTreeMap;

/// A text without its comments; line breaks stay, so that lines keep their numbers.
pub fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut scan = Scan::new(text);
    while let Some(piece) = scan.next_piece() {
        match piece {
            Piece::Comment(comment) => {
                // A block comment separates what stands around it.
                out.push(' ');
                out.extend(comment.chars().filter(|c| *c == '\n'));
            }
            Piece::Quoted(text) | Piece::Plain(text) => out.push_str(text),
        }
    }
    out.split('\n').map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The tokens of a text with its own names replaced by `$0`, `$1`, … in order of appearance.
pub fn normalised(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (index, token) in tokens.iter().enumerate() {
        if is_declared(&tokens, index) && !names.contains_key(token.as_str()) {
            let name = format!("${}", names.len());
            names.insert(token, name);
        }
    }
    tokens
        .iter()
        .map(|token| {
            names
                .get(token.as_str())
                .cloned()
                .unwrap_or_else(|| token.clone())
        })
        .collect()
}

enum Piece<'a> {
    Comment(&'a str),
    Quoted(&'a str),
    Plain(&'a str),
}

/// Splits text into comments, quoted literals and the rest.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn next_piece(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.starts_with("//") {
            let mut end = 0;
            loop {
                let line = self.rest[end..].find('\n').map_or(self.rest.len(), |at| end + at);
                // A backslash at the end of a line comment carries it on.
                if line < self.rest.len() && self.rest[..line].trim_end_matches('\r').ends_with('\\') {
                    end = line + 1;
                    continue;
                }
                return Some(Piece::Comment(self.take(line)));
            }
        }
        if self.rest.starts_with("/*") {
            let end = self.rest[2..].find("*/").map_or(self.rest.len(), |at| at + 4);
            return Some(Piece::Comment(self.take(end)));
        }
        if let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let mut escaped = false;
            let end = self.rest[1..]
                .find(|c: char| {
                    let closes = !escaped && (c == quote || c == '\n');
                    escaped = c == '\\' && !escaped;
                    closes
                })
                .map_or(self.rest.len(), |at| at + 2);
            return Some(Piece::Quoted(self.take(end)));
        }
        let end = self
            .rest
            .char_indices()
            .skip(1)
            .find(|(at, c)| {
                matches!(c, '"' | '\'') && !self.rest[..*at].ends_with(|c: char| c.is_ascii_digit())
                    || self.rest[*at..].starts_with("//")
                    || self.rest[*at..].starts_with("/*")
            })
            .map_or(self.rest.len(), |(at, _)| at);
        Some(Piece::Plain(self.take(end)))
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut scan = Scan::new(text);
    while let Some(piece) = scan.next_piece() {
        match piece {
            Piece::Comment(_) => {}
            Piece::Quoted(text) => tokens.push(text.to_owned()),
            Piece::Plain(text) => split(text, &mut tokens),
        }
    }
    tokens
}

fn split(text: &str, tokens: &mut Vec<String>) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() || first == '\\' {
            rest = &rest[first.len_utf8()..];
            continue;
        } else if first.is_ascii_digit() {
            // Numbers with exponents, signs of exponents, suffixes and digit separators.
            let mut before = first;
            rest.char_indices()
                .skip(1)
                .find(|(_, c)| {
                    let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P');
                    before = *c;
                    !(c.is_ascii_alphanumeric() || matches!(c, '.' | '\'' | '_') || sign)
                })
                .map_or(rest.len(), |(at, _)| at)
        } else if is_name_start(first) {
            rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Words after which a name is being declared.
const TYPES: [&str; 24] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "bool",
    "_Bool",
    "unsigned",
    "signed",
    "auto",
    "const",
    "volatile",
    "restrict",
    "__restrict",
    "__restrict__",
    "register",
    "constexpr",
    "half",
    "size_t",
    "define",
    "struct",
    "typename",
];

fn is_type(token: &str) -> bool {
    TYPES.contains(&token)
        || token.ends_with("_t")
        || token.starts_with("__m128")
        || token.starts_with("__m256")
        || token.starts_with("__m512")
}

fn is_declared(tokens: &[String], index: usize) -> bool {
    let token = tokens[index].as_str();
    if !token.starts_with(is_name_start) || is_type(token) || KEYWORDS.contains(&token) {
        return false;
    }
    let mut before = index;
    while before > 0 && matches!(tokens[before - 1].as_str(), "*" | "&") {
        before -= 1;
    }
    before > 0 && is_type(&tokens[before - 1])
}

/// Words that never are names.
const KEYWORDS: [&str; 22] = [
    "static",
    "inline",
    "extern",
    "return",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "goto",
    "sizeof",
    "typedef",
    "enum",
    "union",
    "template",
    "class",
    "namespace",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_go_and_literals_stay() {
        let text =
            "int a; // one \\\n still one\nchar *s = \"/* no */ // no\"; /* b\n c */ int d = '\"'; // e\n";
        assert_eq!(
            without_comments(text),
            "int a;\n\nchar *s = \"/* no */ // no\";\n int d = '\"';\n"
        );
    }

    #[test]
    fn names_of_its_own_are_numbers_and_those_it_calls_stay() {
        let one = "void f(const float *x, int n) { float sum = 0.f; for (int i = 0; i < n; ++i) sum += expf(x[i]); }";
        let other = "void g(const float* row,int len){float total=0.f;/* all */for(int j=0;j<len;++j)total+=expf(row[j]);}";
        assert_eq!(normalised(one), normalised(other));
        let called = other.replace("expf", "exp2f");
        assert_ne!(normalised(one), normalised(&called));
        assert_ne!(normalised(one), normalised(&one.replace("0.f", "1.f")));
        assert_ne!(normalised(one), normalised(&one.replace("i < n", "i <= n")));
    }

    #[test]
    fn exchanging_two_names_is_no_renaming() {
        let one = "int a = 1; int b = 2; f(a, b);";
        assert_eq!(normalised(one), normalised("int b = 1; int a = 2; f(b, a);"));
        assert_ne!(normalised(one), normalised("int a = 1; int b = 2; f(b, a);"));
    }

    proptest! {
        #[test]
        fn any_text_is_split_without_a_panic_and_loses_no_line(text in "[ -~\n\"'/*\\\\µ]{0,200}") {
            normalised(&text);
            let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
            prop_assert_eq!(lines(&without_comments(&text)), lines(&text));
        }

        #[test]
        fn layout_never_counts(words in proptest::collection::vec("[a-z]{1,4}|[0-9]{1,3}|[+;(){}]", 0..30)) {
            let tight = words.join(" ");
            let loose = words.join("\n /* x */ \t");
            prop_assert_eq!(normalised(&tight), normalised(&loose));
        }
    }
}
