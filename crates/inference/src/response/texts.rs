//! A text of an answer that stands in several pieces, and its rewrite.

use std::sync::Arc;

use crate::error::Unheld;
use crate::json::{At, Document, Edits, quote};

/// What becomes of a piece that has no text left.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left {
    /// An empty string.
    Blank,
    /// `null`.
    Null,
    /// It is taken out (container and child).
    Out(At, At),
}

/// A string that holds a piece of the text.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) at: At,
    pub(super) text: Arc<str>,
    /// When other pieces have all the text.
    pub(super) left: Left,
    /// When the whole text is emptied.
    pub(super) emptied: Left,
    /// It can be dropped, not changed: why.
    pub(super) sealed: Option<&'static str>,
}

/// Where a text goes that the answer had none of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Absent {
    #[default]
    Nowhere,
    /// Under a key of an object.
    Member(At, &'static str),
    /// In place of a null.
    Null(At),
    /// As an element of an array, after a child or at its beginning.
    Element(At, Option<At>, fn(&str) -> String),
}

/// A text, its pieces in order, and what repeats it.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    pub(super) pieces: Vec<Piece>,
    pub(super) absent: Absent,
    /// What says the same again in another form (container and child): taken out when the text changes.
    pub(super) echoes: Vec<(At, At)>,
    /// Strings that repeat the whole text: rewritten with it.
    pub(super) repeats: Vec<At>,
}

impl Texts {
    /// The text as a whole; none where there is no piece.
    pub(super) fn text(&self) -> Option<Arc<str>> {
        match self.pieces.as_slice() {
            [] => None,
            [piece] => Some(piece.text.clone()),
            pieces => Some(pieces.iter().map(|piece| &*piece.text).collect::<String>().into()),
        }
    }

    /// Puts `new` in its place: pieces at the beginning and the end that `new` still has stay, the first piece between
    /// them takes what is new, and the others go. Says whether anything changed.
    pub(super) fn rewrite(&self, document: &Document, new: Option<&str>, edits: &mut Edits) -> Result<bool, Unheld> {
        let Some(new) = new.filter(|new| *new != self.text().as_deref().unwrap_or_default()) else {
            return Ok(false);
        };
        if self.pieces.is_empty() {
            self.put(document, new, edits)?;
        } else if new.is_empty() {
            self.pieces.iter().for_each(|piece| piece.leave(piece.emptied, edits));
        } else {
            self.change(new, edits)?;
        }
        self.echoes.iter().for_each(|(container, child)| edits.remove(*container, *child));
        self.repeats.iter().for_each(|at| edits.set_text(*at, new));
        Ok(true)
    }

    fn put(&self, document: &Document, new: &str, edits: &mut Edits) -> Result<(), Unheld> {
        match self.absent {
            Absent::Nowhere => return Err(Unheld::new("this answer has no place for such a text")),
            Absent::Member(object, key) => edits.add_member(document, object, key, &quote(new)),
            Absent::Null(at) => edits.set_text(at, new),
            Absent::Element(array, after, write) => edits.insert(array, after, write(new)),
        }
        Ok(())
    }

    fn change(&self, new: &str, edits: &mut Edits) -> Result<(), Unheld> {
        if let Some(why) = self.pieces.iter().find_map(|piece| piece.sealed) {
            return Err(Unheld::new(why));
        }
        let mut middle = self.pieces.as_slice();
        let mut rest = new;
        while let ([first, others @ ..], true) = (middle, middle.len() > 1)
            && let Some(after) = rest.strip_prefix(&*first.text)
        {
            (middle, rest) = (others, after);
        }
        while let ([others @ .., last], true) = (middle, middle.len() > 1)
            && let Some(before) = rest.strip_suffix(&*last.text)
        {
            (middle, rest) = (others, before);
        }
        for (index, piece) in middle.iter().enumerate() {
            match index {
                0 if !rest.is_empty() || matches!(piece.left, Left::Blank) => edits.set_text(piece.at, rest),
                _ => piece.leave(piece.left, edits),
            }
        }
        Ok(())
    }
}

impl Piece {
    pub(super) fn new(document: &Document, at: At) -> Option<Self> {
        let text = document.text(at)?.into();
        Some(Self { at, text, left: Left::Blank, emptied: Left::Blank, sealed: None })
    }

    fn leave(&self, left: Left, edits: &mut Edits) {
        match left {
            Left::Blank => edits.set_text(self.at, ""),
            Left::Null => edits.replace(self.at, "null".to_owned()),
            Left::Out(container, child) => edits.remove(container, child),
        }
    }
}
