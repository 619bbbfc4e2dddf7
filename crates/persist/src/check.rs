//! `dunlin check`: shows what data files contain and where they are damaged, and keeps what can be
//! kept.
//!
//! A path is a file of commands, an RDB file, a manifest, or a directory of these. Nothing is
//! changed unless the user asks for it; then the original stays beside the new file, and no server
//! may use the files.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rdb::ReadError;
use rdb::file::FileReader;

use super::aof::directory::DirectoryError;
use super::aof::lost_end::lacks_end;
use super::aof::manifest::Manifest;
use super::aof::reader::Ending;
use super::claim::{Claim, InUse};
use super::disk::{Disk, RealDisk, directory_of};
use super::originals;

mod commands;
mod kind;
mod repair;
mod snapshot;
mod verdict;

use commands::Contents;
use kind::{Expected, Kind};
use repair::Piece;
use snapshot::{End, Snapshot};

pub use verdict::Verdict;

/// What to do besides looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keep what can be kept of damaged files.
    pub fix: bool,
    /// Go back to the state at this Unix second, as far as the files say when things happened.
    pub truncate_to: Option<i64>,
}

/// Why nothing can be said.
#[derive(Debug)]
pub enum CheckError {
    /// A file or directory cannot be read or written.
    System {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The list of files is wrong.
    Directory(DirectoryError),
    /// There is nothing of ours.
    Nothing {
        /// Where.
        path: PathBuf,
    },
    /// The time to go back to lies before all existing data.
    TooEarly {
        /// The file that begins later.
        path: PathBuf,
        /// When it begins, as a Unix second.
        begins: i64,
    },
    /// No file says when things happened, so there is no going back to a time.
    NoTimes {
        /// The path that was looked at.
        path: PathBuf,
    },
    /// A server uses files that are to be changed.
    InUse(InUse),
    /// The report cannot be written.
    Report(io::Error),
}

impl fmt::Display for CheckError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::System { path, error } => write!(formatter, "{}: {error}", path.display()),
            CheckError::Directory(error) => error.fmt(formatter),
            CheckError::Nothing { path } => write!(
                formatter,
                "{}: no manifest of an append-only file and no RDB file is here",
                path.display()
            ),
            CheckError::TooEarly { path, begins } => write!(
                formatter,
                "{}: its data is of {begins} or later, so there is nothing to go back to",
                path.display()
            ),
            CheckError::NoTimes { path } => write!(
                formatter,
                "{}: nothing here says when it was written (aof-timestamp-enabled), so there is no \
                 going back to a time",
                path.display()
            ),
            CheckError::InUse(InUse(path)) => {
                write!(formatter, "{}: a server uses it: nothing was changed", path.display())
            }
            CheckError::Report(error) => write!(formatter, "writing the report: {error}"),
        }
    }
}

impl std::error::Error for CheckError {}

impl CheckError {
    fn system(path: &Path) -> impl FnOnce(io::Error) -> CheckError + use<> {
        let path = path.to_owned();
        move |error| CheckError::System { path, error }
    }
}

/// First bytes that tell an RDB file from commands.
const MAGIC_BYTES: u64 = 9;

type Result<T> = std::result::Result<T, CheckError>;

/// Looks at `path`, and reports in lines of text to `out`.
///
/// # Errors
/// [`CheckError`]: some file could not be judged, and nothing more was changed.
pub fn check(path: &Path, options: Options, out: &mut dyn Write) -> Result<Verdict> {
    let changes = options.fix || options.truncate_to.is_some();
    let _claims = if changes { claims(path)? } else { Vec::new() };
    let mut check = Check { options, out, saw_time: false };
    let verdict = check.path(path)?;
    if options.truncate_to.is_some() && !check.saw_time {
        return Err(CheckError::NoTimes { path: path.to_owned() });
    }
    Ok(verdict)
}

/// The result of a look at a file.
struct Looked {
    /// The verdict on the file as it is, or as it is going to be.
    verdict: Verdict,
    /// The pieces that the new file consists of.
    pieces: Vec<Piece>,
    /// Commands at its end will be missing, so no other file can follow.
    shortened: bool,
}

