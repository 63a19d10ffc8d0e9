//! Whether a file is its owner's alone: the administrator's word is one that nobody else could have written.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

/// Bits of a mode by which others than the owner may write.
const OTHERS: u32 = 0o022;
/// The bit of a folder in which everybody removes their own files alone.
const STICKY: u32 = 0o1000;

/// What stands in the way: a file or folder, and who else could change it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// Who else than the account of this number could change what is at a path, where its links lead, or put something else
/// in its place. Of what is not there nobody knows.
pub(crate) fn by_others(path: &Path, owner: u32) -> Option<Other> {
    let path = path.canonicalize().ok()?;
    let folder = path.parent().map(Path::to_owned);
    std::iter::once(path).chain(folder).find_map(|path| {
        let why = changed_by(&path, owner)?;
        Some(Other { path, why })
    })
}

fn changed_by(path: &Path, owner: u32) -> Option<String> {
    let meta = path.metadata().ok()?;
    if meta.uid() != owner {
        let owner = if owner == 0 { "root".to_owned() } else { format!("user {owner}") };
        return Some(format!("it belongs to user {}, not to {owner}", meta.uid()));
    }
    let is_open = meta.mode() & OTHERS != 0 && !(meta.is_dir() && meta.mode() & STICKY != 0);
    // What a container is given to read may have any mode.
    let is_fixed = || statvfs(path).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY));
    (is_open && !is_fixed()).then(|| format!("others than its owner may write it (mode {:03o})", meta.mode() & 0o777))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_its_owners_where_nobody_else_may_write_it_or_its_folder() {
        let home = tempfile::tempdir().unwrap();
        let (folder, file) = (home.path().join("conf"), home.path().join("conf/a.yaml"));
        let me = home.path().metadata().unwrap().uid();
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        symlink(&file, home.path().join("link")).unwrap();
        for (of_folder, of_file, other) in [
            (0o755, 0o644, None),
            (0o700, 0o600, None),
            (0o1777, 0o644, None),
            (0o755, 0o664, Some(&file)),
            (0o755, 0o646, Some(&file)),
            (0o775, 0o644, Some(&folder)),
            (0o757, 0o644, Some(&folder)),
        ] {
            mode(&folder, of_folder);
            mode(&file, of_file);
            let other = other.map(|path| path.canonicalize().unwrap());
            for path in [&file, &home.path().join("link")] {
                let found = by_others(path, me).map(|other| other.path);
                assert_eq!(found, other, "{of_folder:o} {of_file:o} {}", path.display());
            }
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_not_its_owners() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let me = file.path().metadata().unwrap().uid();
        let other = by_others(file.path(), me + 1).unwrap();
        assert_eq!(other.why, format!("it belongs to user {me}, not to user {}", me + 1));
        assert_eq!(by_others(Path::new("/no/such/file"), me), None);
    }
}
