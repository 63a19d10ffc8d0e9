//! Where configuration files are looked for: one table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatehook_engine::config::Format;
use gatehook_engine::definition::Source;

/// A file, and who answers for it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    /// The contract that its hooks are written for; `None` is the command line's.
    pub(crate) dialect: Option<&'static str>,
    /// Somebody named it, instead of having it found.
    pub(crate) is_named: bool,
}

impl Place {
    /// A file that the user named.
    pub(crate) fn named(path: &Path) -> Self {
        Self { source: Source::User, path: path.to_owned(), dialect: None, is_named: true }
    }
}

/// What a folder is looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The administrator's folder.
    Managed,
    /// The user's `gatehook` folder below `XDG_CONFIG_HOME` or `~/.config`.
    Config,
    /// The project's folder; never for `serve`.
    Project,
}

/// What of a folder is read.
#[derive(Debug, Clone, Copy)]
enum What {
    /// The first of these that is there.
    First(&'static [&'static str]),
    /// Every file with one of these endings, by name.
    Every(&'static [&'static str]),
}

/// A place.
struct Row {
    source: Source,
    base: Base,
    folder: &'static str,
    what: What,
    /// The contract that its hooks are written for.
    dialect: Option<&'static str>,
}

/// All places, in falling order of authority, which is the order in which their hooks run. To look in another place, add a
/// row.
const PLACES: &[Row] = &[
    Row::native(Source::Managed, Base::Managed, "", What::First(FILE_NAMES)),
    Row::native(Source::Managed, Base::Managed, "hooks.d", What::Every(ENDINGS)),
    Row::native(Source::User, Base::Config, "", What::First(FILE_NAMES)),
    Row::native(Source::User, Base::Config, "hooks.d", What::Every(ENDINGS)),
    Row::native(Source::Workspace, Base::Project, "", What::First(FILE_NAMES)),
    Row::native(Source::Workspace, Base::Project, ".gatehook", What::Every(&["yaml", "yml"])),
    Row::native(Source::Workspace, Base::Project, ".gatehook/hooks.d", What::Every(ENDINGS)),
];

/// Names that a configuration file may have in its folder.
const FILE_NAMES: &[&str] = &["gatehook.yaml", "gatehook.yml", "gatehook.json", "gatehook.toml"];
/// Endings of files that are read.
const ENDINGS: &[&str] = &["yaml", "yml", "json", "toml"];
/// The administrator's folder.
const MANAGED: &str = "/etc/gatehook";

impl Row {
    const fn native(source: Source, base: Base, folder: &'static str, what: What) -> Self {
        Self { source, base, folder, what, dialect: None }
    }

    /// The files that are there.
    fn places(&self, base: &Path) -> Vec<Place> {
        let folder = base.join(self.folder);
        let files = match self.what {
            What::First(names) => {
                names.iter().map(|name| folder.join(name)).find(|path| path.is_file()).into_iter().collect()
            }
            What::Every(endings) => every(&folder, endings),
        };
        let place = |path| Place { source: self.source, path, dialect: self.dialect, is_named: false };
        files.into_iter().map(place).collect()
    }
}

fn every(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let has_ending = |path: &Path| {
        let ending = path.extension().and_then(|it| it.to_str()).map(str::to_ascii_lowercase);
        ending.is_some_and(|ending| endings.contains(&ending.as_str()))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.is_file() && Format::of_path(path).is_some() && has_ending(path));
    files.sort();
    files
}

/// The files in their usual places, those of a project where there is one, and a `named` one: in falling order of
/// authority.
pub(crate) fn usual_places(env: &BTreeMap<String, String>, named: Option<&Path>, project: Option<&Path>) -> Vec<Place> {
    let mut places: Vec<Place> = rows(env, project).flat_map(|(row, base)| row.places(&base)).collect();
    places.extend(named.map(Place::named));
    places.sort_by_key(|place| place.source);
    places
}

/// Everything that is looked at to find the places outside of projects, whether it is there or not.
pub(crate) fn watched(env: &BTreeMap<String, String>, named: Option<&Path>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = usual_places(env, named, None).into_iter().map(|place| place.path).collect();
    for (row, base) in rows(env, None) {
        let folder = base.join(row.folder);
        match row.what {
            What::First(names) => paths.extend(names.iter().map(|name| folder.join(name))),
            What::Every(_) => paths.push(folder),
        }
    }
    paths
}

/// The rows whose base is known.
fn rows<'a>(
    env: &'a BTreeMap<String, String>,
    project: Option<&'a Path>,
) -> impl Iterator<Item = (&'static Row, PathBuf)> + 'a {
    let folder = move |base| match base {
        Base::Managed => Some(PathBuf::from(MANAGED)),
        Base::Config => home(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("gatehook")),
        Base::Project => project.map(Path::to_owned),
    };
    PLACES.iter().filter_map(move |row| Some((row, folder(row.base)?)))
}

/// A folder of the user's: what a variable says, else one below `HOME`.
pub(crate) fn home(env: &BTreeMap<String, String>, variable: &str, below: &str) -> Option<PathBuf> {
    let set = env.get(variable).filter(|folder| Path::new(folder).is_absolute()).map(PathBuf::from);
    set.or_else(|| env.get("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(home).join(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(places: &[Place], folder: &Path) -> Vec<String> {
        places.iter().map(|place| place.path.strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_folders_main_file_comes_before_its_drop_ins_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("hooks.d/folder.yaml")).unwrap();
        for name in ["hooks.d/20.json", "hooks.d/10.toml", "hooks.d/readme.txt", "gatehook.toml", "other.yaml"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let managed = PLACES.iter().filter(|row| row.base == Base::Managed);
        let found: Vec<Place> = managed.flat_map(|row| row.places(folder.path())).collect();
        assert_eq!(names(&found, folder.path()), ["gatehook.toml", "hooks.d/10.toml", "hooks.d/20.json"]);
    }

    #[test]
    fn a_projects_files_come_last_and_only_where_there_is_a_project() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["gatehook.yaml", "gatehook.json", ".gatehook/a.yaml", ".gatehook/data.json", ".gatehook/hooks.d/b.json"]
        {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let env = BTreeMap::new();
        let named = folder.path().join("named.yaml");
        let found = usual_places(&env, Some(&named), Some(folder.path()));
        let found: Vec<Place> = found.into_iter().filter(|place| place.source != Source::Managed).collect();
        let expected = ["named.yaml", "gatehook.yaml", ".gatehook/a.yaml", ".gatehook/hooks.d/b.json"];
        assert_eq!(names(&found, folder.path()), expected);
        assert!(usual_places(&env, None, None).iter().all(|place| place.source == Source::Managed));
    }

    #[test]
    fn the_users_folder_is_xdgs_else_below_home() {
        let env = |variables: &[(&str, &str)]| {
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (variables, folder) in [
            (env(&[("HOME", "/h")]), Some("/h/.config")),
            (env(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x")),
            (env(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]), Some("/h/.config")),
            (env(&[]), None),
        ] {
            assert_eq!(home(&variables, "XDG_CONFIG_HOME", ".config"), folder.map(PathBuf::from), "{variables:?}");
        }
    }
}
