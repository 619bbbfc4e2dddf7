//! The names of the files of a store.

/// How the names of files begin and end that this program writes besides the list. In between there
/// are a number, of eight digits or more, and after a dash the run that has written the file.
const NAMES: [(&str, &str); 2] = [("base-", ".rdb"), ("stream-", ".aof")];
/// The hexadecimal digits of a run. Files of earlier versions name none.
const DIGITS_OF_RUN: usize = 8;

/// What the name of a file says, if this program gives such names to bases or segments.
pub(crate) struct OwnName<'n> {
    /// What it begins with.
    pub(crate) kind: &'static str,
    pub(crate) number: u64,
    pub(crate) run: Option<&'n str>,
}

impl OwnName<'_> {
    pub(crate) fn of(name: &str) -> Option<OwnName<'_>> {
        NAMES.iter().find_map(|(kind, end)| {
            let own = name.strip_prefix(kind)?.strip_suffix(end)?;
            let (number, run) = own.split_once('-').map_or((own, None), |(n, run)| (n, Some(run)));
            let is_run = |run: &str| {
                run.len() == DIGITS_OF_RUN && run.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let is_own = number.len() >= 8
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && run.is_none_or(is_run);
            is_own.then_some(OwnName { kind, number: number.parse().ok()?, run })
        })
    }
}

/// Whether this program gives such a name to a base or a segment.
pub(crate) fn is_own(name: &str) -> bool {
    OwnName::of(name).is_some()
}

/// The name of a file that this run writes.
pub(crate) fn name(kind: &str, number: u64, run: &str, extension: &str) -> String {
    format!("{kind}-{number:08}-{run}.{extension}")
}

/// What the names of a run's files have, and those of no other run.
pub(crate) fn new_run() -> String {
    format!("{:0DIGITS_OF_RUN$x}", base::rng::entropy_u64() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_this_program_gives_are_its_own() {
        for name in [
            "base-00000001-0123abcd.rdb",
            "stream-123456789-0123abcd.aof",
            "base-00000001.rdb",
            "stream-00000012.aof",
            "stream-123456789.aof",
        ] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "base-system.tar",
            "base-1.rdb",
            "stream-notes.txt",
            "base-00000001.rdb.part",
            "base-00000001.aof",
            "base-0000000x.rdb",
            "base-00000001-0123abc.rdb",
            "base-00000001-0123abcx.rdb",
            "base-00000001-0123abcd-1.rdb",
            "base-00000001-.rdb",
            "manifest.json.bak",
        ] {
            assert!(!is_own(name), "{name}");
        }
    }
}
