//! `dunlin tls dev`: certificates for trials.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::print::print;

pub(crate) const USAGE: &str = "\
Usage: dunlin tls dev DIRECTORY [NAME...]

Makes certificates for trials: those of an authority, of a server and of a client. The server's is
for localhost, 127.0.0.1 and ::1, and for the names and addresses given. They hold for a year.
";

pub(crate) fn run(words: &[String]) -> ExitCode {
    let [command, directory, names @ ..] = words else { return refuse(USAGE) };
    if command != "dev" || directory.starts_with('-') {
        return refuse(USAGE);
    }
    let directory = Path::new(directory);
    if let Err(error) = tls::dev::make(directory, names) {
        return refuse(&format!("dunlin tls dev: {error}\n"));
    }
    let file = |name: &str| directory.join(name).display().to_string();
    let [authority, certificate, key] = ["ca.crt", "server.crt", "server.key"].map(file);
    let [own_certificate, own_key] = ["client.crt", "client.key"].map(file);
    print(&format!(
        "A server with them:\n  dunlin --tls-port 6380 --tls-cert-file {certificate} \
         --tls-key-file {key} --tls-ca-cert-file {authority}\nA client of it:\n  redis-cli \
         -p 6380 --tls --cacert {authority} --cert {own_certificate} --key {own_key}\n"
    ))
}

fn refuse(text: &str) -> ExitCode {
    // If this fails, nobody can be told.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::FAILURE
}
