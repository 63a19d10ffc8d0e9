//! The table against its examples, and the prefilter against trying everything everywhere.

mod examples;
mod growing;
mod properties;
mod streams;
mod table;
