//! The way of one question and its answer: hooks, server, gate, reader.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gatehook_engine::events::{Event, Verdict};
use gatehook_guard::{Admitted, Caller, Gate, GateSettings, Guard, OwnedCall, Refusal, UpstreamEnd, Witness, both};
use gatehook_inference::{Ending, ErrorKind, Framing};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::DropGuard;

use super::read::{LONGEST, Reader};
use super::server::Answer;
use super::{Ask, Model, ModelError, Reply, write};

/// How often a server that is too busy is asked again.
const ATTEMPTS: u32 = 3;

/// A server that wants to be left alone for longer than this is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the server has to close a stream that is over, so that its connection can be used again.
const LINGER: Duration = Duration::from_millis(10);

const SETTINGS: GateSettings = GateSettings { ending: Ending::Refusal, limit: LONGEST, aside: None };

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: ModelError,
    /// The server is too busy and may be asked again, after the pause that it names.
    pub(super) busy: Option<Option<Duration>>,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self { error, busy: None }
    }
}

/// What hooks decided, until somebody is told.
#[derive(Debug, Default)]
struct Verdicts(Mutex<Vec<(Event, Verdict)>>);

impl Witness for Verdicts {
    fn judged(&self, event: Event, verdict: &Verdict) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((event, verdict.clone()));
    }
}

