//! A replica beside an application, of a primary that is hosted elsewhere and speaks TLS alone:
//! `deploy/kubernetes/sidecar`.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use tests::certificates::Encryption;
use tests::client::Client;

use crate::cluster::Cluster;
use crate::objects::Objects;

const PASSWORD: &str = "hosted";

/// What the application in a pod gets from its replica over HTTP.
fn read(cluster: &Cluster, pod: &str, path: &str) -> Result<String> {
    let program = format!(
        "import urllib.request as r; print(r.urlopen('http://localhost:8379{path}', timeout=5).read().decode())"
    );
    let (code, said) = cluster.pod(pod)?.exec("application", &["python3", "-c", &program])?;
    ensure!(code, "{said}");
    Ok(said.trim().to_owned())
}

#[test]
fn an_application_reads_from_the_replica_in_its_pod() -> Result<()> {
    let Some(cluster) = Cluster::make()? else { return Ok(()) };
    let encryption = Encryption::make()?;
    let certificates = encryption.certificates();
    // The hosted primary, under its name, with a certificate for it.
    let identity = certificates.issue("hosted", "DNS:redis.example.com,IP:10.77.0.1", 9)?;
    let text = |path: &Path| path.display().to_string();
    let hosted = cluster.start_outside(&[
        ("port", "0"),
        ("tls-port", "6380"),
        ("bind", "10.77.0.1"),
        ("requirepass", PASSWORD),
        ("tls-auth-clients", "no"),
        ("tls-cert-file", &text(&identity.certificate)),
        ("tls-key-file", &text(&identity.key)),
        ("tls-ca-cert-file", &text(&certificates.authority())),
    ])?;
    cluster.set_name("redis.example.com", hosted.address);
    let place = (hosted.address, 6380).into();
    let connect = || -> Result<Client> {
        let mut client = Client::connect_at(place, Some(encryption.config()))?;
        let reply = client.call(&["AUTH", PASSWORD])?;
        ensure!(!reply.is_error(), "{reply:?}");
        Ok(client)
    };
    cluster.wait("the hosted primary", || Ok(connect().is_ok()))?;
    let mut client = connect()?;
    client.call(&["SET", "known-key", "first"])?;
    let authority = fs::read(certificates.authority())?;
    cluster.set_secret("dunlin-primary", &[("password", PASSWORD.as_bytes())])?;
    cluster.set_secret("dunlin-primary-tls", &[("ca.crt", &authority)])?;
    let mut objects = Objects::read("deploy/kubernetes/sidecar".as_ref())?;
    // An application that does nothing by itself.
    let pod = &mut objects.one_mut("Deployment")?["spec"]["template"]["spec"];
    let name = pod["containers"][0]["name"].as_str().context("a name")?.to_owned();
    ensure!(name == "application", "{name}");
    pod["containers"][0]["command"] = vec!["sleep", "300"].into();
    cluster.apply(&objects)?;
    cluster.wait_until_ready()?;
    // The application has started after its replica had the data.
    let pods = cluster.pod_names();
    ensure!(pods.len() == 2, "{pods:?}");
    for pod in &pods {
        let started = cluster.events(&format!("{pod}: "));
        let at = |what: &str| started.iter().position(|own| own.ends_with(what));
        let (replica, ready, application) =
            (at("dunlin starts"), at("dunlin has started"), at("application starts"));
        ensure!(replica < ready && ready < application && replica.is_some(), "{started:?}");
        ensure!(read(&cluster, pod, "/v1/keys/known-key")? == "first");
    }
    // Nobody else reaches it.
    let outside = Client::connect_at((cluster.pod(&pods[0])?.address, 6379).into(), None);
    ensure!(outside.is_err());
    client.call(&["SET", "known-key", "second"])?;
    cluster
        .wait("the write", || Ok(read(&cluster, &pods[1], "/v1/keys/known-key")? == "second"))?;
    // Killed, it is back with the data, and the application stays.
    cluster.pod(&pods[0])?.kill("dunlin")?;
    cluster.wait("a restart", || {
        let pod = cluster.pod(&pods[0])?;
        Ok(pod.container("dunlin")?.restarts.load(Ordering::Relaxed) == 1
            && read(&cluster, &pods[0], "/v1/keys/known-key").is_ok_and(|own| own == "second"))
    })?;
    // The primary is away: what was read last is still there, and the pod stays ready.
    drop(hosted);
    ensure!(read(&cluster, &pods[1], "/v1/keys/known-key")? == "second");
    ensure!(cluster.pod(&pods[1])?.is_ready(), "{}", cluster.report());
    // The replica ends after the application.
    cluster.pod(&pods[1])?.end();
    cluster.wait_until_gone(&pods[1])?;
    let ended = cluster.events(&format!("{}: ", pods[1]));
    let at = |what: &str| ended.iter().position(|own| own.contains(what));
    ensure!(at("application ended") < at("dunlin ended with exit status: 0"), "{ended:?}");
    ensure!(at("dunlin ended with exit status: 0").is_some(), "{}", cluster.report());
    cluster.check()
}
