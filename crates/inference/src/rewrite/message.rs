//! A changed message, into the slots of the shown one.

use gatehook_events::Message;

use super::align::same_images;
use super::calls::{Fate, edit_calls, edit_text};
use crate::error::Unheld;
use crate::json::{Document, Edits};
use crate::view::{Form, Images, Slot, is_image_note, is_note};

/// Changes what `new` names and differs from `old`.
pub(super) fn edit(
    document: &Document,
    slot: &Slot,
    form: &Form,
    old: &Message,
    new: &Message,
    edits: &mut Edits,
) -> Result<Fate, Unheld> {
    if let Some(why) = slot.sealed {
        return Err(Unheld::new(why));
    }
    if let (Images::Part { part, .. }, Some([]), Some(text)) = (&slot.images, new.images.as_deref(), &new.content) {
        // Words in place of an image.
        edits.replace(*part, (form.text_part)(text));
        return Ok(Fate::Stays);
    }
    let texts = [
        (&slot.content, "text", &old.content, &new.content),
        (&slot.thinking, "thinking", &old.thinking, &new.thinking),
        (&slot.tool_call_id, "the id of a call", &old.tool_call_id, &new.tool_call_id),
        (&slot.name, "a name", &old.name, &new.name),
    ];
    let mut fates = Vec::with_capacity(texts.len() + 2);
    for (place, what, old, new) in texts {
        fates.push(edit_text(document, place, what, old.as_ref(), new.as_ref(), edits)?);
    }
    if let Some(calls) = &new.tool_calls {
        let old_calls = old.tool_calls.as_deref().unwrap_or_default();
        fates.push(edit_calls(document, &slot.calls, old_calls, calls, edits)?);
        let silent = old.content.is_none() && new.content.is_none();
        if calls.is_empty() && !old_calls.is_empty() && silent && slot.calls.list.is_some() {
            // A message of neither text nor calls is none.
            edit_text(document, &slot.content, "text", Some(&" ".into()), Some(&"".into()), edits)?;
        }
    }
    if let Some(images) = &new.images {
        let old_images = old.images.as_deref().unwrap_or_default();
        if !same_images(old_images, images) {
            fates.push(edit_images(slot, old_images, images, edits)?);
        }
    }
    edit_extra(document, slot, old, new, edits)?;
    Ok(if fates.contains(&Fate::Goes) { Fate::Goes } else { Fate::Stays })
}

/// Images can be left out; one that was not there cannot be made from a fingerprint.
fn edit_images(
    slot: &Slot,
    old: &[gatehook_events::Image],
    new: &[gatehook_events::Image],
    edits: &mut Edits,
) -> Result<Fate, Unheld> {
    let kept = |image: &gatehook_events::Image| new.iter().any(|new| new.sha256 == image.sha256);
    if !new.iter().all(|new| old.iter().any(|old| old.sha256 == new.sha256)) {
        return Err(Unheld::new("an image can be kept or left out of its message, not added"));
    }
    match &slot.images {
        Images::Part { .. } => return Ok(Fate::Goes),
        Images::List { object, array, .. } if new.is_empty() => edits.remove(*object, *array),
        Images::List { array, data, .. } => {
            for (_, at) in old.iter().zip(data).filter(|(image, _)| !kept(image)) {
                edits.remove(*array, *at);
            }
        }
        Images::None => {}
    }
    Ok(Fate::Stays)
}

fn edit_extra(document: &Document, slot: &Slot, old: &Message, new: &Message, edits: &mut Edits) -> Result<(), Unheld> {
    for (key, value) in new.extra.iter().filter(|(key, value)| old.extra.get(*key) != Some(value)) {
        match (slot.extra.iter().find(|(name, _)| name == key), slot.object) {
            (Some((_, at)), _) => edits.replace(*at, value.to_string()),
            (None, Some(object)) if !old.extra.contains_key(key) && !is_note(key) && !is_image_note(key) => {
                edits.add_member(document, object, key, &value.to_string());
            }
            _ => return Err(Unheld::new(format!("the field `{key}` of this message cannot be rewritten"))),
        }
    }
    Ok(())
}