impl Looked {
    fn unchanged(verdict: Verdict) -> Looked {
        Looked { verdict, pieces: Vec::new(), shortened: false }
    }

    fn cut(offset: u64) -> Looked {
        let pieces = vec![Piece::Copy(0..offset)];
        Looked { verdict: Verdict::Changed, pieces, shortened: true }
    }

    /// The same, combined with a further verdict.
    fn but(mut self, verdict: Verdict) -> Looked {
        self.verdict = worse(self.verdict, verdict);
        self
    }
}

struct Check<'a> {
    options: Options,
    out: &'a mut dyn Write,
    /// Whether some file says when something happened.
    saw_time: bool,
}

impl Check<'_> {
    fn say(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        writeln!(self.out, "{line}").map_err(CheckError::Report)
    }

    fn path(&mut self, path: &Path) -> Result<Verdict> {
        if path.is_dir() {
            return self.directory(path);
        }
        if path.extension() == Some(OsStr::new("manifest")) {
            return self.listed(path);
        }
        let looked = self.file(path, Expected::alone(path), true)?;
        self.change(path, &looked)?;
        Ok(looked.verdict)
    }

    /// A directory of an append-only file, or one that contains such directories or RDB files.
    fn directory(&mut self, path: &Path) -> Result<Verdict> {
        let inside = with_extension(path, "manifest")?;
        if !inside.is_empty() {
            return self.all(&inside, Check::listed);
        }
        let mut manifests = Vec::new();
        let mut unlisted = Vec::new();
        if !parts(path)?.is_empty() {
            unlisted.push(path.to_owned());
        }
        for below in entries(path)?.into_iter().filter(|below| below.is_dir()) {
            let lists = with_extension(&below, "manifest")?;
            if lists.is_empty() && !parts(&below)?.is_empty() {
                unlisted.push(below);
            }
            manifests.extend(lists);
        }
        // A snapshot has a single time, so there is no going back in it.
        let mut snapshots = match self.options.truncate_to {
            None => with_extension(path, "rdb")?,
            Some(_) => Vec::new(),
        };
        snapshots.retain(|path| !kind::is_part(path));
        if manifests.is_empty() && snapshots.is_empty() && unlisted.is_empty() {
            return Err(CheckError::Nothing { path: path.to_owned() });
        }
        let snapshots = self.all(&snapshots, Check::path)?;
        let listed = self.all(&manifests, Check::listed)?;
        Ok(worse(worse(snapshots, listed), self.all(&unlisted, Check::unlisted)?))
    }

    /// A directory with parts of an append-only file and without a list of them. Then it is unknown
    /// which parts belong together, so nothing is changed.
    fn unlisted(&mut self, directory: &Path) -> Result<Verdict> {
        self.say(format_args!(
            "{}: DAMAGED: parts of an append-only file are here, and no manifest that lists them: \
             a server starts without them, and they are left as they are",
            directory.display()
        ))?;
        for (index, part) in parts(directory)?.iter().enumerate() {
            self.file(part, Expected::part(part), index == 0)?;
        }
        Ok(Verdict::Damaged)
    }

    fn all(
        &mut self,
        paths: &[PathBuf],
        look: impl Fn(&mut Self, &Path) -> Result<Verdict>,
    ) -> Result<Verdict> {
        paths.iter().try_fold(Verdict::Good, |verdict, path| Ok(worse(verdict, look(self, path)?)))
    }

    /// The files that a manifest lists. They follow one another, so those after a cut have no
    /// meaning any more.
    fn listed(&mut self, path: &Path) -> Result<Verdict> {
        let content = RealDisk.read(path).map_err(CheckError::system(path))?;
        let manifest = Manifest::parse(&content).map_err(|error| {
            CheckError::Directory(DirectoryError::Manifest { path: path.to_owned(), error })
        })?;
        self.say(format_args!(
            "{}: {} base, {} increments, {} to be removed",
            path.display(),
            if manifest.base.is_some() { "a" } else { "no" },
            manifest.increments.len(),
            manifest.history.len(),
        ))?;
        let files: Vec<PathBuf> =
            manifest.live().map(|file| path.with_file_name(&file.name)).collect();
        if let Some(path) = files.iter().find(|file| !file.exists()) {
            let path = path.clone();
            return Err(CheckError::Directory(DirectoryError::Missing { path }));
        }
        let mut verdict = Verdict::Good;
        for (index, file) in files.iter().enumerate() {
            let mut looked = self.file(file, Expected::part(file), index == 0)?;
            if manifest.base.is_none() || index > 0 {
                self.look_for_end(file, &files[index + 1..], &mut looked)?;
            }
            if verdict == Verdict::Damaged && !looked.pieces.is_empty() {
                self.say(format_args!("  left as it is, since a file before it is damaged"))?;
                break;
            }
            verdict = worse(verdict, looked.verdict);
            if looked.shortened {
                // The list is replaced first: a shorter file must not be followed by others for an
                // instant.
                self.set_aside(path, manifest, &files[index + 1..])?;
                self.change(file, &looked)?;
                break;
            }
            self.change(file, &looked)?;
        }
        Ok(verdict)
    }

    /// Whether a file that seems to be whole lacks commands after which others go on.
    fn look_for_end(&mut self, file: &Path, later: &[PathBuf], looked: &mut Looked) -> Result<()> {
        let size = std::fs::metadata(file).map_err(CheckError::system(file))?.len();
        let lacks = lacks_end(later, size, false)
            .map_err(|(path, error)| CheckError::system(&path)(error))?;
        if looked.shortened || looked.verdict == Verdict::Damaged || !lacks {
            return Ok(());
        }
        self.say(format_args!("  SHORT: it had more commands when the next file began"))?;
        looked.shortened = self.options.fix;
        let verdict = if self.options.fix { Verdict::Changed } else { Verdict::Damaged };
        looked.verdict = worse(looked.verdict, verdict);
        Ok(())
    }

    /// A file with data of any kind. `first` says that no other file comes before it.
    fn file(&mut self, path: &Path, expected: Expected, first: bool) -> Result<Looked> {
        let about = std::fs::metadata(path).map_err(CheckError::system(path))?;
        if !about.is_file() {
            return Err(CheckError::system(path)(io::Error::other("this is no regular file")));
        }
        let size = about.len();
        let file = File::open(path).map_err(CheckError::system(path))?;
        let mut magic = Vec::new();
        let read = (&file).take(MAGIC_BYTES).read_to_end(&mut magic);
        read.map_err(CheckError::system(path))?;
        let lost = expected.lost_magic(path, &magic).map_err(CheckError::system(path))?;
        let looked = if let Some(lost) = lost {
            self.without_magic(path, expected, size, lost)?
        } else {
            let input = io::Cursor::new(magic.clone()).chain(file);
            match expected.decide(&magic) {
                Kind::Snapshot => {
                    self.say(format_args!("{}: RDB file, {size} bytes", path.display()))?;
                    self.snapshot(path, expected, input, size)?
                }
                Kind::Commands => {
                    self.say(format_args!("{}: commands, {size} bytes", path.display()))?;
                    let looked = self.commands(path, input, 0..size, first)?;
                    // Cut down to nothing it would pass for a base without data.
                    let cut_off = size > 0 && looked.pieces == [Piece::Copy(0..0)];
                    match expected.is_rdb() && cut_off {
                        true => self.left_alone()?,
                        false => looked,
                    }
                }
                Kind::Neither(reason) => self.neither(path, size, &reason)?,
            }
        };
        match looked.verdict {
            Verdict::Good => self.say(format_args!("  good"))?,
            Verdict::Unsupported => self.say(format_args!("  this server refuses to load it"))?,
            Verdict::Damaged | Verdict::Changed => {}
        }
        Ok(looked)
    }

    /// A file that no server loads.
    fn neither(&mut self, path: &Path, size: u64, reason: &str) -> Result<Looked> {
        let path = path.display();
        self.say(format_args!("{path}: {size} bytes"))?;
        self.say(format_args!("  DAMAGED: {reason}"))?;
        self.left_alone()
    }

    /// The verdict on a file that is damaged as a whole.
    fn left_alone(&mut self) -> Result<Looked> {
        if self.options.fix {
            self.say(format_args!("  nothing can be kept of it, so it is left as it is"))?;
        }
        Ok(Looked::unchanged(Verdict::Damaged))
    }

    /// An RDB file in which only the first bytes are damaged; they should be these.
    fn without_magic(
        &mut self,
        path: &Path,
        expected: Expected,
        size: u64,
        magic: &'static [u8],
    ) -> Result<Looked> {
        self.say(format_args!("{}: RDB file, {size} bytes", path.display()))?;
        let input = kind::beginning_with(magic, path).map_err(CheckError::system(path))?;
        let mut looked = self.snapshot(path, expected, input, size)?;
        let name = magic.escape_ascii();
        self.say(format_args!("  DAMAGED: the file does not begin with {name}, as it should"))?;
        if !self.options.fix {
            return Ok(Looked::unchanged(Verdict::Damaged));
        }
        looked.verdict = worse(looked.verdict, Verdict::Changed);
        looked.pieces = repair::begin_with(magic, &looked.pieces, size);
        Ok(looked)
    }

    /// An RDB file, and commands after it if there are some.
    fn snapshot(
        &mut self,
        path: &Path,
        expected: Expected,
        input: impl Read,
        size: u64,
    ) -> Result<Looked> {
        let mut reader = match FileReader::open(input, true) {
            Ok(reader) => reader,
            Err(error) => match error.cause {
                ReadError::Io(error) => return Err(CheckError::system(path)(error)),
                _ => {
                    self.say(format_args!("  DAMAGED: {error}"))?;
                    return self.left_alone();
                }
            },
        };
        let found = Snapshot::read(&mut reader).map_err(CheckError::system(path))?;
        for line in found.lines() {
            self.say(format_args!("  {line}"))?;
        }
        if let (Some(begins), Some(until)) = (found.created, self.options.truncate_to)
            && begins > until
        {
            return Err(CheckError::TooEarly { path: path.to_owned(), begins });
        }
        let (end, version) = (reader.offset(), reader.version());
        let mut looked = Looked::unchanged(Verdict::Good);
        if found.end != End::Missing && end < size {
            looked = self.behind_snapshot(path, expected, reader, end..size)?;
        }
        looked.verdict = worse(looked.verdict, found.verdict());
        if found.is_good() {
            return Ok(looked);
        }
        if !self.options.fix {
            return Ok(Looked::unchanged(Verdict::Damaged));
        }
        let tail = match looked.pieces[..] {
            [Piece::Copy(Range { end: good, .. })] => end..good,
            _ => end..size,
        };
        looked.pieces = repair::whole_snapshot(&found, version);
        if found.end != End::Missing {
            looked.pieces.push(Piece::Copy(tail));
        }
        looked.verdict = worse(looked.verdict, Verdict::Changed);
        Ok(looked)
    }

    /// The part of a file after an RDB part.
    fn behind_snapshot(
        &mut self,
        path: &Path,
        expected: Expected,
        reader: FileReader<impl Read>,
        part: Range<u64>,
    ) -> Result<Looked> {
        let (input, rest) = reader.into_rest();
        let mut input = io::Cursor::new(rest).chain(input);
        let mut next = [0];
        input.read_exact(&mut next).map_err(CheckError::system(path))?;
        if expected.continues(next[0]) {
            self.say(format_args!("  commands follow at offset {}", part.start))?;
            return self.commands(path, io::Cursor::new(next).chain(input), part, false);
        }
        self.say(format_args!(
            "  {} bytes follow its end at offset {}: a server ignores them",
            part.end - part.start,
            part.start
        ))?;
        Ok(match self.options.fix {
            true => Looked::cut(part.start),
            false => Looked::unchanged(Verdict::Good),
        })
    }

    /// The commands in a part of a file. `first` says that nothing comes before them.
    fn commands(
        &mut self,
        path: &Path,
        input: impl Read,
        part: Range<u64>,
        first: bool,
    ) -> Result<Looked> {
        let contents = Contents::read(input, part.start, self.options.truncate_to)
            .map_err(CheckError::system(path))?;
        for line in contents.lines() {
            self.say(format_args!("  {line}"))?;
        }
        self.saw_time |= contents.has_times();
        if let Some((second, at)) = contents.later {
            if first && at == part.start {
                return Err(CheckError::TooEarly { path: path.to_owned(), begins: second });
            }
            self.say(format_args!("  what follows offset {at} was written at {second} or later"))?;
            return Ok(Looked::cut(at).but(contents.verdict(at)));
        }
        let good = match contents.ending {
            Ending::Complete => return Ok(Looked::unchanged(contents.verdict(part.end))),
            Ending::Torn { good, tear } => {
                self.say(format_args!("  TORN: {tear}"))?;
                good
            }
            Ending::Damaged { good, at, damage } => {
                self.say(format_args!("  DAMAGED at offset {at}: {damage}"))?;
                // An incomplete end was never acknowledged; this is something else.
                if first && good == part.start {
                    return self.left_alone();
                }
                good
            }
        };
        self.say(format_args!("  good up to offset {good}, {} bytes follow", part.end - good))?;
        Ok(match self.options.fix {
            true => Looked::cut(good).but(contents.verdict(good)),
            false => Looked::unchanged(Verdict::Damaged),
        })
    }

    /// Changes a file to its new contents.
    fn change(&mut self, path: &Path, looked: &Looked) -> Result<()> {
        if looked.pieces.is_empty() {
            return Ok(());
        }
        let (original, size) =
            repair::rebuild(&RealDisk, path, &looked.pieces).map_err(CheckError::system(path))?;
        self.say(format_args!(
            "{}: has {size} bytes now; the original is {}",
            path.display(),
            original.display()
        ))
    }

    /// Takes files out of a list, and gives them names that tell it.
    fn set_aside(&mut self, list: &Path, manifest: Manifest, files: &[PathBuf]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let original = repair::shorten_list(&RealDisk, list, manifest, files)
            .map_err(CheckError::system(list))?;
        self.say(format_args!(
            "{}: now ends there; the original is {}",
            list.display(),
            original.display()
        ))?;
        for file in files {
            let aside = originals::set_aside(&RealDisk, file).map_err(CheckError::system(file))?;
            self.say(format_args!("{}: set aside as {}", file.display(), aside.display()))?;
        }
        Ok(())
    }
}

