//! Where configuration files are looked for: one table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gatehook_engine::config::Format;
use gatehook_engine::definition::Source;

use crate::owned::by_others;

/// A file, and who answers for it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    /// The contract that its hooks are written for; `None` is the command line's.
    pub(crate) dialect: Option<&'static str>,
    /// The part of the file without which there is nothing in it for hooks.
    pub(crate) part: Option<&'static str>,
    /// Where its hooks run, where its program runs them in a folder that goes with the file.
    pub(crate) folder: Option<PathBuf>,
    /// Its folder is the user's and no project's: what it brings is approved once, wherever somebody works.
    pub(crate) is_installed: bool,
    /// Somebody named it, instead of having it found.
    pub(crate) is_named: bool,
    /// The number of the account whose alone it must be.
    pub(crate) owner: Option<u32>,
}

impl Place {
    /// A file that the user named.
    pub(crate) fn named(path: &Path) -> Self {
        let path = path.to_owned();
        Self {
            source: Source::User,
            path,
            dialect: None,
            part: None,
            folder: None,
            is_installed: false,
            is_named: true,
            owner: None,
        }
    }

    /// A file that this one imports.
    pub(crate) fn import(&self, path: PathBuf, dialect: &'static str) -> Self {
        Self { path, dialect: Some(dialect), part: None, folder: None, ..self.clone() }
    }
}

/// What a folder is looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The administrator's folder.
    Managed,
    /// The user's `gatehook` folder below `XDG_CONFIG_HOME` or `~/.config`.
    Config,
    /// docker-agent's folder of the user: `DOCKER_AGENT_CONFIG_DIR`, `CAGENT_CONFIG_DIR` or `~/.config/cagent`.
    DockerAgent,
    /// OLLM's folder of the user: `~/.ollm`.
    Ollm,
    /// The user's home.
    Home,
    /// The project's folder; never for `serve`.
    Project,
    /// `OLLAMA_PROJECT_DIR`, else the project's folder; never for `serve`.
    OllamaProject,
}

/// What of a folder is read.
#[derive(Debug, Clone, Copy)]
enum What {
    /// The first of these that is there.
    First(&'static [&'static str]),
    /// This part of the file of this name.
    Part(&'static str, &'static str),
    /// Every file with one of these endings, by name.
    Every(&'static [&'static str]),
    /// A file of this name in each folder there, by the folders' names.
    Each(&'static str),
}

/// A place.
struct Row {
    /// The contract that its hooks are written for, and so who reads it.
    dialect: Option<&'static str>,
    source: Source,
    base: Base,
    folder: &'static str,
    what: What,
}

/// All places, in falling order of authority, which is the order in which their hooks run. To look in another place, add a
/// row.
const PLACES: &[Row] = &[
    Row::native(Source::Managed, Base::Managed, "", What::First(FILE_NAMES)),
    Row::native(Source::Managed, Base::Managed, "hooks.d", What::Every(ENDINGS)),
    Row::native(Source::User, Base::Config, "", What::First(FILE_NAMES)),
    Row::native(Source::User, Base::Config, "hooks.d", What::Every(ENDINGS)),
    Row::of("docker-agent", Source::User, Base::DockerAgent, "", What::Part("config.yaml", "settings")),
    Row::of("docker-agent", Source::User, Base::DockerAgent, "hooks.d", What::Every(&["yaml", "yml"])),
    Row::of("ollm", Source::User, Base::Ollm, "", What::Part("settings.json", "hooks")),
    Row::of("ollm", Source::User, Base::Ollm, "", What::Part("config.yaml", "hooks")),
    Row::of("ollm", Source::User, Base::Ollm, "hooks", What::Every(&["json"])),
    Row::native(Source::Workspace, Base::Project, "", What::First(FILE_NAMES)),
    Row::native(Source::Workspace, Base::Project, ".gatehook", What::Every(&["yaml", "yml"])),
    Row::native(Source::Workspace, Base::Project, ".gatehook/hooks.d", What::Every(ENDINGS)),
    Row::of("ollama-cli", Source::Workspace, Base::OllamaProject, ".ollama", What::Part("settings.json", "hooks")),
    Row::of("ollm", Source::Workspace, Base::Project, ".ollm/hooks", What::Every(&["json"])),
    Row::of("ollm", Source::Extension, Base::Ollm, "extensions", What::Each("manifest.json")),
    Row::of("ollm", Source::Extension, Base::Project, ".ollm/extensions", What::Each("manifest.json")),
];

