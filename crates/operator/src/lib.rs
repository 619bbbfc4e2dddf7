//! `dunlin cluster`: makes a cluster, shows it and changes it.
//!
//! | file | what it answers |
//! |---|---|
//! | `options` | what does the user want? |
//! | `print`, `table` | how is the user told, and asked? |
//! | `trouble` | why was something not done? |
//! | `record` | what does etcd have of the cluster, and how is it changed? |
//! | `link` | what does a node say of itself? |
//! | `status` | what is shown, and what is wrong? |
//! | `members` | which nodes come into the cluster? |
//! | `functions` | how does a new shard get the functions that the others have? |
//! | `leaving` | which nodes leave it? |
//! | `failover` | how does a replica become primary on request? |
//! | `moving` | how do slots go to another shard, and how does an operator give that up? |
//! | `balance` | which slots go where, so that each shard has its share? |
//! | `upgrade` | how are all nodes restarted while the cluster serves? |
//! | `answers` | what do the nodes of a cluster say that etcd has lost? |
//! | `rebuild` | how does etcd get a cluster again that it has lost? |
//! | `dev` | how does a cluster run on this machine? |
//!
//! All changes are transactions of etcd that hold only if no other operator has changed the cluster
//! since it was looked at. The nodes carry them out; this program waits for that, and may be
//! interrupted.

mod answers;
mod balance;
mod claim;
mod dev;
mod failover;
mod functions;
mod leaving;
mod link;
mod members;
mod moving;
mod options;
mod print;
mod rebuild;
mod record;
mod status;
mod table;
mod trouble;
mod upgrade;

use std::process::ExitCode;

use options::{Options, Task};
use print::{complain, say};
use record::Store;
use trouble::Trouble;

/// What `dunlin cluster --help` prints.
pub const USAGE: &str = options::USAGE;

/// The exit code after a failure.
const FAILED: u8 = 1;
/// The exit code after a wrong command line.
const MISTAKE: u8 = 2;
/// The exit code if something is wrong with the cluster, or it has not got where it was to be.
const NOT_WELL: u8 = 3;

/// Carries out `dunlin cluster ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    let own = arguments.iter().take_while(|word| *word != "--");
    if own.clone().any(|word| word == "-h" || word == "--help") {
        say(USAGE.trim_end());
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(mistake) => {
            complain(&format!("{mistake}\n\ndunlin cluster --help lists commands and options."));
            return ExitCode::from(MISTAKE);
        }
    };
    match carry_out(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_WELL),
        Err(trouble) => {
            complain(&trouble.to_string());
            ExitCode::from(match trouble {
                Trouble::NotYet(_) => NOT_WELL,
                Trouble::Failed(_) | Trouble::Refused => FAILED,
            })
        }
    }
}

/// Does what is wanted. Returns whether all is well.
fn carry_out(options: &Options) -> Result<bool, Trouble> {
    if let Task::Dev(dev) = &options.task {
        return dev::run(options, dev).map(|()| true);
    }
    let store = Store::open(options)?;
    match &options.task {
        Task::Status { json } => return status::show(&store, options, *json),
        Task::Create { nodes, replicas } => members::create(&store, options, nodes, *replicas)?,
        Task::Add { nodes, to } => members::add(&store, options, nodes, to)?,
        Task::Remove { nodes } => leaving::remove(&store, options, nodes)?,
        Task::Forget { nodes, accepts_loss } => {
            leaving::forget(&store, options, nodes, *accepts_loss)?;
        }
        Task::Failover(target) => failover::run(&store, options, target)?,
        Task::Move { slots, to } => moving::run(&store, options, slots, to)?,
        Task::Abort { moves } => moving::abort(&store, options, moves)?,
        Task::Rebalance(wanted) => balance::run(&store, options, wanted)?,
        Task::Upgrade { restart, version } => {
            upgrade::run(&store, options, restart, version.as_deref())?;
        }
        Task::Rebuild(wanted) => rebuild::run(&store, options, wanted)?,
        Task::Dev(_) => {}
    }
    Ok(true)
}
