//! What stands around one model call, with functions as hooks and no network.

mod results;
mod tools;
mod world;
