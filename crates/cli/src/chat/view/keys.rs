//! What keys do.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::super::input::Input;
use super::super::wire::Command;
use super::complete::{Kind, Popup};
use super::dialog::{self, PAUSE, Stage};
use super::overlay::{self, Overlay};
use super::slash::{self, Does, Slash, Takes, find};
use super::{Effect, Pending, Search, View};

/// What `/trust` says.
pub(crate) const TRUST: &str = "Hooks of a project run once somebody has seen and approved them.\n\
    Outside of this session:\n  gatehook hooks trust     shows what each would run, and asks\n  \
    gatehook hooks untrust   withdraws it\nThen start a new session: /quit, and `gatehook chat`.";

impl View {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_ctrl => return self.cancel(),
            KeyCode::Char('z') if is_ctrl => return vec![Effect::Suspend],
            KeyCode::Char('l') if is_ctrl => return vec![Effect::Redraw],
            _ => {}
        }
        self.quits = None;
        let before = self.last_key.replace(self.now);
        if let Some(effects) = self.scroll(key) {
            self.last_key = before;
            return effects;
        }
        if let Some(dialog) = self.dialogs.front_mut() {
            if dialog.armed <= self.now {
                self.last_key = None;
                return self.answer(key);
            }
            dialog.armed = self.now.saturating_add(PAUSE);
        }
        if self.overlay.is_some() {
            return self.overlay(key);
        }
        if self.search.is_some() {
            return self.search(key);
        }
        if let Some(effects) = self.popup(key) {
            return effects;
        }
        self.write(key)
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(dialog) = self.dialogs.front_mut().filter(|dialog| dialog.armed <= self.now) {
            // Whatever is pasted, it is no answer.
            if let Stage::Reason(reason) = &mut dialog.stage {
                reason.insert(&text.replace(['\n', '\r'], " "));
            }
            return;
        }
        self.last_key = Some(self.now);
        self.search = None;
        self.overlay = None;
        self.input.insert(text);
        self.popup = None;
    }

    /// Ctrl-C: ends what is at work, then what is written, then the session.
    fn cancel(&mut self) -> Vec<Effect> {
        let again = self.quits.replace(self.now.saturating_add(Duration::from_secs(2))).is_some();
        self.overlay = None;
        self.popup = None;
        if again {
            return vec![Effect::Quit];
        }
        if let Some(search) = self.search.take() {
            self.input.set(&search.draft);
            return Vec::new();
        }
        if self.busy.is_some() {
            return self.interrupt("interrupting; Ctrl-C again quits");
        }
        self.flash("Ctrl-C again quits");
        self.input.take();
        self.history.leave();
        Vec::new()
    }

    fn interrupt(&mut self, word: &str) -> Vec<Effect> {
        self.flash(word);
        self.is_stopping = true;
        vec![Effect::Command(Command::Interrupt)]
    }

    fn answer(&mut self, key: KeyEvent) -> Vec<Effect> {
        let can_remember = self.facts.rules_file.is_some();
        let Some(dialog) = self.dialogs.front_mut() else { return Vec::new() };
        match dialog.key(key, can_remember) {
            dialog::Done::Nothing => Vec::new(),
            dialog::Done::Unknown => {
                self.flash("one of the keys above answers; Ctrl-C interrupts the turn");
                Vec::new()
            }
            dialog::Done::Answered(reply) => {
                let number = dialog.number;
                self.dialogs.pop_front();
                // The same key must not answer the next question too.
                if let Some(next) = self.dialogs.front_mut() {
                    next.armed = self.now.saturating_add(PAUSE);
                }
                vec![Effect::Answer(number, reply)]
            }
        }
    }

    fn overlay(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(overlay) = &mut self.overlay else { return Vec::new() };
        match overlay.key(key) {
            overlay::Done::Stays => Vec::new(),
            overlay::Done::Closes => {
                self.overlay = None;
                Vec::new()
            }
            overlay::Done::Picks(command) => {
                self.overlay = None;
                self.ask(command, false)
            }
        }
    }

    /// Keys that move what is seen, whatever else is there.
    fn scroll(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        if !self.dialogs.is_empty() || self.overlay.is_some() {
            return None;
        }
        let (look, height) = (self.look(), self.seen.max(1));
        let page = height.saturating_sub(1).max(1);
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::PageUp => self.transcript.up(page, height, look),
            KeyCode::PageDown => self.transcript.down(page, height, look),
            KeyCode::Up if is_shift => self.transcript.up(1, height, look),
            KeyCode::Down if is_shift => self.transcript.down(1, height, look),
            KeyCode::Home if is_ctrl => self.transcript.show_start(),
            KeyCode::End if is_ctrl => self.transcript.show_end(),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn search(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(search) = &mut self.search else { return Vec::new() };
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if is_ctrl => search.skipped = search.skipped.saturating_add(1),
            KeyCode::Char(char) if !is_ctrl => {
                search.words.push(char);
                search.skipped = 0;
            }
            KeyCode::Backspace => {
                search.words.pop();
                search.skipped = 0;
            }
            KeyCode::Esc => {
                let draft = std::mem::take(&mut search.draft);
                self.search = None;
                self.input.set(&draft);
                return Vec::new();
            }
            code => {
                self.search = None;
                self.history.leave();
                return if matches!(code, KeyCode::Enter | KeyCode::Tab) { Vec::new() } else { self.write(key) };
            }
        }
        match self.history.find(&search.words, search.skipped) {
            Some(found) => self.input.set(found),
            None => search.skipped = search.skipped.saturating_sub(1),
        }
        Vec::new()
    }

    /// Keys of what is offered for completion.
    fn popup(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let popup = self.popup.as_mut()?;
        if key.modifiers.contains(KeyModifiers::ALT) {
            return None;
        }
        match key.code {
            KeyCode::Up => popup.up(),
            KeyCode::Down => popup.down(),
            KeyCode::Esc => self.popup = None,
            KeyCode::Tab => self.take_chosen(),
            KeyCode::Enter => {
                let written = self.input.before().get(popup.from..).unwrap_or_default();
                let is_whole = popup.chosen().is_some_and(|chosen| chosen.name == written);
                let runs = popup.kind == Kind::Commands
                    && popup
                        .chosen()
                        .and_then(|chosen| find(chosen.name.trim_start_matches('/')))
                        .is_some_and(|slash| slash.takes == Takes::Nothing || is_whole);
                if is_whole && popup.kind == Kind::Names {
                    return None;
                }
                let is_argument = popup.kind == Kind::Arguments;
                if !is_whole {
                    self.take_chosen();
                }
                if runs || is_argument {
                    self.popup = None;
                    return Some(self.submit());
                }
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn take_chosen(&mut self) {
        let Some(popup) = self.popup.take() else { return };
        let Some(chosen) = popup.chosen() else { return };
        let goes_on = match popup.kind {
            Kind::Commands => {
                find(chosen.name.trim_start_matches('/')).is_some_and(|slash| slash.takes != Takes::Nothing)
            }
            Kind::Arguments => false,
            Kind::Names => !chosen.name.ends_with('/'),
        };
        let text = format!("{}{}", chosen.name, if goes_on { " " } else { "" });
        self.input.complete(popup.from, &text);
        self.complete();
    }

    /// Offers what fits what stands before the cursor now.
    pub(super) fn complete(&mut self) {
        let popup = Popup::of(self.input.before(), &self.facts, &self.files);
        let chosen = self.popup.as_ref().and_then(Popup::chosen).cloned();
        self.popup = popup.map(|mut popup| {
            popup.chosen = popup.rows.iter().position(|row| Some(row) == chosen.as_ref()).unwrap_or_default();
            popup
        });
    }

    fn write(&mut self, key: KeyEvent) -> Vec<Effect> {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let is_shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::F(1) => self.overlay = Some(Overlay::help()),
            KeyCode::Char('?') if self.input.is_empty() => self.overlay = Some(Overlay::help()),
            KeyCode::Char('d') if is_ctrl && self.input.is_empty() => return vec![Effect::Quit],
            KeyCode::Char('o') if is_ctrl => self.details = !self.details,
            KeyCode::Char('r') if is_ctrl => {
                self.search = Some(Search { draft: self.input.text().to_owned(), ..Search::default() });
            }
            KeyCode::Esc if self.busy.is_some() => return self.interrupt("interrupting"),
            KeyCode::Char('j') if is_ctrl => self.insert("\n"),
            KeyCode::Enter if is_alt || is_shift => self.insert("\n"),
            KeyCode::Enter if self.input.before().ends_with('\\') => {
                self.input.backspace();
                self.insert("\n");
            }
            KeyCode::Enter => return self.submit(),
            KeyCode::Tab if self.busy.is_some() && !self.input.text().trim().is_empty() => return self.follow_up(),
            KeyCode::Tab => self.complete(),
            KeyCode::Up if !is_ctrl && !is_alt => self.older(),
            KeyCode::Down if !is_ctrl && !is_alt => self.newer(),
            KeyCode::Char('p') if is_ctrl => self.older(),
            KeyCode::Char('n') if is_ctrl => self.newer(),
            _ => return self.edit(key),
        }
        Vec::new()
    }

    fn edit(&mut self, key: KeyEvent) -> Vec<Effect> {
        let names_before = self.popup.as_ref().is_some_and(|popup| popup.kind == Kind::Names);
        if !edit(&mut self.input, key) {
            return Vec::new();
        }
        self.history.leave();
        self.complete();
        let is_name = self.input.before().ends_with('@');
        if is_name && !names_before { vec![Effect::Files] } else { Vec::new() }
    }

    fn insert(&mut self, text: &str) {
        self.input.insert(text);
        self.popup = None;
    }

    fn older(&mut self) {
        if !self.input.up()
            && let Some(text) = self.history.back(self.input.text())
        {
            self.input.set(text);
            self.popup = None;
        }
    }

    fn newer(&mut self) {
        if !self.input.down()
            && let Some(text) = self.history.forth()
        {
            self.input.set(text);
            self.popup = None;
        }
    }

    /// What is written goes to the session, or is a command.
    fn submit(&mut self) -> Vec<Effect> {
        let text = self.input.text().trim_end().to_owned();
        if text.trim().is_empty() {
            return Vec::new();
        }
        match slash::read(&text, &self.facts) {
            Some(Ok((slash, argument))) => return self.slash(slash, argument),
            Some(Err(problem)) => {
                self.flash(problem);
                return Vec::new();
            }
            None => {}
        }
        let command = if self.busy.is_some() { Command::Steer } else { Command::Prompt };
        self.send(text, command, false)
    }

    fn follow_up(&mut self) -> Vec<Effect> {
        let text = self.input.text().trim_end().to_owned();
        self.send(text, Command::FollowUp, true)
    }

    fn send(&mut self, text: String, command: fn(String) -> Command, is_later: bool) -> Vec<Effect> {
        let mut effects = self.remember();
        let text = slash::said(text);
        self.pending.push(Pending { is_later, text: text.clone() });
        self.busy.get_or_insert(self.now);
        self.transcript.show_end();
        effects.push(Effect::Command(command(text)));
        effects
    }

    /// Empties the input; what stood in it is history.
    fn remember(&mut self) -> Vec<Effect> {
        self.popup = None;
        let text = self.input.take();
        let text = text.trim_end();
        if self.history.add(text) { vec![Effect::Remember(text.to_owned())] } else { Vec::new() }
    }

    fn slash(&mut self, slash: &Slash, argument: &str) -> Vec<Effect> {
        if self.busy.is_some() && !slash.any_time {
            self.flash("wait until the turn is over, or interrupt it with Esc");
            return Vec::new();
        }
        let mut effects = self.remember();
        effects.extend(self.run(slash, argument));
        effects
    }

    fn run(&mut self, slash: &Slash, argument: &str) -> Vec<Effect> {
        match slash.does {
            Does::Hooks if self.facts.hooks.is_empty() => self.transcript.say("info", "no hooks are in force here"),
            Does::Hooks => self.overlay = Some(Overlay::text("Hooks in force", self.facts.hooks.clone())),
            Does::Trust => self.transcript.say("info", TRUST),
            Does::Help => self.overlay = Some(Overlay::help()),
            Does::Quit => return vec![Effect::Quit],
            Does::Asks(command) => return self.ask(command(), slash.any_time),
            Does::Picks(command) if !argument.is_empty() => {
                return self.ask(command(argument.to_owned()), slash.any_time);
            }
            Does::Picks(command) => {
                let choices = slash.takes.choices(&self.facts);
                if choices.is_empty() {
                    self.transcript.say("info", format!("there is nothing to choose from; write /{} NAME", slash.name));
                } else {
                    self.overlay = Some(Overlay::list(slash.about, choices, command));
                }
            }
        }
        Vec::new()
    }
}

/// Keys that change a text or go about in it; whether it was one.
pub(super) fn edit(input: &mut Input, key: KeyEvent) -> bool {
    let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_alt = key.modifiers.contains(KeyModifiers::ALT);
    match (key.code, is_ctrl, is_alt) {
        (KeyCode::Char(char), false, false) => input.insert(char.encode_utf8(&mut [0; 4])),
        (KeyCode::Left, true, _) | (KeyCode::Left | KeyCode::Char('b'), _, true) => input.word_left(),
        (KeyCode::Right, true, _) | (KeyCode::Right | KeyCode::Char('f'), _, true) => input.word_right(),
        (KeyCode::Left, ..) | (KeyCode::Char('b'), true, _) => input.left(),
        (KeyCode::Right, ..) | (KeyCode::Char('f'), true, _) => input.right(),
        (KeyCode::Home, ..) | (KeyCode::Char('a'), true, _) => input.line_start(),
        (KeyCode::End, ..) | (KeyCode::Char('e'), true, _) => input.line_end(),
        (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, _, true) => input.cut(Input::word_left),
        (KeyCode::Char('d') | KeyCode::Delete, _, true) => input.cut(Input::word_right),
        (KeyCode::Char('u'), true, _) => input.cut(Input::line_start),
        (KeyCode::Char('k'), true, _) => input.cut(Input::line_end),
        (KeyCode::Char('y'), true, _) => input.yank(),
        (KeyCode::Backspace, ..) | (KeyCode::Char('h'), true, _) => input.backspace(),
        (KeyCode::Delete, ..) | (KeyCode::Char('d'), true, _) => input.delete(),
        _ => return false,
    }
    true
}