/// The right to change the files at a path, or below it.
fn claims(path: &Path) -> Result<Vec<Claim>> {
    let in_use = CheckError::InUse;
    if !path.is_dir() {
        let directory = Claim::directory(directory_of(path)).map_err(in_use)?;
        let snapshot = Claim::known_snapshot(path).map_err(in_use)?;
        return Ok(directory.into_iter().chain(snapshot).collect());
    }
    let mut claims = Vec::from_iter(Claim::directory(path).map_err(in_use)?);
    for below in entries(path)? {
        let claim = match below.is_dir() {
            true => Claim::directory(&below),
            false => Claim::known_snapshot(&below),
        };
        claims.extend(claim.map_err(in_use)?);
    }
    Ok(claims)
}

fn worse(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Damaged, _) | (_, Verdict::Damaged) => Verdict::Damaged,
        (Verdict::Unsupported, _) | (_, Verdict::Unsupported) => Verdict::Unsupported,
        (Verdict::Changed, _) | (_, Verdict::Changed) => Verdict::Changed,
        _ => Verdict::Good,
    }
}

/// The entries of a directory, in the order of names.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut names = RealDisk.list(directory).map_err(CheckError::system(directory))?;
    names.sort();
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// The complete files in a directory with this extension.
fn with_extension(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut paths = complete(directory)?;
    paths.retain(|path| path.extension() == Some(OsStr::new(extension)));
    Ok(paths)
}

/// The complete files in a directory whose names make them parts of an append-only file.
fn parts(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = complete(directory)?;
    paths.retain(|path| kind::is_part(path));
    Ok(paths)
}

/// The complete files in a directory.
fn complete(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = entries(directory)?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !name.starts_with(super::disk::TEMPORARY_PREFIX.as_bytes()) && path.is_file()
    });
    Ok(paths)
}

#[cfg(test)]
mod tests;