/// Where skills lie, each in a folder of its own; in falling order of authority.
const SKILLS: &[(Source, Base, &str)] = &[
    (Source::User, Base::Config, "skills"),
    (Source::User, Base::Home, ".agents/skills"),
    (Source::User, Base::Home, ".ollama/skills"),
    (Source::Workspace, Base::Project, ".gatehook/skills"),
    (Source::Workspace, Base::Project, ".agents/skills"),
    (Source::Workspace, Base::OllamaProject, ".ollama/skills"),
];

/// Names that a configuration file may have in its folder.
const FILE_NAMES: &[&str] = &["gatehook.yaml", "gatehook.yml", "gatehook.json", "gatehook.toml"];
/// Endings of files that are read.
const ENDINGS: &[&str] = &["yaml", "yml", "json", "toml"];
/// The administrator's folder.
const MANAGED: &str = "/etc/gatehook";
/// The administrator.
const ROOT: u32 = 0;
/// Files of a folder. One more is read as the folder itself, which says what is wrong.
const MAX_FILES: usize = 512;

/// The table for people: where is looked, who answers for it, and whose contract it is.
pub(crate) fn table() -> impl Iterator<Item = [String; 3]> {
    PLACES.iter().map(|row| {
        let folder = |base: &str| Path::new(base).join(row.folder).display().to_string();
        let folder = folder(match row.base {
            Base::Managed => MANAGED,
            Base::Config => "~/.config/gatehook",
            Base::DockerAgent => "~/.config/cagent",
            Base::Ollm => "~/.ollm",
            Base::Home => "~",
            Base::Project | Base::OllamaProject => "PROJECT",
        });
        let folder = folder.trim_end_matches('/');
        let endings = |endings: &[&str]| endings.iter().map(|it| format!("`*.{it}`")).collect::<Vec<_>>().join(", ");
        let place = match row.what {
            What::First([first, others @ ..]) => {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                format!("`{folder}/{first}`, else {}", others.join(", "))
            }
            What::First([]) => String::new(),
            What::Part(name, part) => format!("`{folder}/{name}`, what stands at `{part}`"),
            What::Every(all) => format!("`{folder}/`: {}", endings(all)),
            What::Each(name) => format!("`{folder}/*/{name}`"),
        };
        [place, row.source.name().to_owned(), row.dialect.unwrap_or("native").to_owned()]
    })
}

/// The same as a section of a help text.
pub(crate) fn section() -> String {
    let mut text = String::from("Files, in the order of their hooks:\n");
    for [place, source, dialect] in table() {
        text.push_str(&format!("  {}\n          {source}, {dialect}\n", place.replace('`', "")));
    }
    text
}

impl Row {
    const fn native(source: Source, base: Base, folder: &'static str, what: What) -> Self {
        Self { dialect: None, source, base, folder, what }
    }

    const fn of(dialect: &'static str, source: Source, base: Base, folder: &'static str, what: What) -> Self {
        Self { dialect: Some(dialect), source, base, folder, what }
    }

    /// The files that are there, and whatever stands in the place of one: a link that leads nowhere is no missing guard.
    /// A folder from which others could take files away stands for itself.
    fn places(&self, base: &Path) -> Vec<Place> {
        let folder = base.join(self.folder);
        let owner = (self.source == Source::Managed).then_some(ROOT);
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let (files, part) = match self.what {
            _ if owner.is_some_and(|owner| by_others(&folder, owner).is_some()) => (vec![folder], None),
            What::First(names) => {
                let file = names.iter().map(|name| folder.join(name)).find(is_there);
                (file.into_iter().collect(), None)
            }
            What::Part(name, part) => (Some(folder.join(name)).into_iter().filter(is_there).collect(), Some(part)),
            What::Every(endings) => (every(&folder, endings), None),
            What::Each(name) => {
                let folders = entries(&folder, |path| path.is_dir());
                // Where the folder cannot be read it stands for itself.
                let file = |path: PathBuf| if path == folder { path } else { path.join(name) };
                (folders.into_iter().map(file).filter(is_there).collect(), None)
            }
        };
        let place = |path: PathBuf| {
            let folder = match (self.what, self.base) {
                (What::Each(_), _) => path.parent().map(Path::to_owned),
                (_, Base::OllamaProject) => Some(base.to_owned()),
                _ => None,
            };
            let is_installed = self.source == Source::Extension && self.base == Base::Ollm;
            Place {
                source: self.source,
                path,
                dialect: self.dialect,
                part,
                folder,
                is_installed,
                is_named: false,
                owner,
            }
        };
        files.into_iter().map(place).collect()
    }
}

