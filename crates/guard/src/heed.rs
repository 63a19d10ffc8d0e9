//! What a verdict comes to: the witness is told, and a no becomes a refusal.

use gatehook_engine::events::{Event, Verb, Verdict};
use gatehook_inference::{ErrorKind, HookNote, Phase, Request};

use crate::call::Call;
use crate::refusal::Refusal;

/// Tells the witness, and gives the refusal where the verdict is one.
pub(crate) fn heed(
    call: &Call<'_>,
    event: Event,
    phase: Phase,
    request: &Request,
    verdict: &Verdict,
) -> Result<(), Refusal> {
    witness(call, event, verdict);
    let Some(kind) = ErrorKind::of(verdict.verb).or((!verdict.allowed).then_some(ErrorKind::Denied)) else {
        return Ok(());
    };
    tracing::info!(
        id = &**call.request_id,
        event = event.name(),
        hook = verdict.refusal.as_ref().map(|refusal| &*refusal.hook_name),
        verb = verdict.verb.name(),
        "refused by a hook"
    );
    let mut note = refused(phase, call, verdict);
    if verdict.verb == Verb::Ask {
        note.fingerprint = Some(request.fingerprint(call.caller.key_name.as_deref().unwrap_or_default()));
    }
    let message = note.user_message.clone().unwrap_or_else(|| said(verdict));
    Err(Refusal { kind, message, hook: Some(Box::new(note)) })
}

/// Tells of every hook that ran, without a word of what it was shown or said.
pub(crate) fn witness(call: &Call<'_>, event: Event, verdict: &Verdict) {
    if verdict.outcomes.is_empty() {
        return;
    }
    call.witness.judged(event, verdict);
    for outcome in &verdict.outcomes {
        tracing::debug!(
            request_id = &**call.request_id,
            event = event.name(),
            hook = %outcome.name,
            verdict = outcome.verb.name(),
            duration = ?outcome.duration,
            "a hook ran"
        );
    }
}

/// Why, in the hook's own words. How a hook failed is nothing for a caller.
pub(crate) fn said(verdict: &Verdict) -> String {
    match verdict.verb {
        Verb::Deny | Verb::Ask if !verdict.decision_reason.is_empty() => verdict.decision_reason.clone(),
        Verb::Deny => verdict.message.clone(),
        _ => String::new(),
    }
}

/// Which exchange, and where in it.
pub(crate) fn note(phase: Phase, call: &Call<'_>) -> HookNote {
    HookNote { request_id: Some(call.request_id.to_string()), phase: Some(phase), ..HookNote::default() }
}

/// The same with the hook that refused, and what it wants said.
pub(crate) fn refused(phase: Phase, call: &Call<'_>, verdict: &Verdict) -> HookNote {
    let refusal = verdict.refusal.as_ref();
    HookNote {
        user_message: refusal.and_then(|refusal| refusal.user_message.clone()),
        agent_message: refusal.and_then(|refusal| refusal.agent_message.clone()),
        hook_name: refusal.map(|refusal| refusal.hook_name.to_string()),
        ..note(phase, call)
    }
}

/// A rewrite that the wire cannot hold.
pub(crate) fn unheld(phase: Phase, call: &Call<'_>, reason: &str) -> Refusal {
    tracing::warn!(id = &**call.request_id, reason, "a rewrite cannot be made");
    Refusal { hook: Some(Box::new(note(phase, call))), ..Refusal::new(ErrorKind::ModifyUnsupported) }
}
