//! Keeps secrets out of everything that is published: results, reports, charts, logs.
//!
//! [`Redactor`] is the one place that knows what a secret looks like: the word after `AUTH` or
//! `CONFIG SET requirepass`, the value of `--requirepass`, of `password = ...`, of `X-Auth-Token:
//! ...`, of `?token=...`, and the person in `redis://person:password@host`. A secret that it has
//! hidden once, or was told of, is hidden wherever else it appears: in an error that a server
//! repeats, or in a value of the file for a placeholder. It hides a little too much rather than too
//! little.

mod lexer;
mod redactor;
mod visit;

use crate::load::Plan;
use crate::results::{ExperimentResult, Results};
use visit::Visitor;

pub(crate) use redactor::{Redactor, is_secret_name};

/// Hides all secrets of results that are about to be written or shown.
pub(crate) fn results(results: &mut Results) {
    for experiment in &mut results.experiments {
        Redactor::default().experiment(experiment);
    }
}

/// The same plan for recordings: without its credentials, and without any secret in its requests.
pub(crate) fn plan(plan: &Plan) -> Plan {
    let mut redactor = Redactor::default();
    let mut plan = plan.clone();
    // The first look finds secrets, the second hides them wherever they are.
    for only_replace in [false, true] {
        Visitor { redactor: &mut redactor, only_replace }.plan(&mut plan);
    }
    plan
}

impl Redactor {
    /// Hides a plan's credentials and the secrets in its requests, wherever they appear.
    pub(crate) fn learn_plan(&mut self, plan: &Plan) {
        Visitor { redactor: self, only_replace: false }.plan(&mut plan.clone());
    }

    /// Hides all secrets of an experiment, in all of its parts.
    pub(crate) fn experiment(&mut self, experiment: &mut ExperimentResult) {
        for only_replace in [false, true] {
            Visitor { redactor: self, only_replace }.experiment(experiment);
        }
    }
}