fn every(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let has_ending = |path: &Path| {
        let ending = path.extension().and_then(|it| it.to_str()).map(str::to_ascii_lowercase);
        ending.is_some_and(|ending| endings.contains(&ending.as_str()))
    };
    entries(folder, |path| !path.is_dir() && Format::of_path(path).is_some() && has_ending(path))
}

/// What of a folder is wanted, by name. A folder that is there and cannot be read, or has too much, stands for itself.
fn entries(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(_) if folder.symlink_metadata().is_ok() => return vec![folder.to_owned()],
        Err(_) => return Vec::new(),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wanted: Vec<PathBuf> = paths.filter(|path| is_wanted(path)).take(MAX_FILES + 1).collect();
    wanted.sort();
    if wanted.len() > MAX_FILES { vec![folder.to_owned()] } else { wanted }
}

/// What stands in a file's place and is none, in words.
pub(crate) fn not_a_file(path: &Path) -> Option<String> {
    match path.metadata() {
        Ok(meta) if meta.is_file() => None,
        Ok(meta) if meta.is_dir() && std::fs::read_dir(path).is_err() => Some("the folder cannot be read".to_owned()),
        Ok(meta) if meta.is_dir() && entries(path, |_| true) == [path] => {
            Some(format!("the folder has more than {MAX_FILES} files"))
        }
        Ok(meta) if meta.is_dir() => Some("it is a folder, where a file is read".to_owned()),
        Ok(_) => Some("it is no file".to_owned()),
        Err(error) if path.is_symlink() => Some(format!("it is a link that leads nowhere: {error}")),
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// The files in their usual places, those of a project where there is one, and a `named` one: in falling order of
/// authority. What lies in two places is found in the stronger one.
pub(crate) fn usual_places(env: &BTreeMap<String, String>, named: Option<&Path>, project: Option<&Path>) -> Vec<Place> {
    let mut places: Vec<Place> = rows(env, project).flat_map(|(row, base)| row.places(&base)).collect();
    places.extend(named.map(Place::named));
    places.sort_by_key(|place| place.source);
    let mut seen = BTreeSet::new();
    places.retain(|place| seen.insert(place.path.canonicalize().unwrap_or_else(|_| place.path.clone())));
    places
}

/// Everything that is looked at to find the places outside of projects, whether it is there or not.
pub(crate) fn watched(env: &BTreeMap<String, String>, named: Option<&Path>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = usual_places(env, named, None).into_iter().map(|place| place.path).collect();
    for (row, base) in rows(env, None) {
        let folder = base.join(row.folder);
        match row.what {
            What::First(names) => paths.extend(names.iter().map(|name| folder.join(name))),
            What::Part(name, _) => paths.push(folder.join(name)),
            What::Every(_) | What::Each(_) => paths.push(folder),
        }
    }
    paths
}

/// The rows whose base is known.
fn rows<'a>(
    env: &'a BTreeMap<String, String>,
    project: Option<&'a Path>,
) -> impl Iterator<Item = (&'static Row, PathBuf)> + 'a {
    // What needs an approval is looked for where somebody can give one.
    let rows = PLACES.iter().filter(move |row| project.is_some() || !row.source.needs_approval());
    rows.filter_map(move |row| Some((row, folder_of(row.base, env, project)?)))
}

/// The folders of skills, and who answers for each.
pub(crate) fn skill_folders<'a>(
    env: &'a BTreeMap<String, String>,
    project: &'a Path,
) -> impl Iterator<Item = (Source, PathBuf)> + 'a {
    let folder = move |base| folder_of(base, env, Some(project));
    SKILLS.iter().filter_map(move |(source, base, below)| Some((*source, folder(*base)?.join(below))))
}

