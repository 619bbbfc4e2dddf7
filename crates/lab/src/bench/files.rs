//! The files that `dunlin bench` writes. They are those of `dunlin lab`, for an experiment whose
//! matrix has one parameter, the test.

use std::collections::BTreeMap;
use std::path::Path;

use super::options::Options;
use crate::experiment::machine;
use crate::record::Recording;
use crate::redact::{Redactor, is_secret_name};
use crate::report::hlog::hlog;
use crate::results::{ExperimentResult, FORMAT, LoadRecording, Results, Run, TargetInfo};

/// Writes the requested files.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(options: &Options, recordings: &[(String, Recording)]) -> Result<(), String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    if options.json.is_none() && options.hlog.is_none() {
        return Ok(());
    }
    let results = results(options, recordings);
    if let Some(path) = &options.json {
        results.write(path).map_err(|error| failed(path, error))?;
    }
    let loads = results.experiments.iter().flat_map(|experiment| &experiment.runs);
    let loads: Vec<&LoadRecording> = loads.flat_map(|run| &run.loads).collect();
    if let (Some(path), [load]) = (&options.hlog, &loads[..]) {
        let written = hlog(&load.name, &load.recording).and_then(|log| std::fs::write(path, log));
        written.map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// The recordings as the results of an experiment.
fn results(options: &Options, recordings: &[(String, Recording)]) -> Results {
    let address = &options.address;
    let place = match (&options.urls[..], &address.socket) {
        ([url, ..], _) => format!("{}:{}", url.host, url.port),
        (_, Some(path)) => path.clone(),
        _ => format!("{}:{}", address.host, address.port),
    };
    let titles: Vec<String> = recordings.iter().map(|(title, _)| title.clone()).collect();
    let started_unix_ms =
        recordings.first().map_or_else(base::clock::now_ms, |(_, one)| one.started_unix_ms);
    let run = |(title, recording): &(String, Recording)| Run {
        target: place.clone(),
        parameters: BTreeMap::from([("test".to_owned(), title.clone())]),
        repetition: 0,
        started_unix_ms: recording.started_unix_ms,
        command: Vec::new(),
        loads: vec![LoadRecording {
            name: title.clone(),
            recording: recording.clone(),
            agents: Vec::new(),
        }],
        samples: Vec::new(),
        events: Vec::new(),
        knee: None,
        check: None,
        figures: BTreeMap::new(),
        failure: None,
    };
    let target = TargetInfo {
        name: place.clone(),
        version: String::new(),
        command: Vec::new(),
        cpus: String::new(),
        limits: String::new(),
    };
    let mut results = Results {
        format: FORMAT,
        started_unix_ms,
        machine: machine::describe(),
        size: "quick".to_owned(),
        experiments: vec![ExperimentResult {
            name: "bench".to_owned(),
            title: "dunlin bench".to_owned(),
            question: "How fast does this server answer?".to_owned(),
            answers: None,
            file: String::new(),
            matrix: vec![("test".to_owned(), titles)],
            targets: vec![target],
            skipped: Vec::new(),
            runs: recordings.iter().map(run).collect(),
            views: Vec::new(),
            columns: Vec::new(),
        }],
    };
    // The credentials of the command line may be in the server's words.
    let mut secrets = Redactor::default();
    secrets.learn_words(&options.command);
    address.password.iter().for_each(|password| secrets.learn(password));
    options.headers.iter().filter(|(name, _)| is_secret_name(name)).for_each(|(_, value)| {
        value.split(' ').for_each(|word| secrets.learn(word));
    });
    results.experiments.iter_mut().for_each(|experiment| secrets.experiment(experiment));
    results
}
