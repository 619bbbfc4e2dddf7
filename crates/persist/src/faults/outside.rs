//! The world outside of a [`super::Rig`]'s engine: files, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use config::{Apply, ApplyError, Config, DirectiveId};
use engine::engine::Engine;
use engine::engine::storage::{AppendOnlyFile, Background, BackgroundJob, Loader, Snapshots};
use engine::files::append_only::{Metrics, RewriteAnswer};
use engine::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::host::{
    CertificateMetrics, ConfigFile, CpuSeconds, LogLevel, LongReads, MemoryMetrics, MemorySource,
    Migration, Migrations, Notify, Process, ProcessInfo, Shutdown, UsersFile, ViewRequest,
    ViewSource, Wake,
};
use engine::persistence::loading::{LoadFailed, Source};
use engine::session::attachment::Waiter;
use engine::session::client::Client;
use resp::args::OwnedArguments;
use store::gate::StoppedWorld;

use crate::aof::append_only::AppendOnly;
use crate::rdb::saver::Saver;
use process::log::Log;

/// See the module's text.
pub(super) struct Outside {
    pub(super) log: Arc<Log>,
    pub(super) saver: Arc<Saver>,
    pub(super) append_only: Arc<AppendOnly>,
}

impl Apply for Outside {
    fn apply(&self, _: &Config, _: &mut Config, _: &[DirectiveId]) -> Result<(), ApplyError> {
        Ok(())
    }
}

impl Wake for Outside {
    fn wake(&self, _: &Client) {}
}

impl Notify for Outside {
    fn log(&self, level: LogLevel, line: &str) {
        self.log.write(level, line);
    }
}

impl MemorySource for Outside {
    fn drop_later(&self, garbage: Box<dyn Send>) {
        drop(garbage);
    }

    fn used_memory(&self) -> usize {
        0
    }

    fn memory_balance(&self) -> i64 {
        0
    }

    fn memory(&self) -> MemoryMetrics {
        MemoryMetrics::default()
    }

    fn purge_memory(&self) {}
}

impl ConfigFile for Outside {
    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        Err("there is no file".to_owned())
    }

    fn write_config_file(&self, _: &[u8]) -> Result<(), String> {
        Err("there is no file".to_owned())
    }
}

impl UsersFile for Outside {
    fn read_users(&self, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("there is no file".to_string())
    }

    fn write_users(&self, _: &[u8], _: &[u8]) -> Result<(), String> {
        Err("there is no file".to_string())
    }
}

impl Process for Outside {
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

    fn shut_down(&self, _: Shutdown, _: Option<Waiter>) {}

    fn crash(&self, reason: &str) -> ! {
        panic!("{reason}")
    }
}

impl ViewSource for Outside {
    fn ask_view(&self, _: ViewRequest, _: Option<Waiter>) {}
}

impl LongReads for Outside {
    fn list_nodes(&self, _: OwnedArguments, _: Waiter) {}
}

impl Migrations for Outside {
    fn migrate(&self, _: Migration, _: Waiter) {}
}

impl Snapshots for Outside {
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal> {
        self.saver.save(request, &self.saver)
    }

    fn save_standing(&self, engine: &Engine, stopped: &StoppedWorld<'_>) -> Result<(), SaveFailed> {
        self.saver.save_standing(engine, stopped)
    }

    fn note_emptied(&self, engine: &Engine, changes: u64, stopped: &StoppedWorld<'_>) -> bool {
        self.saver.note_emptied(engine, changes, stopped)
    }

    fn save_emptied(&self, _: Waiter) {}
}

impl AppendOnlyFile for Outside {
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer {
        self.append_only.rewrite(soon)
    }

    fn append_only(&self) -> Metrics {
        self.append_only.metrics()
    }

    fn reset_append_only_stats(&self) {
        self.append_only.reset_stats();
    }

    fn delay_append_only(&self, delay: Duration) {
        self.append_only.journal().set_write_delay(delay);
    }
}

impl Loader for Outside {
    fn load_data(&self, _: &Engine, _: Source, _: &StoppedWorld<'_>) -> Result<(), LoadFailed> {
        Err(LoadFailed)
    }
}

impl Background for Outside {
    fn run_in_background(&self, _: Waiter, _: BackgroundJob) {}
}
