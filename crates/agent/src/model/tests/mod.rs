//! Models against servers on loopback, and against recorded streams.

mod faults;
mod guards;
mod recorded;
mod requests;
mod windows;
mod world;
