//! `dunlin health`: whether a server serves, for the health checks of containers and scripts.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use lab::bench::{redis_address, unknown_option};
use lab::load::{Address, Encryption};
use lab::targets::connection::{Connection, Endpoint, in_words};
use resp::client::Value;

use crate::environment::Environment;
use crate::print::print;

pub(crate) const USAGE: &str = "\
Asks a server whether it serves. The exit code is 0 if it does, 1 if not, and 2 if an option is wrong.

Usage: dunlin health [OPTIONS]

  -h HOST, -p PORT    where it is; 127.0.0.1 and 6379, or 8379 with --http, if not given
  -u URL              the same, as redis://user:password@host:port; rediss:// encrypts
  -a PASSWORD         its password; better in the variable REDISCLI_AUTH
  --user NAME         the user whose password that is
  --http              asks over HTTP (/readyz), which needs no password
  --live              contents itself with a server that answers: it may be loading its data, or want a
                      password (over HTTP: /healthz)
  --tls               encrypts; --cacert FILE has the authorities that are believed, --cert FILE and
                      --key FILE are this client's certificate, --insecure believes any server
  --timeout SECONDS   how long each step may take; 3 if not given
  -q                  says nothing

Without these options it asks the server of its own container: the variables from which `dunlin
container` reads password, port and certificates say where that is.
";

/// A wrong command line.
const MISTAKE: u8 = 2;
const HTTP_PORT: u16 = 8379;

/// What the user wants.
struct Options {
    address: Address,
    /// The port, if it was given.
    port: Option<u16>,
    http: bool,
    live: bool,
    quiet: bool,
    patience: Duration,
}

/// Runs the command with these arguments.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    if arguments == ["--help"] {
        return print(USAGE);
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(mistake) => {
            complain(&format!("dunlin health: {mistake}\n\n{USAGE}"));
            return ExitCode::from(MISTAKE);
        }
    };
    let asked = if options.http { options.ask_http() } else { options.ask_resp() };
    match asked {
        Ok(_) if options.quiet => ExitCode::SUCCESS,
        Ok(answer) => print(&format!("{answer}\n")),
        Err(problem) => {
            if !options.quiet {
                let Address { host, port, .. } = &options.address;
                complain(&format!("dunlin health: {host}:{port}: {problem}\n"));
            }
            ExitCode::FAILURE
        }
    }
}

