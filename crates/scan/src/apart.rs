//! Ranges in order and apart from each other.

use std::ops::Range;

/// Adds `range` to `ranges`; what overlaps is joined, what touches is not.
pub(crate) fn join(ranges: &mut Vec<Range<usize>>, mut range: Range<usize>) {
    let from = ranges.partition_point(|other| other.end <= range.start);
    let to = ranges.partition_point(|other| other.start < range.end).max(from);
    for other in ranges.drain(from..to) {
        range = range.start.min(other.start)..range.end.max(other.end);
    }
    ranges.insert(from, range);
}

/// `at`, or the beginning of the range that it is inside of.
pub(crate) fn outside(ranges: &[Range<usize>], at: usize) -> usize {
    let place = ranges.partition_point(|range| range.end <= at);
    ranges.get(place).map_or(at, |range| at.min(range.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_joined_and_what_touches_is_not() {
        let mut ranges = vec![];
        for range in [10..20, 30..40, 20..25, 24..31, 50..60] {
            join(&mut ranges, range);
        }
        assert_eq!(ranges, [10..20, 20..40, 50..60]);
    }
}
