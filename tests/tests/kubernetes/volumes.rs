//! The volumes of a pod as directories, as a kubelet makes them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use crate::objects::{list, number, text};

/// The contents of a Secret or a ConfigMap.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

/// A volume that shows a Secret or a ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// The name of what it shows.
    pub(crate) source: String,
    directory: PathBuf,
    items: Value,
    mode: u32,
    group: u32,
}

/// Makes a directory that pods of a group may write to.
pub(crate) fn shared_directory(path: &Path, group: u32) -> Result<()> {
    fs::create_dir_all(path)?;
    chown(path, Some(0), Some(group))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o2775))?)
}

impl Projection {
    /// The one that a volume asks for.
    pub(crate) fn of(volume: &Value, directory: &Path, group: u32) -> Result<Projection> {
        let (part, name) = match &volume["secret"] {
            Value::Null => (&volume["configMap"], "name"),
            secret => (secret, "secretName"),
        };
        Ok(Projection {
            source: text(&part[name], "name of a source")?.to_owned(),
            directory: directory.to_owned(),
            items: part["items"].clone(),
            mode: number(&part["defaultMode"], 0o644) as u32,
            group,
        })
    }

    /// Shows these contents, all at once: a link to a directory is exchanged.
    pub(crate) fn show(&self, contents: &Contents, version: usize) -> Result<()> {
        fs::create_dir_all(&self.directory)?;
        let new = self.directory.join(format!("..{version}"));
        fs::create_dir(&new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        for (key, bytes) in contents {
            let mut items = list(&self.items).peekable();
            let all = items.peek().is_none();
            let chosen = items.find(|item| item["key"] == **key);
            let path = match chosen {
                Some(item) => text(&item["path"], "path")?,
                None if all => key,
                None => continue,
            };
            let file = new.join(path);
            fs::write(&file, bytes)?;
            // Root's, and readable by the group of the pod.
            chown(&file, Some(0), Some(self.group))?;
            fs::set_permissions(&file, fs::Permissions::from_mode(self.mode | 0o440))?;
            let link = self.directory.join(path);
            if !link.is_symlink() {
                symlink(Path::new("..data").join(path), link)?;
            }
        }
        let (link, before) = (self.directory.join("..data_tmp"), self.directory.join("..data"));
        let old = fs::read_link(&before).ok();
        symlink(format!("..{version}"), &link)?;
        fs::rename(&link, &before)?;
        if let Some(old) = old {
            fs::remove_dir_all(self.directory.join(old))?;
        }
        Ok(())
    }
}
