//! `gatehook chat`: the agent in a terminal.
//!
//! The terminal and the session know each other only by what goes between them ([`wire`]). Inside of the terminal's part,
//! what happens is folded into a [`view`], which is drawn when it has changed; it is a plain value, and knows neither a
//! clock nor a terminal.
//!
//! - [`view`]: the screen's state, keys, dialogs, drawing.
//! - [`transcript`]: what was said and done, item by item; only what is seen is laid out.
//! - [`markdown`], [`wrap`], [`clean`]: texts of others as lines that a terminal can be given.
//! - [`input`], [`history`]: what the person writes, and wrote.
//! - [`screen`]: the terminal itself. [`plain`]: what there is where there is none.
//! - [`driver`]: both sides. [`session`]: the session's; [`questions`]: what it asks; [`told`]: what it was before.

mod clean;
mod driver;
mod facts;
mod history;
mod input;
mod markdown;
mod plain;
mod questions;
mod screen;
mod session;
mod theme;
mod told;
mod transcript;
mod view;
mod wire;
mod wrap;

pub(crate) use self::driver::run;
