//! The manifests as texts.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::Value;
use tests::server::repository;

use crate::objects::{Objects, list, render, text};

#[test]
fn manifests_are_what_the_chart_says_and_what_kubernetes_takes() -> Result<()> {
    render(&["check"])?;
    // The schemas do find faults.
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("wrong.yaml");
    for (from, to) in
        [("spec:\n  serviceName", "spec:\n  serviceNames"), ("replicas: 1", "replicas: one")]
    {
        let right = fs::read_to_string(repository().join("deploy/kubernetes/single/dunlin.yaml"))?;
        ensure!(right.contains(from));
        fs::write(&file, right.replacen(from, to, 1))?;
        let wrong = render(&["schema", file.to_str().unwrap_or_default()]);
        ensure!(wrong.is_err_and(|error| error.to_string().contains("StatefulSet")), "{to}");
    }
    Ok(())
}

#[test]
fn values_that_make_no_sense_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("own.values.yaml");
    for (values, said) in [
        ("{}", "auth.existingSecret"),
        ("{mode: several, auth: {password: x}}", "mode"),
        ("{auth: {password: x}, tls: {enabled: true}}", "tls.secret"),
        ("{auth: {password: x, passwort: y}}", "passwort"),
        ("{mode: sidecar}", "sidecar."),
        ("{mode: sentinel, auth: {password: x}, persistence: {enabled: false}}", "volume"),
        ("{mode: sentinel, auth: {password: x}, sentinel: {replicas: 2}}", "replicas"),
        ("{mode: cluster, auth: {password: x}}", "cluster.etcd.secret"),
        ("{mode: cluster, auth: {password: x}, cluster: {shards: 0}}", "shards"),
        ("{mode: cluster, auth: {password: x}, readers: {enabled: true}}", "readers"),
    ] {
        fs::write(&file, values)?;
        let rendered = render(&["json", file.to_str().unwrap_or_default()]);
        let error = rendered.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(error.contains(said), "{values}: {error}");
    }
    Ok(())
}

/// The chart takes the image of this version.
#[test]
fn versions_agree() -> Result<()> {
    let chart = fs::read_to_string(repository().join("deploy/helm/dunlin/Chart.yaml"))?;
    let version = env!("CARGO_PKG_VERSION");
    ensure!(chart.contains(&format!("\nappVersion: \"{version}\"\n")), "{chart}");
    ensure!(chart.contains(&format!("\nversion: {version}\n")), "{chart}");
    Ok(())
}

/// No container may do more than it has to, in any of the manifests.
#[test]
fn containers_have_no_rights() -> Result<()> {
    let mut seen = 0;
    for path in [
        "deploy/kubernetes/single",
        "deploy/kubernetes/sentinel",
        "deploy/kubernetes/sidecar",
        "deploy/kubernetes/cluster",
        "tests/golden/kubernetes/full.yaml",
        "tests/golden/kubernetes/sentinel-readers.yaml",
    ] {
        let objects = Objects::read(path.as_ref())?;
        let workloads = objects.of("StatefulSet").chain(objects.of("Deployment"));
        for workload in workloads.chain(objects.of("Job")) {
            let pod = &workload["spec"]["template"]["spec"];
            ensure!(pod["automountServiceAccountToken"] == false, "{path}");
            ensure!(pod["securityContext"]["runAsNonRoot"] == true, "{path}");
            for container in list(&pod["initContainers"]).chain(list(&pod["containers"])) {
                let name = text(&container["name"], "name")?;
                if name == "application" {
                    continue;
                }
                let rights = &container["securityContext"];
                ensure!(rights["readOnlyRootFilesystem"] == true, "{path}: {name}");
                ensure!(rights["allowPrivilegeEscalation"] == false, "{path}: {name}");
                ensure!(rights["capabilities"]["drop"][0] == "ALL", "{path}: {name}");
                ensure!(container["resources"]["requests"]["memory"] != Value::Null);
                seen += 1;
            }
        }
    }
    ensure!(seen >= 10, "{seen} containers");
    Ok(())
}
