//! Durations on the command line: `90s`, `20m`, `1h30m`.

/// Reads a duration in seconds.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no duration; expected for example `90s`, `20m` or `1h30m`");
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        seconds += number
            * match &rest[..unit] {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return Err(wrong()),
            };
        rest = &rest[unit..];
    }
    Ok(seconds)
}

/// Reads a duration that allows something.
pub(crate) fn parse_some(text: &str) -> Result<f64, String> {
    match parse(text)? {
        seconds if seconds > 0.0 => Ok(seconds),
        _ => Err(format!(
            "`{text}` allows nothing; expected for example `90s`, `20m` or `1h30m`"
        )),
    }
}

/// Writes seconds for people.
pub(crate) fn show(seconds: f64) -> String {
    if seconds.is_infinite() {
        return "no limit".to_owned();
    }
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, seconds, shown) in [
            ("90s", 90.0, "1 min 30 s"),
            ("20m", 1200.0, "20 min 00 s"),
            ("1h30m", 5400.0, "1 h 30 min"),
            ("0s", 0.0, "0 s"),
            ("1.5m", 90.0, "1 min 30 s"),
        ] {
            assert_eq!(parse(text), Ok(seconds), "{text}");
            assert_eq!(show(seconds), shown);
        }
        for wrong in ["", "20", "m", "20x", "-5s", "1h30"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_some("1s"), Ok(1.0));
        assert!(parse_some("0s").unwrap_err().contains("allows nothing"));
        assert_eq!(show(f64::INFINITY), "no limit");
    }
}
