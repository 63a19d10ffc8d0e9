//! Which message of a rewrite is which of the shown ones.

use gatehook_events::{Image, Message};

use super::Step;
use super::calls::same_calls;

/// How far an equal message is looked for; it keeps long rewrites linear.
const LOOK_AHEAD: usize = 1024;

/// The same number and roles: by position. Otherwise equal messages are found again, from both ends and then in
/// order; between them, messages whose roles end (or begin) alike are taken for each other, and the rest is new.
pub(super) fn align<'m>(old: &[Message], new: &'m [Message]) -> Vec<Step<'m>> {
    if roles_equal(old, new) {
        return old.iter().zip(new).enumerate().map(|(index, (old, new))| step(index, old, new)).collect();
    }
    let mut steps = Vec::with_capacity(new.len());
    let mut done = (0, 0);
    for (i, j) in anchors(old, new) {
        gap(old, new, done, (i, j), &mut steps);
        steps.push(Step::Keep(i));
        done = (i + 1, j + 1);
    }
    gap(old, new, done, (old.len(), new.len()), &mut steps);
    steps
}

fn step<'m>(index: usize, old: &Message, new: &'m Message) -> Step<'m> {
    if unchanged(old, new) { Step::Keep(index) } else { Step::Edit(index, new) }
}

fn roles_equal(old: &[Message], new: &[Message]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.role == new.role)
}

/// Pairs of equal messages, in order on both sides.
fn anchors(old: &[Message], new: &[Message]) -> Vec<(usize, usize)> {
    let head = old.iter().zip(new).take_while(|(old, new)| equal(old, new)).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| equal(old, new)).count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|index| (index, index)).collect();
    let mut from = head;
    for (j, message) in new.iter().enumerate().take(new.len() - tail).skip(head) {
        let ahead = old.iter().enumerate().take(old.len() - tail).skip(from).take(LOOK_AHEAD);
        if let Some((i, _)) = ahead.into_iter().find(|(_, old)| equal(old, message)) {
            pairs.push((i, j));
            from = i + 1;
        }
    }
    pairs.extend((1..=tail).rev().map(|back| (old.len() - back, new.len() - back)));
    pairs
}

/// What stands between two anchors.
fn gap<'m>(
    old: &[Message],
    new: &'m [Message],
    (i, j): (usize, usize),
    (i_end, j_end): (usize, usize),
    steps: &mut Vec<Step<'m>>,
) {
    let gone = old.get(i..i_end).unwrap_or_default();
    let come = new.get(j..j_end).unwrap_or_default();
    let pairs = gone.len().min(come.len());
    let (old_skip, new_skip) = (gone.len() - pairs, come.len() - pairs);
    let ends = |from_old: usize, from_new: usize| {
        roles_equal(
            gone.get(from_old..from_old + pairs).unwrap_or_default(),
            come.get(from_new..from_new + pairs).unwrap_or_default(),
        )
    };
    let start = if ends(old_skip, new_skip) {
        Some((old_skip, new_skip))
    } else if ends(0, 0) {
        Some((0, 0))
    } else {
        None
    };
    for (offset, message) in come.iter().enumerate() {
        let twin = start.and_then(|(from_old, from_new)| {
            let index = offset.checked_sub(from_new).filter(|nth| *nth < pairs)? + from_old;
            let old = gone.get(index)?;
            (!drops_text(old, message)).then_some((index, old))
        });
        steps.push(match twin {
            Some((index, old)) => step(i + index, old, message),
            None => Step::New(message),
        });
    }
}

/// Whether `new` leaves out the text of `old`. Where messages come and go, that is one that has gone and another one.
fn drops_text(old: &Message, new: &Message) -> bool {
    new.content.is_none() && old.content.as_deref().is_some_and(|text| !text.is_empty())
}

/// Whether `new` is the shown message `old`: it names what is shown, no more and no less, save what hooks often leave
/// out (images' data, empty fields, fields without a name of their own).
fn equal(old: &Message, new: &Message) -> bool {
    let blank = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or_default().is_empty();
    unchanged(old, new)
        && blank(&old.content) == blank(&new.content)
        && blank(&old.thinking) == blank(&new.thinking)
        && old.tool_calls.iter().flatten().count() == new.tool_calls.iter().flatten().count()
}

/// Whether `new` changes nothing of `old`: what it does not name stays.
pub(super) fn unchanged(old: &Message, new: &Message) -> bool {
    let text = |old: &Option<std::sync::Arc<str>>, new: &Option<std::sync::Arc<str>>| match new.as_deref() {
        None => true,
        Some(new) => old.as_deref().unwrap_or_default() == new,
    };
    old.role == new.role
        && text(&old.content, &new.content)
        && text(&old.thinking, &new.thinking)
        && text(&old.tool_call_id, &new.tool_call_id)
        && text(&old.name, &new.name)
        && new.tool_calls.as_ref().is_none_or(|calls| same_calls(old.tool_calls.as_deref().unwrap_or_default(), calls))
        && new.images.as_ref().is_none_or(|images| same_images(old.images.as_deref().unwrap_or_default(), images))
        && new.extra.iter().all(|(key, value)| old.extra.get(key) == Some(value))
}

/// The same images, whether their data is shown or not.
pub(super) fn same_images(old: &[Image], new: &[Image]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.sha256 == new.sha256)
}
