//! The images that manifests name, as directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::peers;
use tests::server::{dunlin_binary, repository};

/// An image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    /// Where its directories are, and where they appear.
    pub(crate) directories: Vec<(PathBuf, String)>,
    /// What runs, unless the manifest says.
    pub(crate) entry_point: Vec<String>,
    /// Its variables.
    pub(crate) environment: BTreeMap<String, String>,
    /// Where its processes begin.
    pub(crate) working_directory: String,
}

fn succeeded(output: &Output) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(())
}

impl Image {
    /// The one of this name. That of Dunlin is made from the binary under test; in place of that of
    /// Valkey there is this system, with the programs of Debian's Valkey.
    pub(crate) fn find(name: &str) -> Result<Image> {
        let short = name.rsplit('/').next().unwrap_or_default();
        match short.split(':').next() {
            Some("dunlin") => {
                static MADE: OnceLock<Result<(TempDir, Image), String>> = OnceLock::new();
                let made = MADE.get_or_init(|| make().map_err(|error| format!("{error:#}")));
                let (_, image) = made.as_ref().map_err(|error| anyhow!("{error}"))?;
                Ok(image.clone())
            }
            Some("valkey" | "application") => of_system(),
            _ => bail!("there is no image {name}"),
        }
    }
}

/// As for a release, but for what only debuggers read.
fn make() -> Result<(TempDir, Image)> {
    let home = tempfile::Builder::new().prefix("dunlin-image-").tempdir()?;
    let (binary, layout) = (home.path().join("dunlin"), home.path().join("image"));
    succeeded(&Command::new("strip").arg("-o").arg(&binary).arg(dunlin_binary()?).output()?)?;
    let script = repository().join("scripts/make-image");
    succeeded(&Command::new(script).args([&binary, &layout]).output()?)?;
    let read = |path: PathBuf| -> Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let blob = |entry: &Value| -> Result<PathBuf> {
        let digest = entry["digest"].as_str().context("a digest")?;
        Ok(layout.join("blobs").join(digest.replace(':', "/")))
    };
    let index = read(layout.join("index.json"))?;
    let manifest = read(blob(&index["manifests"][0])?)?;
    let config = read(blob(&manifest["config"])?)?;
    let root = home.path().join("root");
    fs::create_dir(&root)?;
    let layer = blob(&manifest["layers"][0])?;
    succeeded(&Command::new("tar").arg("-xzf").arg(layer).arg("-C").arg(&root).output()?)?;
    let words = |list: &Value| -> Vec<String> {
        let words = list.as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let config = &config["config"];
    let variables = words(&config["Env"]).into_iter();
    let variables =
        variables.filter_map(|own| own.split_once('=').map(|(n, v)| (n.into(), v.into())));
    let image = Image {
        directories: directories_of(&root)?,
        entry_point: words(&config["Entrypoint"]),
        environment: variables.collect(),
        working_directory: config["WorkingDir"].as_str().unwrap_or("/").to_owned(),
    };
    Ok((home, image))
}

fn directories_of(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = format!("/{}", entry.file_name().to_string_lossy());
        // The volume of the image is one of the manifest.
        if name != "/data" {
            found.push((entry.path(), name));
        }
    }
    Ok(found)
}

fn of_system() -> Result<Image> {
    let programs = fs::canonicalize(peers::program("valkey-cli").parent().context("a directory")?)?;
    let peers = programs.parent().context("a directory")?.to_owned();
    let appears = peers.to_str().context("a path of text")?.to_owned();
    let mut directories: Vec<_> = ["/usr", "/bin", "/lib", "/lib64", "/sbin"]
        .into_iter()
        .filter(|own| Path::new(own).exists())
        .map(|own| (PathBuf::from(own), own.to_owned()))
        .collect();
    directories.push((peers, appears));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    Ok(Image {
        directories,
        environment: [("PATH".to_owned(), path)].into(),
        working_directory: "/".to_owned(),
        ..Image::default()
    })
}
