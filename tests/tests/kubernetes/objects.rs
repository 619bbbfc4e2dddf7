//! The objects of rendered manifests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tests::server::repository;

/// All objects of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Objects(Vec<Value>);

/// Runs scripts/render-kubernetes.
///
/// # Errors
/// It fails; the text is what it says.
pub(crate) fn render(arguments: &[&str]) -> Result<String> {
    let script = repository().join("scripts/render-kubernetes");
    let output = Command::new(script).args(arguments).current_dir(repository()).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

impl Objects {
    /// Those of a kustomization or of a file of manifests, from the root of the repository.
    pub(crate) fn read(path: &Path) -> Result<Objects> {
        let path = path.to_str().context("a path of text")?;
        let objects: Vec<Value> = serde_json::from_str(&render(&["json", path])?)?;
        ensure!(!objects.is_empty(), "{path} has no objects");
        Ok(Objects(objects))
    }

    /// All of a kind.
    pub(crate) fn of<'o>(&'o self, kind: &str) -> impl Iterator<Item = &'o Value> + use<'o> {
        let kind = kind.to_owned();
        self.0.iter().filter(move |own| own["kind"] == *kind)
    }

    /// The one of a kind.
    pub(crate) fn one(&self, kind: &str) -> Result<&Value> {
        self.of(kind).next().with_context(|| format!("no {kind}"))
    }

    /// The one of a kind, to be changed as an operator would.
    pub(crate) fn one_mut(&mut self, kind: &str) -> Result<&mut Value> {
        let found = self.0.iter_mut().find(|own| own["kind"] == kind);
        found.with_context(|| format!("no {kind}"))
    }

    /// Changes arguments of a container: an option, and its value.
    pub(crate) fn set_option(&mut self, kind: &str, option: &str, value: &str) -> Result<()> {
        let template = &mut self.one_mut(kind)?["spec"]["template"]["spec"];
        let arguments = template["containers"][0]["args"].as_array_mut().context("arguments")?;
        let at = arguments.iter().position(|own| own == option).context("such an option")?;
        *arguments.get_mut(at + 1).context("a value")? = value.into();
        Ok(())
    }
}

/// A text in an object.
pub(crate) fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str> {
    value.as_str().with_context(|| format!("no {what}: {value}"))
}

/// The elements of a list, of which there may be none.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Seconds and counts of a probe, or what Kubernetes takes if it does not say.
pub(crate) fn number(value: &Value, usual: u64) -> u64 {
    value.as_u64().unwrap_or(usual)
}

/// Whether all labels of a selector are among those of a pod.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object().into_iter().flatten();
    wanted.clone().count() > 0 && wanted.into_iter().all(|(name, value)| labels[name] == *value)
}

/// Replaces `$(NAME)` by the value of a variable.
pub(crate) fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut result = text.to_owned();
    for (name, value) in variables {
        result = result.replace(&format!("$({name})"), value);
    }
    result
}
