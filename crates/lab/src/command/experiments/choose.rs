//! Chooses the experiments that a command line names.

use std::fs;

use crate::command::options::RunOptions;
use crate::experiment::error::guess;
use crate::experiment::{Choice, Definition, bundled};

/// The experiments that the options name, each ready to run.
///
/// # Errors
/// What is wrong with the first wrong one, for a reader.
pub(super) fn definitions(options: &RunOptions) -> Result<Vec<Definition>, String> {
    let mut choice = Choice {
        full: options.full,
        repetitions: options.repetitions,
        targets: options.targets.clone(),
        set: Vec::new(),
        encryption: options.encryption(),
    };
    for text in &options.set {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("--set {text}: it is NAME=VALUE"))?;
        choice.set.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let mut definitions = Vec::new();
    for word in &options.experiments {
        for (path, text) in files(word)? {
            let definition = Definition::new(&path, &text, &choice);
            definitions.push(definition.map_err(|error| error.to_string())?);
        }
    }
    Ok(definitions)
}

/// The files that one word means, each with its name in messages.
fn files(word: &str) -> Result<Vec<(String, String)>, String> {
    if word == "all" {
        let all = bundled::BUNDLED.iter();
        return Ok(all.map(|(name, text)| (file_name(name), (*text).to_owned())).collect());
    }
    if let Some(text) = bundled::text(word) {
        return Ok(vec![(file_name(word), text.to_owned())]);
    }
    if word.contains('/') || word.ends_with(".toml") {
        let text = fs::read_to_string(word).map_err(|error| format!("{word}: {error}"))?;
        return Ok(vec![(word.to_owned(), text)]);
    }
    Err(unknown(word))
}

/// The text of a bundled experiment.
///
/// # Errors
/// No experiment has this name.
pub(in crate::command) fn bundled(name: &str) -> Result<&'static str, String> {
    bundled::text(name).ok_or_else(|| unknown(name))
}

fn unknown(word: &str) -> String {
    let guess = guess(word, bundled::BUNDLED.iter().map(|(name, _)| *name));
    format!("there is no experiment '{word}'{guess}; a file of your own is named by its path")
}

fn file_name(name: &str) -> String {
    format!("{name}.toml")
}
