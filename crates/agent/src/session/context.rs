//! What hooks want the model to know, each for as long as it holds.

use gatehook_engine::events::Verdict;

/// Texts for the model beside the conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contexts {
    /// For the session.
    pub(super) session: String,
    /// Until the model is done.
    pub(super) run: String,
    /// For the turn.
    pub(super) turn: String,
}

/// What a verdict wants the model to know.
pub(super) fn told(verdict: &Verdict) -> String {
    let mut told = verdict.additional_context.trim().to_owned();
    for item in &verdict.instruction_context {
        add(&mut told, item.get("content").and_then(|content| content.as_str()).unwrap_or_default());
    }
    told
}

/// Adds a text on lines of its own.
pub(super) fn add(to: &mut String, text: &str) {
    let text = text.trim();
    if !to.is_empty() && !text.is_empty() {
        to.push_str("\n\n");
    }
    to.push_str(text);
}

impl Contexts {
    /// What the model is told before the conversation, as one text, because several servers take a system message only as
    /// the first. What changes least comes first.
    pub(super) fn system(&self, instruction: &str) -> String {
        let mut system = String::new();
        for text in [instruction, &self.session, &self.run, &self.turn] {
            add(&mut system, text);
        }
        system
    }
}
