//! Numbers of bytes as text, as in `64MiB`.

/// A unit means itself: binary ones count in 1,024, decimal ones in 1,000.
const UNITS: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

/// What [`parse`] takes, as a regular expression.
pub(crate) const PATTERN: &str = r"^[0-9]+ ?(?:[KMGT]iB|[kKMGT]B|B)$";

/// A whole number and a unit.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// In the largest unit that it is a whole number of.
pub(crate) fn spelled(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*factor);
    let (unit, factor) = UNITS.iter().find(fits).copied().unwrap_or(("B", 1));
    format!("{} {unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_size_is_a_whole_number_and_a_unit() {
        for (text, bytes) in [
            ("64MiB", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("1GB", Some(1_000_000_000)),
            ("10kB", Some(10_000)),
            ("0B", Some(0)),
            ("16777215TiB", Some(16_777_215 << 40)),
            ("16777216TiB", None),
            ("99999999999999999999B", None),
            ("64", None),
            ("MiB", None),
            ("64M", None),
            ("64mib", None),
            ("64  MiB", None),
            ("-1MiB", None),
            ("1.5GiB", None),
            ("٣MiB", None),
            ("", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_spelled_is_read_back(bytes: u64) {
            prop_assert_eq!(parse(&spelled(bytes)), Some(bytes));
        }

        #[test]
        fn what_is_read_fits_the_published_pattern(text in "[0-9]{0,22} {0,2}[kKMGTi]{0,2}B?|.*") {
            let fits = regex::Regex::new(PATTERN).unwrap().is_match(&text);
            prop_assert!(fits || parse(&text).is_none(), "{}", text);
        }
    }
}
