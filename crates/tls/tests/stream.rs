//! A client's connection to servers that are slow, or are none of TLS.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::{ClientConfig, ServerConfig, ServerConnection};
use tls::client::{TrustFiles, server_name};
use tls::server::IdentityFiles;
use tls::{ClientCertificates, ClientSettings, ServerSettings, Stream};

/// What both ends go by.
fn configs(directory: &Path) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    tls::dev::make(directory, &[]).unwrap();
    let file = |name: &str| directory.join(name);
    let server = ServerSettings {
        identity: IdentityFiles {
            certificate: file("server.crt"),
            key: file("server.key"),
            password: Vec::new(),
        },
        clients: ClientCertificates::None,
        ..ServerSettings::default()
    };
    let trust = TrustFiles { file: Some(file("ca.crt")), directory: None };
    let client = ClientSettings { trust, ..ClientSettings::default() };
    (server.read().unwrap().plain, client.read().unwrap().config)
}

/// A server for one connection, and a socket to it.
fn served<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (TcpStream, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || serve(listener.accept().unwrap().0));
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    (socket, server)
}

/// Why a handshake fails whose time is over when that was asked so many times.
fn failure(socket: TcpStream, config: &Arc<ClientConfig>, times: usize) -> std::io::Error {
    let asked = Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() >= times
    };
    let name = server_name("localhost").unwrap();
    Stream::encrypt(socket, Arc::clone(config), name, &is_over).unwrap_err()
}

#[test]
fn a_server_that_speaks_no_tls_is_called_so() {
    let directory = tempfile::tempdir().unwrap();
    let (_, config) = configs(directory.path());
    let hint = "most likely the server does not speak TLS at this port";
    for (answer, stays) in [("", true), ("", false), ("-ERR unknown command\r\n", false)] {
        let (socket, server) = served(move |mut socket| {
            let mut hello = [0; 100];
            socket.read_exact(&mut hello).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
            // Until the client has gone.
            stays.then(|| socket.read_to_end(&mut Vec::new()))
        });
        let error = failure(socket, &config, 3);
        assert!(error.to_string().contains(hint), "{answer:?}, {stays}: {error}");
        drop(server.join().unwrap());
    }
}

#[test]
fn a_handshake_in_small_pieces_is_given_up_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let (_, config) = configs(directory.path());
    let (socket, server) = served(|mut socket| {
        // A record of the largest size, byte by byte.
        let _ = socket.write_all(b"\x16\x03\x03\x40\x00");
        let mut said = 0;
        while said < 0x4000 && socket.write_all(b"\x02").is_ok() {
            said += 1;
            thread::sleep(Duration::from_micros(100));
        }
        said
    });
    let error = failure(socket, &config, 5);
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(server.join().unwrap() < 0x4000);
}

#[test]
fn a_record_in_small_pieces_does_not_keep_who_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let (own, config) = configs(directory.path());
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let (socket, server) = served(move |mut socket| {
        let mut session = ServerConnection::new(own).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut socket).unwrap();
        }
        session.writer().write_all(&[7; 16_000]).unwrap();
        let mut record = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut record).unwrap();
        }
        let mut sent = 0;
        // Slowly, until the client says that it looks around.
        while sent < record.len() - 1 && goes_on.try_recv().is_err() {
            socket.write_all(&record[sent..=sent]).unwrap();
            sent += 1;
            thread::sleep(Duration::from_micros(200));
        }
        assert!(sent < record.len() - 1, "the client has waited for all of it");
        socket.write_all(&record[sent..]).unwrap();
    });
    let name = server_name("localhost").unwrap();
    let mut stream = Stream::encrypt(socket, config, name, &|| false).unwrap();
    let mut buffer = [0; 20_000];
    let looks_around = (0..1000).any(|_| {
        stream.read(&mut buffer).is_err_and(|error| error.kind() == ErrorKind::Interrupted)
    });
    assert!(looks_around);
    go_on.send(()).unwrap();
    let mut came = Vec::new();
    while came.len() < 16_000 {
        match stream.read(&mut buffer) {
            Ok(0) => panic!("it has ended after {}", came.len()),
            Ok(count) => came.extend_from_slice(&buffer[..count]),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock));
            }
        }
    }
    assert!(came == [7; 16_000]);
    server.join().unwrap();
}
