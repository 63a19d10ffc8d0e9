//! One call of a model, as the host sees it.

use std::net::IpAddr;
use std::sync::Arc;

use gatehook_engine::events::{Event, Verdict};
use gatehook_inference::Path;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// One call of a model: where to, who asks, and who is told.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The path that the caller used.
    pub path: Path,
    /// Identity of the exchange.
    pub request_id: &'a Arc<str>,
    /// Who calls.
    pub caller: &'a Caller,
    /// Gives up; hooks that still run are ended.
    pub cancel: &'a CancellationToken,
    /// Is told what hooks decided.
    pub witness: &'a dyn Witness,
}

/// The same for what outlives the function that asks, as the gate of a stream.
#[derive(Clone)]
pub struct OwnedCall {
    /// The path that the caller used.
    pub path: Path,
    /// Identity of the exchange.
    pub request_id: Arc<str>,
    /// Who calls.
    pub caller: Arc<Caller>,
    /// Gives up; hooks that still run are ended.
    pub cancel: CancellationToken,
    /// Is told what hooks decided.
    pub witness: Arc<dyn Witness + Send>,
}

impl OwnedCall {
    /// The call, for as long as this one lives.
    pub fn as_call(&self) -> Call<'_> {
        Call {
            path: self.path,
            request_id: &self.request_id,
            caller: &self.caller,
            cancel: &self.cancel,
            witness: &*self.witness,
        }
    }
}

/// Who calls, as far as the host knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The address.
    pub address: Option<IpAddr>,
    /// The name of the key that was presented.
    pub key_name: Option<Arc<str>>,
    /// What the caller calls itself.
    pub user_agent: Option<String>,
    /// The session that the caller names.
    pub session: Option<String>,
    /// The approval that the caller presents.
    pub approval: Option<Arc<str>>,
}

impl Caller {
    /// `client` of a hook's input.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({});
        if let Some(map) = shown.as_object_mut() {
            map.extend(self.address.map(|address| ("address".to_owned(), address.to_string().into())));
            map.extend(self.key_name.as_deref().map(|name| ("key_name".to_owned(), name.into())));
            map.extend(self.user_agent.as_deref().map(|agent| ("user_agent".to_owned(), agent.into())));
        }
        shown
    }
}

/// Is told every verdict: metrics, audit.
pub trait Witness: Sync {
    /// Hooks have judged `event`.
    fn judged(&self, event: Event, verdict: &Verdict);
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("path", &self.path).field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OwnedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_call().fmt(f)
    }
}
