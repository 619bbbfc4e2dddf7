//! `dunlin backup` and `dunlin restore`: all data of a running server and the stream of writes
//! behind it, in a directory or in S3, and the way back to any position of it.
//!
//! | file | what it answers |
//! |---|---|
//! | `options` | what does the user want? |
//! | `print` | how does it tell the user something? |
//! | `moment`, `position` | how are times and places in the stream written? |
//! | `files` | who may read its files, and when are they durable? |
//! | `digest` | what is the sum of what passes through? |
//! | `storage` | where do backups lie? |
//! | `manifest` | what does a store have? |
//! | `missing` | which of that is not there? |
//! | `chain` | how does that hang together? |
//! | `names` | what are files called? |
//! | `catalog` | how does the list of a store change? |
//! | `segment` | how does a piece of the stream lie in a file? |
//! | `link` | how does a server give its data and its stream? |
//! | `take` | which steps make a backup? |
//! | `base_job` | how is a base received, or checked, beside the stream? |
//! | `verify` | are files what the list says? |
//! | `retention` | what is kept? |
//! | `list` | how is it shown? |
//! | `plan` | what does a restore point need? |
//! | `restore` | how is it written for a server? |
//! | `place` | how does it get its place there? |

mod base_job;
mod catalog;
mod chain;
mod digest;
mod files;
mod link;
mod list;
mod manifest;
mod missing;
mod moment;
mod names;
mod options;
mod place;
mod plan;
mod position;
mod print;
mod restore;
mod retention;
mod segment;
mod storage;
mod take;
mod verify;

use std::process::ExitCode;
use std::sync::Arc;

use lab::targets::Interrupt;
use options::{BackupOptions, RestoreOptions, Source, Task};
use print::{complain, say};
use storage::{Reading, Store};

/// What `dunlin backup --help` prints.
pub const BACKUP_USAGE: &str = options::BACKUP_USAGE;
/// What `dunlin restore --help` prints.
pub const RESTORE_USAGE: &str = options::RESTORE_USAGE;

/// The exit code after a failure.
const FAILED: u8 = 1;
/// The exit code after a wrong option.
const MISTAKE: u8 = 2;

/// Carries out `dunlin backup ARGUMENTS`.
pub fn run_backup(arguments: &[String]) -> ExitCode {
    run(arguments, BACKUP_USAGE, BackupOptions::parse, back_up)
}

/// Carries out `dunlin restore ARGUMENTS`.
pub fn run_restore(arguments: &[String]) -> ExitCode {
    run(arguments, RESTORE_USAGE, RestoreOptions::parse, |options| {
        let store = storage::open(&options.from, &options.access, &Interrupt::default())?;
        restore::restore(&*store, &options)
    })
}

fn run<O>(
    arguments: &[String],
    usage: &str,
    parse: impl FnOnce(&[String]) -> Result<O, String>,
    carry_out: impl FnOnce(O) -> Result<(), String>,
) -> ExitCode {
    if arguments.iter().any(|word| word == "-h" || word == "--help") {
        say(usage.trim_end());
        return ExitCode::SUCCESS;
    }
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(mistake) => {
            complain(&format!("{mistake}\n\n{usage}"));
            return ExitCode::from(MISTAKE);
        }
    };
    match carry_out(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            complain(&problem);
            ExitCode::from(FAILED)
        }
    }
}

fn back_up(options: BackupOptions) -> Result<(), String> {
    let interrupt = match &options.task {
        Task::Take(Source::Server(_)) => {
            Interrupt::by_signals().map_err(|error| error.to_string())?
        }
        // A signal ends these at once.
        _ => Interrupt::default(),
    };
    let store: Arc<dyn Store> = storage::open(&options.to, &options.access, &interrupt)?.into();
    match &options.task {
        Task::Take(Source::Server(address)) => {
            take::take(address, &options.take, store, &interrupt)
        }
        Task::Take(Source::File(path)) => take::take_file(path, &options.take, store),
        Task::Prune => take::prune(&options.take, store),
        Task::List { json } => list::show(&storage::existing_manifest(&*store)?, *json),
        Task::Verify => verify(&*store),
    }
}

fn verify(store: &dyn Store) -> Result<(), String> {
    let reading = Reading::begin(store)?;
    let manifest = &reading.manifest;
    let problems = verify::check_all(&reading, manifest);
    for problem in &problems {
        complain(problem);
    }
    let count = manifest.all_files().count();
    match problems.len() {
        0 => {
            say(&format!("all {count} files are what the list says"));
            Ok(())
        }
        wrong => Err(format!("{}: problems: {wrong}, files in the list: {count}", store.name())),
    }
}
