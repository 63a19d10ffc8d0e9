//! Social security numbers of the United States: `NNN-NN-NNNN`, with dashes or spaces
//! (<https://www.ssa.gov/employer/randomization.html>).

use super::search::Attempt;
use super::text::{Group, Sep, Text};

/// The number that begins with the digits at `at`.
pub(super) fn find(text: &Text<'_>, at: usize) -> Option<Attempt> {
    (!text.is_after_word(at)).then(|| Attempt { start: at, end: end(text, at) })
}

fn end(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut groups = text.groups(at);
    let area = groups.next().filter(|group| group.len() == 3)?;
    let pair = groups.next().filter(|group| group.len() == 2)?;
    let serial = groups.next().filter(|group| group.len() == 4)?;
    let sep = pair.sep.filter(|&sep| matches!(sep, Sep::Dash | Sep::Space) && serial.sep == Some(sep))?;
    // In the middle of a row of numbers, or in a longer number, is none.
    let (after, before) = (text.joined(at) == Some(sep), text.goes_on(serial.end, sep));
    let is_part = if sep == Sep::Space { after && before } else { after || before };
    if is_part || text.is_word(serial.end) {
        return None;
    }
    let digits = |group: Group| text.head(group.end).get(group.start..).unwrap_or_default();
    let is_area = !matches!(digits(area), "000" | "666") && !digits(area).starts_with('9');
    (is_area && digits(pair) != "00" && digits(serial) != "0000").then_some(serial.end)
}
