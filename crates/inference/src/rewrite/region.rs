//! Steps into the places of the body that hold messages.

use std::collections::BTreeSet;

use gatehook_events::Message;
use serde_json::Value;

use super::calls::Fate;
use super::{Step, message};
use crate::error::Unheld;
use crate::json::{At, Document, Edits, Kind, quote};
use crate::view::{Chat, Region};

struct Rewrite<'a> {
    document: &'a Document,
    chat: &'a Chat,
    shown: &'a [Message],
    edits: &'a mut Edits,
}

/// Makes the edits of `steps`.
pub(super) fn rewrite(
    document: &Document,
    chat: &Chat,
    shown: &[Message],
    steps: &[Step<'_>],
    edits: &mut Edits,
) -> Result<(), Unheld> {
    let places = regions(document, chat, shown, steps)?;
    let mut rewrite = Rewrite { document, chat, shown, edits };
    for (index, region) in chat.regions.iter().enumerate() {
        let here: Vec<Step<'_>> =
            steps.iter().zip(&places).filter(|(_, place)| **place == index).map(|(step, _)| *step).collect();
        let before = chat.slots.iter().filter(|slot| slot.region == index).count();
        let kept = here.iter().filter(|step| step.shown().is_some()).count();
        if region.form.fixed && (kept != before || kept != here.len()) {
            return Err(Unheld::new("this route holds exactly the texts that the caller sent"));
        }
        if region.form.required && here.is_empty() && before > 0 {
            return Err(Unheld::new(format!("the request cannot be left without `{}`", region.key)));
        }
        match region.at.filter(|at| document.kind(*at) == Kind::Array) {
            Some(array) => rewrite.list(index, array, region, &here)?,
            None => rewrite.lone(region, &here)?,
        }
    }
    Ok(())
}

/// The region of each step. A new message goes to the first one, from where the last message was, that takes it and
/// has room. Regions follow one another; only among system messages does the order not count.
fn regions(document: &Document, chat: &Chat, shown: &[Message], steps: &[Step<'_>]) -> Result<Vec<usize>, Unheld> {
    let mut current = 0;
    let mut spoken = 0;
    let mut places: Vec<usize> = Vec::with_capacity(steps.len());
    let kept: BTreeSet<usize> = steps.iter().filter_map(|step| Some(chat.slots.get(step.shown()?)?.region)).collect();
    for step in steps {
        let (place, role) = match step {
            Step::New(message) => {
                let mut ahead = chat.regions.iter().enumerate().skip(current);
                let found = ahead.find(|(index, region)| {
                    let full = is_single(document, region) && (kept.contains(index) || places.contains(index));
                    (region.form.takes)(&message.role) && !full
                });
                (found.ok_or_else(|| no_place(&message.role))?.0, &*message.role)
            }
            Step::Keep(index) | Step::Edit(index, _) => (
                chat.slots.get(*index).map_or(current, |slot| slot.region),
                shown.get(*index).map_or("", |message| &*message.role),
            ),
        };
        if place < spoken {
            return Err(no_place(role));
        }
        if !matches!(role, "system" | "developer") {
            spoken = place;
        }
        current = place;
        places.push(place);
    }
    Ok(places)
}

/// Whether it can hold one string and no more.
fn is_single(document: &Document, region: &Region) -> bool {
    region.form.wrap.is_none() && region.at.is_none_or(|at| document.kind(at) != Kind::Array)
}

fn no_place(role: &str) -> Unheld {
    Unheld::new(format!("this route has no place for a `{role}` message there"))
}

impl Rewrite<'_> {
    /// A region that is an array.
    fn list(&mut self, region: usize, array: At, description: &Region, steps: &[Step<'_>]) -> Result<(), Unheld> {
        let mut alive: BTreeSet<At> = BTreeSet::new();
        let mut stays: BTreeSet<usize> = BTreeSet::new();
        let mut unit = None;
        let mut news: Vec<&Message> = Vec::new();
        for step in steps {
            let (index, fate) = match step {
                Step::New(message) => {
                    news.push(message);
                    continue;
                }
                Step::Keep(index) => (*index, Fate::Stays),
                Step::Edit(index, new) => (*index, self.edit(*index, new)?),
            };
            let Some(slot) = self.chat.slots.get(index) else { continue };
            let next = slot.path.first().map(|(_, element)| *element);
            if !news.is_empty() && unit.is_some() && unit == next {
                return Err(Unheld::new("a new message cannot stand between the parts of another one"));
            }
            self.insert(array, unit, description, &mut news)?;
            unit = next;
            if fate == Fate::Stays {
                alive.extend(slot.path.iter().map(|(_, element)| *element));
                stays.insert(index);
            }
        }
        let added = !news.is_empty() || steps.iter().any(|step| step.shown().is_none());
        self.insert(array, unit, description, &mut news)?;
        if description.form.required && alive.is_empty() && !added && !steps.is_empty() {
            return Err(Unheld::new(format!("the request cannot be left without `{}`", description.key)));
        }
        self.prune(region, &alive, &stays);
        Ok(())
    }

    fn edit(&mut self, index: usize, new: &Message) -> Result<Fate, Unheld> {
        let slot = self.chat.slots.get(index);
        let region = slot.and_then(|slot| self.chat.regions.get(slot.region));
        match (slot, region, self.shown.get(index)) {
            (Some(slot), Some(region), Some(old)) => {
                message::edit(self.document, slot, region.form, old, new, self.edits)
            }
            _ => Ok(Fate::Stays),
        }
    }

    fn insert(
        &mut self,
        array: At,
        after: Option<At>,
        region: &Region,
        news: &mut Vec<&Message>,
    ) -> Result<(), Unheld> {
        if !news.is_empty() {
            let texts = (region.form.build)(news, &|sha256| self.picture(sha256))?;
            self.edits.insert(array, after, texts.join(","));
            news.clear();
        }
        Ok(())
    }

    /// Takes out what no message that stays stands in.
    fn prune(&mut self, region: usize, alive: &BTreeSet<At>, stays: &BTreeSet<usize>) {
        let slots = self.chat.slots.iter().enumerate().filter(|(_, slot)| slot.region == region);
        for (_, slot) in slots.filter(|(index, _)| !stays.contains(index)) {
            for (array, element) in slot.path.iter().filter(|(_, element)| !alive.contains(element)) {
                self.edits.remove(*array, *element);
            }
            for (object, value) in &slot.members {
                self.edits.remove(*object, *value);
            }
        }
    }

    /// A region that is a lone string, or not there.
    fn lone(&mut self, description: &Region, steps: &[Step<'_>]) -> Result<(), Unheld> {
        match (steps, description.at) {
            ([], Some(at)) => self.edits.remove(Document::ROOT, at),
            ([], None) | ([Step::Keep(_)], _) => {}
            ([Step::Edit(index, new)], _) => {
                self.edit(*index, new)?;
            }
            ([Step::New(message)], at) if *message.role == *description.form.lone && is_plain(message) => {
                self.put(description.key, at, quote(message.content.as_deref().unwrap_or_default()));
            }
            _ => return self.promote(description, steps),
        }
        Ok(())
    }

    /// A lone string becomes a list.
    fn promote(&mut self, region: &Region, steps: &[Step<'_>]) -> Result<(), Unheld> {
        let Some(wrap) = region.form.wrap else {
            return Err(Unheld::new("this route holds no more than one system and one user message"));
        };
        let mut items = Vec::new();
        for step in steps {
            match (step, region.at) {
                (Step::New(message), _) => {
                    items.extend((region.form.build)(&[message], &|sha256| self.picture(sha256))?)
                }
                (Step::Keep(_), Some(at)) => items.push(wrap(self.document.raw(at))),
                (Step::Edit(_, new), _) => items.push(wrap(&quote(new.content.as_deref().unwrap_or_default()))),
                (Step::Keep(_), None) => {}
            }
        }
        self.put(region.key, region.at, format!("[{}]", items.join(",")));
        Ok(())
    }

    fn put(&mut self, key: &str, at: Option<At>, text: String) {
        match at {
            Some(at) => self.edits.replace(at, text),
            None => self.edits.add_member(self.document, Document::ROOT, key, &text),
        }
    }

    /// An image of the request by its fingerprint, as it stands in the body.
    fn picture(&self, sha256: &str) -> Option<Value> {
        let shown = self.shown.iter().zip(&self.chat.slots);
        shown.into_iter().find_map(|(message, slot)| {
            let index = message.images.iter().flatten().position(|image| image.sha256 == sha256)?;
            let at = match slot.images {
                crate::view::Images::Part { part, .. } => part,
                _ => *slot.images.data().get(index)?,
            };
            Some(self.document.value(at))
        })
    }
}

/// A message of nothing but text.
fn is_plain(message: &Message) -> bool {
    message.content.is_some()
        && message.thinking.is_none()
        && message.tool_calls.as_ref().is_none_or(Vec::is_empty)
        && message.images.as_ref().is_none_or(Vec::is_empty)
        && message.extra.is_empty()
}
