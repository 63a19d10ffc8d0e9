mod examples;
mod properties;
