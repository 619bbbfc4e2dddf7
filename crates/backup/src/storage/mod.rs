//! Where backups lie: in a directory, or as objects of S3. Names of files have no folder.

mod access;
mod directory;
mod interface;
mod reading;
mod s3;

use std::collections::HashSet;

use lab::targets::Interrupt;

pub(crate) use access::Access;
#[cfg(test)]
pub(crate) use interface::Upload;
pub(crate) use interface::{Source, Store, read_all, read_listed};
pub(crate) use reading::Reading;

use crate::manifest::{LONGEST, MANIFEST, Manifest};

/// The store at this place. A server that fails is not asked again when the user asks for the end.
pub(crate) fn open(
    place: &str,
    access: &Access,
    interrupt: &Interrupt,
) -> Result<Box<dyn Store>, String> {
    match place.strip_prefix("s3://") {
        Some(rest) => Ok(Box::new(s3::Bucket::open(rest, access, interrupt)?)),
        None if place.contains("://") => {
            Err("the store is neither a directory nor s3://BUCKET/PREFIX".to_owned())
        }
        None => Ok(Box::new(directory::Directory::new(place.into()))),
    }
}

/// The list of a store; none if it has none.
pub(crate) fn manifest(store: &dyn Source) -> Result<Option<Manifest>, String> {
    let in_store = |problem| format!("{}: {problem}", store.name());
    match read_all(store, MANIFEST, LONGEST).map_err(in_store)? {
        Some(bytes) => Manifest::parse(&bytes).map(Some).map_err(in_store),
        None => Ok(None),
    }
}

/// The list of a store from which something is wanted.
pub(crate) fn existing_manifest(store: &dyn Source) -> Result<Manifest, String> {
    let none = || format!("{} has no backup: there is no {MANIFEST}", store.name());
    let mut manifest = manifest(store)?.ok_or_else(none)?;
    let mut there = HashSet::new();
    for file in manifest.missing_files() {
        if store.read(&file.name)?.is_some() {
            there.insert(file.name.clone());
        }
    }
    manifest.take_back(&there);
    Ok(manifest)
}
