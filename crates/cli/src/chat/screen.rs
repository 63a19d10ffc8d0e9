//! The terminal while it is ours, and what is drawn on it. It is given back on every way out.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use ratatui::layout::Position;
use rustix::process::{Signal as Posix, getpid, getsid, kill_current_process_group};

use super::view::{Effect, View, draw};
use super::wire::{End, Happening, Inbox, Outside, Signal};

/// The time between two frames at least.
const FRAME: Duration = Duration::from_millis(16);

/// Whether the terminal is ours now. A panic of any thread gives it back before it says anything.
static OURS: AtomicBool = AtomicBool::new(false);

/// The terminal, taken.
struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    fn take() -> io::Result<Self> {
        give_back_on_panic();
        take()?;
        Ok(Self { terminal: blank().inspect_err(|_| give_back())? })
    }

    /// Takes it once more, after somebody else had it.
    fn take_again(&mut self) -> io::Result<()> {
        give_back();
        take()?;
        self.terminal = blank()?;
        Ok(())
    }

    /// Forgets what is drawn: a terminal that shrank and grew again has lost some of it, whatever its size is now.
    fn resized(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize((Position::ORIGIN, size).into())
    }

    fn draw(&mut self, view: &mut View) -> io::Result<()> {
        if !OURS.load(Ordering::SeqCst) {
            return Err(io::Error::other("a thread of the program panicked"));
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw(view, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }
}

/// A screen on which nothing is drawn yet. Nothing is asked of the terminal, which might not answer.
fn blank() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    execute!(io::stdout(), Clear(ClearType::All))?;
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, io::stdout())))
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste).inspect_err(|_| give_back())
}

fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        // Where the terminal is gone there is nothing to give back.
        let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}

/// Reads the keyboard for as long as the process lives.
fn listen(inbox: Arc<Inbox>) -> io::Result<()> {
    let read = move || {
        loop {
            inbox.put(match event::read() {
                Ok(Event::Key(key)) => Happening::Key(key),
                Ok(Event::Paste(text)) => Happening::Paste(text),
                Ok(Event::Resize(..)) => Happening::Resized,
                Ok(_) => continue,
                Err(error) => {
                    inbox.put(Happening::Lost(error.to_string()));
                    return;
                }
            });
        }
    };
    std::thread::Builder::new().name("keyboard".to_owned()).spawn(read).map(drop)
}

/// How large the terminal is; 80×24 where it does not say.
pub(crate) fn size() -> (u16, u16) {
    ratatui::crossterm::terminal::size().unwrap_or((80, 24))
}

/// Shows a view until it ends: folds what comes, does what is to be done, draws what has changed.
pub(crate) fn run(mut view: View, inbox: &Arc<Inbox>, outside: &mut dyn Outside) -> io::Result<End> {
    let mut screen = Screen::take()?;
    listen(inbox.clone())?;
    let began = Instant::now();
    let mut drawn: Option<Instant> = None;
    let mut is_changed = true;
    // The signal that ended a stop of our own is still to come, and has been heeded.
    let mut went_on = false;
    loop {
        let frame = drawn.map(|drawn| drawn.checked_add(FRAME).unwrap_or(drawn));
        let deadline = if is_changed {
            Some(frame.unwrap_or(began))
        } else {
            view.changes_at().and_then(|at| began.checked_add(at))
        };
        let happenings = inbox.take(deadline);
        is_changed |= happenings.is_empty() || deadline.is_some_and(|deadline| deadline <= Instant::now());
        for happening in happenings {
            is_changed = true;
            let effects = match happening {
                Happening::Signal(Signal::End | Signal::Interrupt) => return Ok(End::Stopped),
                Happening::Lost(why) => return Err(io::Error::other(format!("the keyboard cannot be read: {why}"))),
                Happening::Resized => {
                    screen.resized()?;
                    Vec::new()
                }
                Happening::Signal(Signal::Stop) => vec![Effect::Suspend],
                Happening::Signal(Signal::Continue) if std::mem::take(&mut went_on) => Vec::new(),
                Happening::Signal(Signal::Continue) => vec![Effect::Redraw],
                happening => view.fold(happening, began.elapsed()),
            };
            for effect in effects {
                match effect {
                    Effect::Command(command) => outside.command(command),
                    Effect::Answer(number, reply) => outside.answer(number, reply),
                    Effect::Remember(text) => outside.remember(&text),
                    Effect::Files => outside.files(),
                    Effect::Redraw => screen.take_again()?,
                    Effect::Suspend => went_on |= suspend(&mut screen)?,
                    Effect::Quit => return Ok(End::Quit),
                }
            }
        }
        view.tick(began.elapsed());
        if let Some(why) = view.ended() {
            return Ok(why.map_or(End::Quit, |why| End::Session(why.to_owned())));
        }
        let is_due = drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
        if is_changed && is_due {
            screen.draw(&mut view)?;
            drawn = Some(Instant::now());
            is_changed = false;
        }
    }
}

/// Stops the process until somebody continues it, and says whether it did. The first of a session has nobody who would.
fn suspend(screen: &mut Screen) -> io::Result<bool> {
    if getsid(None).is_ok_and(|first| first == getpid()) {
        return Ok(false);
    }
    give_back();
    kill_current_process_group(Posix::STOP)?;
    screen.take_again()?;
    Ok(true)
}
