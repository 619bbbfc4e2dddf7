//! Goes through every text of a plan, and of an experiment's results.

use std::collections::BTreeMap;

use super::redactor::{Kind, Redactor, WITHHELD, is_secret_name};
use crate::load::{HttpRequest, Operation, Plan, Work};
use crate::record::Recording;
use crate::results::{ExperimentResult, LoadRecording, Run};

/// What to do with each text on the way.
pub(super) struct Visitor<'a> {
    pub(super) redactor: &'a mut Redactor,
    /// Hides known secrets; otherwise looks for texts that look like one.
    pub(super) only_replace: bool,
}

impl Visitor<'_> {
    /// Everything that is published of a plan.
    pub(super) fn plan(&mut self, plan: &mut Plan) {
        if let Some(password) = plan.address.password.take() {
            self.redactor.learn(&password);
        }
        match &mut plan.work {
            Work::Resp(work) => {
                work.operations.iter_mut().for_each(|operation| self.operation(operation));
            }
            Work::Http(work) => work.requests.iter_mut().for_each(|request| self.request(request)),
        }
    }

    fn operation(&mut self, operation: &mut Operation) {
        self.text(Kind::Text, &mut operation.name);
        self.words(&mut operation.arguments);
    }

    fn request(&mut self, request: &mut HttpRequest) {
        self.text(Kind::Text, &mut request.name);
        self.text(Kind::Text, &mut request.path);
        request.body.iter_mut().for_each(|body| self.text(Kind::Text, body));
        for (name, value) in &mut request.headers {
            if is_secret_name(name) {
                self.redactor.learn(value);
                // Without the scheme, too: `Bearer ...`.
                value.split(' ').for_each(|word| self.redactor.learn(word));
                WITHHELD.clone_into(value);
            } else {
                self.text(Kind::Text, value);
            }
        }
    }

    /// Everything that is published of an experiment.
    pub(super) fn experiment(&mut self, experiment: &mut ExperimentResult) {
        self.text(Kind::Text, &mut experiment.file);
        for text in [&mut experiment.name, &mut experiment.title, &mut experiment.question] {
            self.text(Kind::Prose, text);
        }
        experiment.answers.iter_mut().for_each(|text| self.text(Kind::Prose, text));
        for (name, values) in &mut experiment.matrix {
            values.iter_mut().for_each(|value| self.parameter(name, value));
        }
        for target in &mut experiment.targets {
            self.text(Kind::Prose, &mut target.name);
            self.text(Kind::Prose, &mut target.version);
            self.words(&mut target.command);
        }
        for skipped in &mut experiment.skipped {
            self.text(Kind::Prose, &mut skipped.name);
            self.text(Kind::Text, &mut skipped.reason);
        }
        experiment.runs.iter_mut().for_each(|run| self.run(run));
    }

    fn run(&mut self, run: &mut Run) {
        self.text(Kind::Prose, &mut run.target);
        run.parameters.iter_mut().for_each(|(name, value)| self.parameter(name, value));
        self.words(&mut run.command);
        run.loads.iter_mut().for_each(|load| self.load(load));
        for event in &mut run.events {
            self.text(Kind::Text, &mut event.name);
            self.text(Kind::Text, &mut event.outcome);
        }
        let invalid = run.knee.iter_mut().flat_map(|knee| &mut knee.steps);
        invalid.flat_map(|step| &mut step.invalid).for_each(|text| self.text(Kind::Text, text));
        let examples = run.check.iter_mut().flat_map(|check| &mut check.examples);
        examples.for_each(|text| self.text(Kind::Text, text));
        run.failure.iter_mut().for_each(|text| self.text(Kind::Text, text));
    }

    fn load(&mut self, load: &mut LoadRecording) {
        self.text(Kind::Text, &mut load.name);
        load.agents.iter_mut().for_each(|agent| self.text(Kind::Prose, &mut agent.address));
        let Recording { plan, operations, generator, interrupted, .. } = &mut load.recording;
        self.plan(plan);
        for operation in operations {
            self.text(Kind::Text, &mut operation.name);
            let mut errors = BTreeMap::new();
            for (mut kind, count) in std::mem::take(&mut operation.errors) {
                self.text(Kind::Text, &mut kind);
                *errors.entry(kind).or_default() += count;
            }
            operation.errors = errors;
            let mut texts = BTreeMap::new();
            for (mut kind, mut text) in std::mem::take(&mut operation.error_texts) {
                self.text(Kind::Text, &mut kind);
                self.text(Kind::Text, &mut text);
                texts.insert(kind, text);
            }
            operation.error_texts = texts;
        }
        let reasons = generator.invalid.iter_mut().chain(&mut generator.late);
        let reasons = reasons.chain(&mut generator.overloaded);
        reasons.chain(interrupted).for_each(|text| self.text(Kind::Text, text));
    }

    /// A value of a swept parameter: the parameter may be one for passwords.
    fn parameter(&mut self, name: &str, value: &mut String) {
        if is_secret_name(name) && !value.is_empty() && !self.only_replace {
            self.redactor.learn(value);
        }
        self.text(Kind::Text, value);
    }

    fn text(&mut self, kind: Kind, text: &mut String) {
        // A secret of several words is found as a whole only before it is looked at.
        self.redactor.replace(text);
        if !self.only_replace {
            self.redactor.look(kind, text);
        }
    }

    fn words(&mut self, words: &mut Vec<String>) {
        if self.only_replace {
            words.iter_mut().for_each(|word| self.redactor.replace(word));
        } else {
            *words = self.redactor.words(words);
        }
    }
}