/// The folder of a base, where it is known.
fn folder_of(base: Base, env: &BTreeMap<String, String>, project: Option<&Path>) -> Option<PathBuf> {
    match base {
        Base::Managed => Some(PathBuf::from(MANAGED)),
        Base::Config => home(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("gatehook")),
        Base::DockerAgent => {
            let variable = |name| env.get(name).filter(|folder| Path::new(folder).is_absolute()).map(PathBuf::from);
            let named = ["DOCKER_AGENT_CONFIG_DIR", "CAGENT_CONFIG_DIR"].into_iter().find_map(variable);
            named.or_else(|| home(env, "", ".config/cagent"))
        }
        Base::Ollm => home(env, "", ".ollm"),
        Base::Home => home(env, "", ""),
        Base::Project => project.map(Path::to_owned),
        Base::OllamaProject => {
            let named = env.get("OLLAMA_PROJECT_DIR").filter(|folder| !folder.is_empty());
            project.map(|project| named.map_or_else(|| project.to_owned(), |named| project.join(named)))
        }
    }
}

/// A folder of the user's: what a variable says, else one below `HOME`.
pub(crate) fn home(env: &BTreeMap<String, String>, variable: &str, below: &str) -> Option<PathBuf> {
    let set = env.get(variable).filter(|folder| Path::new(folder).is_absolute()).map(PathBuf::from);
    set.or_else(|| env.get("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(home).join(below)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
        let users = PLACES.iter().filter(|row| row.base == Base::Config);
        let found: Vec<Place> = users.flat_map(|row| row.places(folder.path())).collect();
        assert_eq!(names(&found, folder.path()), ["gatehook.toml", "hooks.d/10.toml", "hooks.d/20.json"]);
    }

    #[test]
    fn what_is_no_file_stands_in_its_place_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("gatehook.yaml", folder.path().join("gatehook.yaml")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("hooks.d")).unwrap();
        let users = PLACES.iter().filter(|row| row.base == Base::Config);
        let found: Vec<Place> = users.flat_map(|row| row.places(folder.path())).collect();
        assert_eq!(names(&found, folder.path()), ["gatehook.yaml", "hooks.d"]);
        assert!(found.iter().all(|place| not_a_file(&place.path).unwrap().contains("leads nowhere")));
    }

    #[test]
    fn the_administrators_folder_stands_for_itself_where_others_could_take_files_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let (base, drop_ins) = (folder.path().join("conf"), folder.path().join("conf/hooks.d"));
        std::fs::create_dir_all(&drop_ins).unwrap();
        std::fs::set_permissions(&drop_ins, std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::write(drop_ins.join("10.yaml"), "").unwrap();
        let managed = || PLACES.iter().filter(|row| row.base == Base::Managed);
        let found: Vec<Place> = managed().flat_map(|row| row.places(&base)).collect();
        // Where the tests are not root's, neither is the folder above.
        assert!(names(&found, &base).contains(&"hooks.d".to_owned()), "{found:?}");
        assert!(found.iter().all(|place| place.owner == Some(0)));
        assert!(managed().all(|row| row.places(&folder.path().join("none")).is_empty()));
    }

    #[test]
    fn every_system_has_its_files_where_it_keeps_them() {
        let home = tempfile::tempdir().unwrap();
        let files = [
            "home/.config/cagent/config.yaml",
            "home/.config/cagent/hooks.d/10.yml",
            "home/.ollm/settings.json",
            "home/.ollm/config.yaml",
            "home/.ollm/hooks/a.json",
            "project/.ollama/settings.json",
            "project/.ollm/hooks/b.json",
            "home/.ollm/extensions/x/manifest.json",
            "project/.ollm/extensions/y/manifest.json",
        ];
        for name in files.iter().chain(&["home/.ollm/hooks/readme.md", "project/.ollm/extensions/manifest.json"]) {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let env = BTreeMap::from([("HOME".to_owned(), home.path().join("home").display().to_string())]);
        let found = usual_places(&env, None, Some(&home.path().join("project")));
        let found: Vec<Place> = found.into_iter().filter(|place| place.dialect.is_some()).collect();
        assert_eq!(names(&found, home.path()), files);
        let served = usual_places(&env, None, None);
        assert!(served.iter().all(|place| !place.source.needs_approval()), "{served:?}");
        // A project that is the home has nothing of its user's twice.
        let twice = usual_places(&env, None, Some(&home.path().join("home")));
        let of_hooks = twice.iter().filter(|place| place.path.ends_with("a.json"));
        assert_eq!(of_hooks.map(|place| place.source).collect::<Vec<_>>(), [Source::User]);
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
