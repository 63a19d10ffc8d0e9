//! Whether a hook that came with a project may run: only with exactly the content that its owner approved.
//!
//! - [`content`]: what a hook is, its definition and every file of the project that it names, and the hash over both.
//! - [`store`]: the owner's approvals, in one file; [`ollm`]: those of OLLM's own file; [`kept`]: how both are read and
//!   written.
//! - [`judge`] says of each hook whether it is in force and if not why; [`Judgement::in_force`] gives those that are, each
//!   under a [`Seal`] that is looked at before every run: a file that changes later takes its hook out of force.
//!
//! ```
//! use gatehook_engine::config::{self, Format, ReadOptions};
//! use gatehook_engine::definition::Source;
//! use gatehook_engine::trust::{self, Ground, Project, Standing, store::Approvals};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("guard.sh"), "exit 0\n")?;
//! let text = "hooks: {pre_tool_use: [{type: command, command: sh guard.sh}]}";
//! let options = ReadOptions { source: Source::Workspace, ..ReadOptions::default() };
//! let hooks = config::parse("gatehook.yaml", text, Format::Yaml, &options)?.hooks;
//!
//! let mut ground = Ground::new(Project::at(folder.path(), &[].into())?);
//! let judgement = trust::judge(hooks.clone(), &ground);
//! assert_eq!(judgement.hooks[0].standing, Standing::NotTrusted);
//! assert!(judgement.in_force(&[]).is_empty());
//!
//! let approval = judgement.hooks[0].approval("2026-01-01T00:00:00Z", "me").unwrap();
//! ground.approvals = Ok(Approvals::default().with(approval));
//! assert!(trust::judge(hooks.clone(), &ground).hooks[0].standing.is_in_force());
//!
//! std::fs::write(folder.path().join("guard.sh"), "exit 2\n")?;
//! let changed = Standing::Changed(vec!["guard.sh".into()]);
//! assert_eq!(trust::judge(hooks, &ground).hooks[0].standing, changed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod atomic;
mod collect;
pub mod content;
mod imports;
mod judgement;
pub mod kept;
pub mod ollm;
mod project;
mod seal;
mod stamp;
pub mod store;
mod words;

pub use content::Content;
pub use judgement::{Ground, Judged, Judgement, Required, Standing, judge, of_right};
pub use project::{PROJECT_DIR, Project};
pub use seal::Seal;
pub(crate) use seal::sealed;

/// What a shell line is made of, for fuzz targets: all that stands in its words, a word each.
#[cfg(fuzzing)]
pub fn words(line: &str) -> Vec<String> {
    let text = |piece| match piece {
        words::Piece::Text(text) | words::Piece::Variable(text) => text,
        words::Piece::Unknown => String::new(),
    };
    words::split(line).into_iter().map(|word| word.pieces.into_iter().map(text).collect()).collect()
}

/// How many files a script takes in, for fuzz targets.
#[cfg(fuzzing)]
pub fn imports(name: &str, text: &str) -> usize {
    imports::imports(name, text).len()
}

#[cfg(test)]
mod tests;