fn complain(text: &str) {
    // If this fails, nobody can be told.
    let _ = io::stderr().write_all(text.as_bytes());
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut own = Options {
            address: Address::default(),
            port: None,
            http: false,
            live: false,
            quiet: false,
            patience: Duration::from_secs(3),
        };
        own.address.password = std::env::var("REDISCLI_AUTH").ok();
        let (mut encryption, mut encrypts, mut names_place) = (Encryption::default(), false, false);
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{word}: what?"));
            match word.as_str() {
                "--http" => own.http = true,
                "--live" => own.live = true,
                "--tls" => encrypts = true,
                "--insecure" => encryption.insecure = true,
                "-q" => own.quiet = true,
                "-h" => own.address.host.clone_from(value()?),
                "-p" => own.port = Some(value()?.parse().map_err(|_| "-p takes a port")?),
                "-u" => {
                    let password = own.address.password.take();
                    own.address = redis_address(value()?)?;
                    own.port = Some(own.address.port);
                    own.address.password = own.address.password.take().or(password);
                    encrypts |= own.address.encryption.is_some();
                }
                "-a" => own.address.password = Some(value()?.clone()),
                "--user" => own.address.user = Some(value()?.clone()),
                "--cacert" => encryption.authority = Some(value()?.clone()),
                "--cert" => encryption.certificate = Some(value()?.clone()),
                "--key" => encryption.key = Some(value()?.clone()),
                "--timeout" => own.patience = seconds(value()?)?,
                _ => return Err(unknown_option(word)),
            }
            names_place |= matches!(word.as_str(), "-h" | "-p" | "-u" | "--tls");
        }
        if encryption != Encryption::default() && !encrypts {
            return Err("certificates are for --tls".to_owned());
        }
        own.address.encryption = encrypts.then_some(encryption);
        if !names_place {
            own.take_from_environment()?;
        }
        let usual = if own.http { HTTP_PORT } else { own.address.port };
        own.address.port = own.port.unwrap_or(usual);
        Ok(own)
    }

    /// Asks the server that `dunlin container` runs beside this.
    fn take_from_environment(&mut self) -> Result<(), String> {
        let environment = Environment::read().map_err(|error| error.to_string())?;
        let value = |name: &str| environment.value(name);
        let port = |name: &str| value(name).and_then(|text| text.parse::<u16>().ok());
        if self.address.password.is_none() {
            self.address.password = value("requirepass");
        }
        if self.http {
            self.port = port("http-port");
            return Ok(());
        }
        self.port = port("port").filter(|&port| port != 0);
        if port("port") == Some(0) {
            self.port = port("tls-port");
            // A server asks for certificates of its own authority; this is the same machine.
            self.address.encryption = Some(Encryption {
                authority: value("tls-ca-cert-file").or_else(|| value("tls-ca-cert-dir")),
                certificate: value("tls-cert-file"),
                key: value("tls-key-file"),
                key_password: value("tls-key-file-pass"),
                insecure: true,
                ..Encryption::default()
            });
        }
        Ok(())
    }

    fn endpoint(&self) -> Endpoint {
        let Address { host, port, encryption, .. } = self.address.clone();
        Endpoint { host, port, password: None, encryption }
    }

    /// Returns what the server answers.
    fn ask_resp(&self) -> Result<String, String> {
        let connection = self.endpoint().connect(self.patience);
        let mut connection = connection.map_err(|error| error.to_string())?;
        if let Some(password) = &self.address.password {
            let answer = match &self.address.user {
                Some(user) => call(&mut connection, &["AUTH", user, password])?,
                None => call(&mut connection, &["AUTH", password])?,
            };
            // A server without a password says that it needs none.
            let wrong = |text: &[u8]| text.starts_with(b"WRONGPASS");
            if let Value::Error(text) = &answer
                && wrong(text)
                && !self.live
            {
                return Err(in_words(&answer));
            }
        }
        match call(&mut connection, &["PING"])? {
            answer @ Value::Simple(_) => Ok(in_words(&answer)),
            answer if self.live => Ok(in_words(&answer)),
            answer => Err(in_words(&answer)),
        }
    }

    fn ask_http(&self) -> Result<String, String> {
        let text = |error: io::Error| error.to_string();
        let host = &self.address.host;
        let stream = self.endpoint().open_stream(self.patience, Vec::new());
        let mut stream = stream.map_err(text)?;
        let path = if self.live { "/healthz" } else { "/readyz" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(text)?;
        let mut answer = Vec::new();
        // The status line is all that counts, whatever happens to the connection after it.
        let mut piece = [0; 1024];
        while !answer.contains(&b'\n') {
            match stream.read(&mut piece).map_err(text)? {
                0 => return Err("the connection was closed without an answer".to_owned()),
                length => answer.extend_from_slice(&piece[..length]),
            }
            if answer.len() > 8 * piece.len() {
                return Err("the answer is not one of HTTP".to_owned());
            }
        }
        let line = String::from_utf8_lossy(&answer);
        let line = line.lines().next().unwrap_or_default().trim_end();
        match line.strip_prefix("HTTP/1.1 ") {
            Some(status) if status.starts_with("200") => Ok(line.to_owned()),
            Some(_) => Err(format!("{path} answers {line}")),
            None => Err("the answer is not one of HTTP".to_owned()),
        }
    }
}

fn call(connection: &mut Connection, words: &[&str]) -> Result<Value, String> {
    connection.call(words).map_err(|error| error.to_string())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "--timeout takes seconds".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).ok().filter(|own| !own.is_zero()).ok_or_else(wrong)
}
