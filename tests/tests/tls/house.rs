//! A server with certificates, and clients of all kinds.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use resp::client::{ReplyParser, Value, encode_command};
use rustls::ClientConfig;
use tests::certificates::{Certificates, Identity};
use tests::client::Client;
use tests::observe::{PATIENCE, wait_until};
use tests::peers;
use tests::server::{Server, Target, free_port};
use tls::client::{IdentityFiles, TrustFiles, Verification, server_name};
use tls::{ClientSettings, Stream};

/// A server that speaks TLS at a port of its own, besides the open one that tests look through.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) port: u16,
    pub(crate) https: u16,
    pub(crate) certificates: Certificates,
    pub(crate) client: Identity,
}

/// The options that name a server's files.
pub(crate) fn files(certificates: &Certificates) -> Vec<(&'static str, String)> {
    let text = |path: &Path| path.display().to_string();
    vec![
        ("tls-cert-file", text(&certificates.server())),
        ("tls-key-file", text(&certificates.key())),
        ("tls-ca-cert-file", text(&certificates.authority())),
    ]
}

impl House {
    pub(crate) fn open(options: &[(&str, &str)]) -> Result<House> {
        House::of(Target::Dunlin, options)
    }

    pub(crate) fn of(target: Target, options: &[(&str, &str)]) -> Result<House> {
        House::with(target, Certificates::make()?, options)
    }

    pub(crate) fn with(
        target: Target,
        certificates: Certificates,
        options: &[(&str, &str)],
    ) -> Result<House> {
        let client = certificates.issue("client", "DNS:client", 9)?;
        let named = files(&certificates);
        // Another process may take a port between the search for it and its use.
        for attempt in 1.. {
            let (port, https) = (free_port()?, free_port()?);
            let ports = [("tls-port", port.to_string()), ("https-port", https.to_string())];
            // Only Dunlin has the second.
            let count = if target == Target::Dunlin { 2 } else { 1 };
            let mut all: Vec<(&str, &str)> =
                ports[..count].iter().map(|(name, value)| (*name, value.as_str())).collect();
            all.extend(named.iter().map(|(name, value)| (*name, value.as_str())));
            all.extend_from_slice(options);
            match Server::start(target, &all) {
                Ok(server) => return Ok(House { server, port, https, certificates, client }),
                Err(error) if attempt < 5 && error.to_string().contains("in use") => {}
                Err(error) => return Err(error),
            }
        }
        bail!("no port could be had")
    }

    /// What a client of this server goes by.
    pub(crate) fn settings(&self, own: Option<&Identity>) -> ClientSettings {
        ClientSettings {
            trust: TrustFiles { file: Some(self.certificates.authority()), directory: None },
            identity: own.map(|own| IdentityFiles {
                certificate: own.certificate.clone(),
                key: own.key.clone(),
                password: Vec::new(),
            }),
            verification: Verification::Name,
            ..ClientSettings::default()
        }
    }

    /// The same, read.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>> {
        read(&self.settings(Some(&self.client)))
    }

    /// A client with the usual certificate.
    pub(crate) fn connect(&self) -> Result<Caller> {
        Caller::connect(self.port, self.config()?)
    }

    /// A client with this certificate, or with none.
    pub(crate) fn connect_as(&self, own: Option<&Identity>) -> Result<Caller> {
        Caller::connect(self.port, read(&self.settings(own))?)
    }

    /// Waits until the server has logged this.
    pub(crate) fn logs(&self, text: &str) -> Result<()> {
        let logged = wait_until(text, || Ok(self.server.log().contains(text)));
        logged.with_context(|| self.server.log_tail())
    }

    /// The open connection.
    pub(crate) fn control(&self) -> Result<Client> {
        self.server.connect()
    }

    /// The options of redis-cli and its like.
    pub(crate) fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(peers::program(program));
        command.args(["-p", &self.port.to_string(), "--tls"]);
        command.arg("--cacert").arg(self.certificates.authority());
        command.arg("--cert").arg(&self.client.certificate).arg("--key").arg(&self.client.key);
        command
    }

    /// openssl as a client, with these options besides.
    pub(crate) fn openssl(&self, options: &[&str]) -> Command {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &format!("127.0.0.1:{}", self.port)]);
        command.arg("-CAfile").arg(self.certificates.authority()).args(["-verify_return_error"]);
        command.arg("-cert").arg(&self.client.certificate).arg("-key").arg(&self.client.key);
        command.args(options);
        command
    }
}

pub(crate) fn read(settings: &ClientSettings) -> Result<Arc<ClientConfig>> {
    Ok(settings.read().map_err(anyhow::Error::msg)?.config)
}

/// Runs a program with this input.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Result<Output> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().with_context(|| format!("{command:?}"))?;
    let mut to = child.stdin.take().context("a pipe")?;
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // Who has ended takes nothing.
        let _ = to.write_all(&input);
    });
    let output = child.wait_with_output()?;
    let _ = writer.join();
    Ok(output)
}

/// Reads what comes next.
pub(crate) fn read_some(stream: &mut Stream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A client that speaks RESP over TLS.
pub(crate) struct Caller {
    pub(crate) stream: Stream,
    input: Vec<u8>,
    parser: ReplyParser,
}

impl Caller {
    pub(crate) fn connect(port: u16, config: Arc<ClientConfig>) -> Result<Caller> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let name = server_name("127.0.0.1").map_err(anyhow::Error::msg)?;
        let begun = Instant::now();
        let stream = Stream::encrypt(socket, config, name, &|| begun.elapsed() >= PATIENCE)?;
        Ok(Caller { stream, input: Vec::new(), parser: ReplyParser::new() })
    }

    pub(crate) fn send(&mut self, command: &str) -> Result<()> {
        let mut bytes = Vec::new();
        let words: Vec<&str> = command.split(' ').collect();
        encode_command(words.iter(), &mut bytes);
        self.stream.write_all(&bytes)?;
        Ok(self.stream.flush()?)
    }

    pub(crate) fn receive(&mut self) -> Result<Value> {
        loop {
            if let Some((value, length)) = self.parser.next(&self.input)? {
                self.input.drain(..length);
                return Ok(value);
            }
            let mut piece = [0; 64 * 1024];
            let count = read_some(&mut self.stream, &mut piece)?;
            ensure!(count > 0, "the server has closed the connection");
            self.input.extend_from_slice(&piece[..count]);
        }
    }

    pub(crate) fn call(&mut self, command: &str) -> Result<Value> {
        self.send(command)?;
        self.receive()
    }

    /// Waits until the server ends the connection.
    pub(crate) fn is_ended(&mut self) -> bool {
        let mut piece = [0; 64 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }
}

/// Whether a client is served. In TLS 1.3 one that is refused learns it after its handshake.
pub(crate) fn is_served(caller: Result<Caller>) -> bool {
    let pong = caller.and_then(|mut caller| caller.call("PING"));
    pong.is_ok_and(|value| value == Value::Simple(b"PONG".to_vec()))
}

pub(crate) fn simple(text: &str) -> Value {
    Value::Simple(text.as_bytes().to_vec())
}

pub(crate) fn bulk(text: &[u8]) -> Value {
    Value::Bulk(text.to_vec())
}

/// A pause between two pieces of something that is sent slowly: it only makes it likelier that they
/// arrive apart.
pub(crate) const APART: Duration = Duration::from_millis(1);
