//! Lengths of time as text: Go's notation (<https://pkg.go.dev/time#ParseDuration>), as in `1m30s` or `500ms`.

use std::time::Duration;

/// The longest that a configuration may ask for.
pub(crate) const MAX: Duration = Duration::from_secs(365 * 86_400);

/// In nanoseconds.
const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Seconds, whatever their sign. `0` needs no unit; all other numbers do.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    if unsigned == "0" {
        return Some(0.0);
    }
    let mut rest = unsigned;
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let (number, tail) = split_where(rest, |c| !(c.is_ascii_digit() || c == '.'));
        let (unit, tail) = split_where(tail, |c| c.is_ascii_digit() || c == '.');
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let number: f64 = number.parse().ok().filter(|_| number != ".")?;
        nanos += number * factor;
        rest = tail;
    }
    (!unsigned.is_empty() && nanos.is_finite()).then_some(sign * nanos / 1e9)
}

/// The same, or a number of days as in `7d`: for what is kept rather than waited for.
pub(crate) fn parse_age(text: &str) -> Option<f64> {
    let days = text.strip_suffix('d').filter(|days| days.bytes().all(|byte| byte.is_ascii_digit()));
    match days {
        Some(days) => days.parse::<f64>().ok().map(|days| days * 86_400.0),
        None => parse(text),
    }
}

/// How long ago, as in `30m`, `12h` or `7d`; `None` where it is no length of time, is negative, or more than a year.
pub fn age(text: &str) -> Option<Duration> {
    parse_age(text).and_then(of_seconds)
}

/// A duration, where it is neither negative nor longer than [`MAX`].
pub(crate) fn of_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|&duration| duration <= MAX)
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(is_end).unwrap_or(text.len())).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        for (text, seconds) in [
            ("5s", Some(5.0)),
            ("500ms", Some(0.5)),
            ("1m30s", Some(90.0)),
            ("1.5h", Some(5400.0)),
            ("2h0.5m", Some(7230.0)),
            ("100us", Some(0.0001)),
            ("100µs", Some(0.0001)),
            (".5s", Some(0.5)),
            ("-1s", Some(-1.0)),
            ("0", Some(0.0)),
            ("5", None),
            ("s", None),
            (".s", None),
            ("5 s", None),
            ("5sec", None),
            ("1..2s", None),
            ("", None),
            ("-", None),
            ("1d", None),
            ("٣s", None),
        ] {
            assert_eq!(parse(text), seconds, "{text}");
        }
    }

    #[test]
    fn an_age_may_be_given_in_days() {
        for (text, seconds) in [("7d", Some(604_800)), ("1h30m", Some(5400)), ("0d", Some(0)), ("90s", Some(90))] {
            assert_eq!(age(text), seconds.map(Duration::from_secs), "{text}");
        }
        for text in ["d", "1.5d", "-1d", "1d12h", "7 d", "400d", "99999999999999999999d", "", "x"] {
            assert_eq!(age(text), None, "{text}");
        }
    }

    #[test]
    fn a_duration_is_exact_and_bounded() {
        assert_eq!(of_seconds(0.1), Some(Duration::from_millis(100)));
        assert_eq!(parse("1m0.3s").and_then(of_seconds), Some(Duration::from_millis(60_300)));
        assert_eq!(of_seconds(-1.0), None);
        assert_eq!(of_seconds(1e300), None);
        assert_eq!(of_seconds(f64::NAN), None);
    }
}
