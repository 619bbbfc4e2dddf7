//! The disk of a [`super::Rig`]'s engine: files, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use engine::engine::Engine;
use engine::engine::storage::{AppendOnlyFile, Background, BackgroundJob, Loader, Snapshots};
use engine::files::append_only::{Metrics, RewriteAnswer};
use engine::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::persistence::loading::{LoadFailed, Source};
use engine::session::attachment::Waiter;
use store::gate::StoppedWorld;

use crate::aof::append_only::AppendOnly;
use crate::rdb::saver::Saver;

/// See the module's text.
pub(super) struct Files {
    pub(super) saver: Arc<Saver>,
    pub(super) append_only: Arc<AppendOnly>,
}

impl Snapshots for Files {
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

impl AppendOnlyFile for Files {
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

impl Loader for Files {
    fn load_data(&self, _: &Engine, _: Source, _: &StoppedWorld<'_>) -> Result<(), LoadFailed> {
        Err(LoadFailed)
    }
}

impl Background for Files {
    fn run_in_background(&self, _: Waiter, _: BackgroundJob) {}
}
