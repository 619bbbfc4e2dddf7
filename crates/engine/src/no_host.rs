//! An outside world that does nothing, for tests and for the schedule explorer.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use config::{Apply, ApplyError, Config, DirectiveId};
use resp::args::OwnedArguments;
use store::gate::StoppedWorld;

use crate::engine::Engine;
use crate::engine::storage::{AppendOnlyFile, Background, BackgroundJob, Loader, Snapshots};
use crate::files::append_only::{self, RewriteAnswer};
use crate::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use crate::host::{
    CertificateMetrics, ClusterControl, ClusterRequest, ConfigFile, CpuSeconds, LogLevel,
    LongReads, MemoryMetrics, MemorySource, Migration, Migrations, Notify, Process, ProcessInfo,
    Shutdown, SlotMove, UsersFile, ViewRequest, ViewSource, Wake,
};
use crate::persistence::loading::{LoadFailed, Source};
use crate::session::attachment::Waiter;
use crate::session::client::Client;
use crate::session::pubsub::Kind;

/// What becomes of a line of the log.
type Write = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

/// See the module's text.
#[derive(Default)]
pub struct NoHost {
    write: Option<Write>,
    used_memory: AtomicUsize,
    /// Things that were handed over to be freed in the background.
    pub dropped: AtomicUsize,
    memory_balance: AtomicI64,
}

impl NoHost {
    /// One whose log is written in this way.
    pub fn with_log(write: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> NoHost {
        NoHost { write: Some(Box::new(write)), ..NoHost::default() }
    }

    /// Pretends that this many bytes are in use.
    pub fn use_memory(&self, bytes: usize) {
        self.used_memory.store(bytes, Relaxed);
    }

    /// Pretends that the calling thread has allocated this many bytes more, or freed them.
    pub fn allocate(&self, bytes: i64) {
        self.memory_balance.fetch_add(bytes, Relaxed);
    }
}

impl Apply for NoHost {
    fn apply(&self, _: &Config, _: &mut Config, _: &[DirectiveId]) -> Result<(), ApplyError> {
        Ok(())
    }
}

impl Wake for NoHost {
    fn wake(&self, _client: &Client) {}
}

impl Notify for NoHost {
    fn log(&self, level: LogLevel, line: &str) {
        if let Some(write) = &self.write {
            write(level, line);
        }
    }
}

impl MemorySource for NoHost {
    fn drop_later(&self, garbage: Box<dyn Send>) {
        drop(garbage);
        self.dropped.fetch_add(1, Relaxed);
    }

    fn used_memory(&self) -> usize {
        let balance = self.memory_balance.load(Relaxed) as isize;
        self.used_memory.load(Relaxed).saturating_add_signed(balance)
    }

    fn memory_balance(&self) -> i64 {
        self.memory_balance.load(Relaxed)
    }

    fn memory(&self) -> MemoryMetrics {
        MemoryMetrics::default()
    }

    fn purge_memory(&self) {}
}

impl ConfigFile for NoHost {
    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        Err("there is no file".to_string())
    }

    fn write_config_file(&self, _text: &[u8]) -> Result<(), String> {
        Err("there is no file".to_string())
    }
}

impl UsersFile for NoHost {
    fn read_users(&self, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("there is no file".to_string())
    }

    fn write_users(&self, _: &[u8], _: &[u8]) -> Result<(), String> {
        Err("there is no file".to_string())
    }
}

impl Process for NoHost {
    fn cpu_seconds(&self) -> CpuSeconds {
        CpuSeconds::default()
    }

    fn listens_at(&self, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn certificates(&self) -> Vec<CertificateMetrics> {
        Vec::new()
    }

    fn process(&self) -> ProcessInfo {
        ProcessInfo::default()
    }

    fn shut_down(&self, _request: Shutdown, _client: Option<Waiter>) {}

    fn crash(&self, reason: &str) -> ! {
        panic!("{reason}")
    }
}

impl ViewSource for NoHost {
    fn ask_view(&self, _: ViewRequest, _: Option<Waiter>) {}
}

impl LongReads for NoHost {
    fn list_nodes(&self, _: OwnedArguments, _: Waiter, _: u64) {}
}

impl Migrations for NoHost {
    fn move_slots(&self, _: SlotMove, _: Waiter) {}

    fn migrate(&self, _: Migration, _: Waiter) {}
}

impl ClusterControl for NoHost {
    fn ask_cluster(&self, _: ClusterRequest, _: Waiter) {}

    fn publish_to_cluster(&self, _: Kind, _: &[u8], _: &[u8]) {}
}

impl Snapshots for NoHost {
    fn save(&self, _request: SaveRequest) -> Result<Accepted, Refusal> {
        Err(Refusal::InProgress)
    }

    fn save_standing(&self, _: &Engine, _: &StoppedWorld<'_>) -> Result<(), SaveFailed> {
        Err(SaveFailed)
    }

    fn note_emptied(&self, _: &Engine, _changes: u64, _: &StoppedWorld<'_>) -> bool {
        false
    }

    fn save_emptied(&self, _: Waiter) {}
}

impl AppendOnlyFile for NoHost {
    fn rewrite_append_only(&self, _soon: bool) -> RewriteAnswer {
        RewriteAnswer::InProgress
    }

    fn append_only(&self) -> append_only::Metrics {
        append_only::Metrics::default()
    }

    fn reset_append_only_stats(&self) {}

    fn delay_append_only(&self, _delay: Duration) {}
}

impl Loader for NoHost {
    fn load_data(&self, _: &Engine, _: Source, _: &StoppedWorld<'_>) -> Result<(), LoadFailed> {
        Err(LoadFailed)
    }
}

impl Background for NoHost {
    fn run_in_background(&self, _: Waiter, _: BackgroundJob) {}
}
