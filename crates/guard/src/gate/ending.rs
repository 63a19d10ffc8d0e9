//! How an answer ends that cannot go on. Rare, and so apart from what every frame runs through.

use gatehook_inference::{Block, ErrorKind, Fault, HookNote, Phase, Unheld};

use super::Gate;
use crate::heed::unheld;
use crate::refusal::Refusal;

impl Gate {
    /// What hooks want cannot be done.
    #[cold]
    pub(super) fn cannot(&mut self, no: &Unheld) {
        self.refuse(unheld(Phase::PostInference, &self.call.as_call(), &no.reason));
    }

    #[cold]
    pub(super) fn endless(&mut self) {
        tracing::warn!(id = &*self.call.request_id, "what hooks may find in an answer has no end");
        self.refuse(Refusal::new(ErrorKind::HookUnavailable).saying("A text of the answer cannot be judged."));
    }

    #[cold]
    pub(super) fn fault(&mut self, fault: &Fault) {
        tracing::warn!(id = &*self.call.request_id, %fault, "a stream cannot be shown to hooks");
        let text = match fault {
            Fault::Cut => "The inference server's answer broke off.",
            _ => "The inference server's answer cannot be shown to a policy hook.",
        };
        self.refuse(Refusal::new(ErrorKind::BadUpstream).saying(text));
    }

    #[cold]
    pub(super) fn too_large(&mut self) {
        let limit = self.settings.limit;
        let text = format!("The inference server's answer is longer than the {limit} bytes that a hook can be shown.");
        self.refuse(Refusal::new(ErrorKind::BadUpstream).saying(text));
    }

    /// Ends the answer: plainly as long as nothing has left, by its protocol after that.
    #[cold]
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        (self.judging, self.clock) = (None, None);
        if self.committed {
            let text = if refusal.message.is_empty() { refusal.kind.sentence() } else { &refusal.message };
            let bytes = match &refusal.hook {
                Some(note) => {
                    let permission = note.permission.clone().or_else(|| refusal.kind.permission().map(str::to_owned));
                    let hook = HookNote { permission, ..(**note).clone() };
                    self.relay.block(&Block { message: text, hook: &hook, ending: self.settings.ending })
                }
                None => self.relay.fail(refusal.kind, text, &self.call.request_id),
            };
            self.last = Some(bytes).filter(|bytes| !bytes.is_empty());
        }
        self.outcome = Some(refusal);
    }
}
