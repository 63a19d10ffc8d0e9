//! The table against its examples, and the prefilter against trying everything everywhere.

mod examples;
mod properties;
mod table;