/// One question.
pub(super) struct Exchange<'a> {
    model: &'a Model,
    ask: &'a Ask<'a>,
    guard: Option<&'a Arc<Guard>>,
    call: OwnedCall,
    verdicts: Arc<Verdicts>,
    /// The answer has begun.
    begun: Notify,
    _ends_hooks: DropGuard,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(model: &'a Model, ask: &'a Ask<'a>) -> Self {
        let path = model.format.route().into();
        let verdicts = Arc::new(Verdicts::default());
        let cancel = ask.cancel.child_token();
        let caller = Caller {
            address: Some(Ipv4Addr::LOCALHOST.into()),
            user_agent: Some(concat!("gatehook/", env!("CARGO_PKG_VERSION")).to_owned()),
            session: Some(ask.session_id.to_string()),
            ..Caller::default()
        };
        Self {
            model,
            ask,
            guard: ask.guard.filter(|guard| guard.looks_at(path)),
            _ends_hooks: cancel.clone().drop_guard(),
            call: OwnedCall {
                path,
                request_id: uuid::Uuid::new_v4().to_string().into(),
                caller: caller.into(),
                cancel,
                witness: verdicts.clone(),
            },
            verdicts,
            begun: Notify::new(),
        }
    }

    /// Does all of it. Meanwhile the window is asked for, once the answer has begun, and nobody waits for that.
    pub(super) async fn run(self) -> Result<Reply, ModelError> {
        let window = async {
            self.begun.notified().await;
            self.model.learn_window().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            reply = self.answer() => reply,
            () = window => Err(ModelError::Cancelled),
        }
    }

    async fn answer(&self) -> Result<Reply, ModelError> {
        let question = write::question(self.model, self.ask)?;
        let admitted = match self.guard {
            Some(guard) => Some(self.told(guard.before(&self.call.as_call(), question.clone()).await)?),
            None => None,
        };
        let body = admitted.as_ref().map_or(question, |admitted| admitted.body.clone());
        for attempt in 0.. {
            let mut reader = Reader::new(self.model.format.route());
            let failed = match self.attempt(body.clone(), admitted.as_ref(), attempt == 0, &mut reader).await {
                Ok(()) => return Ok(reader.reply(self.model, self.ask)),
                Err(failed) => failed,
            };
            let server = &self.model.server;
            let pause = failed.busy.map(|wanted| server.pause(self.model.patience, attempt, wanted));
            match pause.filter(|pause| attempt < ATTEMPTS && *pause <= LONGEST_PAUSE && !reader.has_said()) {
                Some(pause) => {
                    self.ask.says.waits(&failed.error, pause);
                    sleep(pause).await;
                }
                None => {
                    // Whoever makes the conversation shorter wants to know by how much.
                    if matches!(failed.error, ModelError::Overflow(_)) {
                        self.model.learn_window().await;
                    }
                    return Err(failed.error);
                }
            }
        }
        Err(ModelError::Cancelled)
    }

    /// Tells what hooks decided; their refusal is an error.
    fn told<T>(&self, judged: Result<T, Refusal>) -> Result<T, ModelError> {
        let verdicts = std::mem::take(&mut *self.verdicts.0.lock().unwrap_or_else(PoisonError::into_inner));
        verdicts.iter().for_each(|(event, verdict)| self.ask.says.judged(*event, verdict));
        judged.map_err(refused)
    }

    /// Asks the server once. `beside`: hooks that judge meanwhile have not yet.
    async fn attempt(
        &self,
        body: Bytes,
        admitted: Option<&Admitted>,
        beside: bool,
        reader: &mut Reader,
    ) -> Result<(), Failed> {
        let model = self.model;
        let answer = model.server.ask(body, model.agent.as_deref(), model.patience);
        let mut answer = match (self.guard.filter(|guard| beside && guard.judges_beside()), admitted) {
            (Some(guard), Some(admitted)) => {
                let verdict =
                    async { guard.beside(&self.call.as_call(), admitted).await.map_err(|no| refused(no).into()) };
                let both = Box::pin(both(verdict, answer)).await;
                self.told(Ok(()))?;
                both?.1
            }
            _ => answer.await?,
        };
        if answer.is_whole {
            return Ok(self.whole(answer, admitted, reader).await?);
        }
        if answer.framing.is_some_and(|framing| framing != Framing::of(model.format.route())) {
            return Err(ModelError::Broken("streams in a format that is not that of its route".to_owned()).into());
        }
        let gate = self
            .guard
            .zip(admitted.filter(|admitted| admitted.looks_after))
            .and_then(|(guard, admitted)| Gate::new(guard.clone(), self.call.clone(), admitted.clone(), SETTINGS));
        match gate {
            Some(gate) => self.gated(Box::new(gate), &mut answer, reader).await?,
            None => self.plain(&mut answer, reader).await?,
        }
        let _ = timeout(LINGER, answer.next()).await;
        Ok(())
    }

    /// An answer that is no stream.
    async fn whole(&self, answer: Answer, admitted: Option<&Admitted>, reader: &mut Reader) -> Result<(), ModelError> {
        let mut body = answer.whole().await?;
        self.begun.notify_one();
        if let (Some(guard), Some(admitted)) = (self.guard, admitted) {
            body = self.told(guard.after(&self.call.as_call(), admitted, body).await)?;
        }
        reader.whole(body)?;
        self.say(reader).await;
        Ok(())
    }

    /// A stream that no hook looks at.
    async fn plain(&self, answer: &mut Answer, reader: &mut Reader) -> Result<(), Failed> {
        while !reader.is_over() {
            let came = answer.next().await?;
            self.begun.notify_one();
            let read = match came {
                Some(bytes) => reader.push(bytes),
                None => reader.finish(),
            };
            self.say(reader).await;
            read?;
            if let Some(failed) = reader.failed() {
                return Err(failed);
            }
            if answer.is_gone() {
                break;
            }
        }
        Ok(())
    }

    /// A stream through its gate.
    async fn gated(&self, mut gate: Box<Gate>, answer: &mut Answer, reader: &mut Reader) -> Result<(), Failed> {
        while !gate.is_done() {
            let is_there = !answer.is_gone();
            let gone_on = gate.step(is_there.then(|| answer.next())).await;
            self.begun.notify_one();
            let mut read = self.told(Ok(()));
            if gate.outcome().is_none() {
                while let Some(bytes) = gate.take() {
                    read = read.and_then(|()| reader.push(bytes));
                }
            }
            self.say(reader).await;
            read?;
            if let Some(failed) = reader.failed() {
                return Err(failed);
            }
            if let Err(error) = gone_on {
                gate.end(UpstreamEnd::Broke(ErrorKind::BadUpstream));
                return Err(error.into());
            }
            if let Some(refusal) = gate.outcome() {
                return Err(refused(refusal.clone()).into());
            }
        }
        Ok(reader.finish()?)
    }

    /// Tells what was said.
    async fn say(&self, reader: &mut Reader) {
        for (thinking, piece) in reader.untold() {
            self.ask.says.says(thinking, &piece).await;
        }
    }
}

/// A refusal that no hook is the cause of is the server's.
fn refused(refusal: Refusal) -> ModelError {
    match (&refusal.hook, refusal.kind) {
        (None, ErrorKind::BadUpstream | ErrorKind::UpstreamTimeout) => {
            ModelError::Broken(format!("cannot be used: {}", refusal.message))
        }
        _ => ModelError::Refused(Box::new(refusal)),
    }
}
