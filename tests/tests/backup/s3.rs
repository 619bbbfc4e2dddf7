//! Backups in a bucket: a real server of S3, which checks signatures.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tests::client::{Client, Reply};
use tests::observe::wait_for;
use tests::peers;
use tests::proxy::Proxy;
use tests::random::Random;
use tests::server::{Target, free_port};

use crate::program::{
    Ended, Following, directory, ended, place, position, program, serve, start, url,
};
use crate::state::State;

const KEY: &str = "tester";
const SECRET: &str = "s3cret-of-the-bucket";
/// No line of log for each request.
const QUIET: &str = "<configuration><root level=\"OFF\"/></configuration>";

/// A server of S3 that keeps its objects in files.
struct Bucket {
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Bucket {
    fn start() -> Bucket {
        let directory = directory();
        fs::create_dir_all(directory.path().join("data/own")).unwrap();
        let port = free_port().unwrap();
        let settings = format!(
            "s3proxy.endpoint=http://127.0.0.1:{port}\ns3proxy.authorization=aws-v2-or-v4\n\
             s3proxy.identity={KEY}\ns3proxy.credential={SECRET}\n\
             jclouds.provider=filesystem-nio2\njclouds.identity=x\njclouds.credential=x\n\
             jclouds.filesystem.basedir={}\n",
            directory.path().join("data").display()
        );
        let (file, quiet) = (directory.path().join("settings"), directory.path().join("log.xml"));
        fs::write(&file, settings).unwrap();
        fs::write(&quiet, QUIET).unwrap();
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new("java")
            .args(["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .arg(format!("-Dlogback.configurationFile={}", quiet.display()))
            .arg("-cp")
            .arg(peers::directory().join("s3").join("*"))
            .arg("org.gaul.s3proxy.Main")
            .arg("--properties")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let bucket = Bucket { child, port, directory };
        wait_for("the server of S3 listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        bucket
    }

    fn objects(&self, prefix: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.directory.path().join("data/own").join(prefix)) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `dunlin` with a key for the server of S3 at this port.
fn dunlin_with(port: u16, secret: &str, words: &[&str]) -> Ended {
    ended(with_key(&mut program(words), port, secret))
}

fn with_key<'c>(command: &'c mut Command, port: u16, secret: &str) -> &'c mut Command {
    command
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", secret)
}

fn back_up(server: u16, bucket: u16, to: &str, rest: &[&str]) -> Ended {
    let words = ["backup", "--from", &url(server), "--to", to];
    dunlin_with(bucket, SECRET, &[&words[..], rest].concat())
}

fn restore(bucket: u16, from: &str, to: &Path, rest: &[&str]) -> Ended {
    let words = ["restore", "--from", from, "--to", to.to_str().unwrap()];
    dunlin_with(bucket, SECRET, &[&words[..], rest].concat())
}

/// Values that no compression makes smaller, of so many megabytes.
fn write_much(client: &mut Client, megabytes: u64) {
    for number in 0..megabytes {
        let mut random = Random::new(number);
        let value: Vec<u8> = (0..1 << 17).flat_map(|_| random.bits().to_le_bytes()).collect();
        let key = format!("big:{number}");
        client.call(&[&b"SET"[..], key.as_bytes(), &value]).unwrap();
    }
}

/// The server takes seconds to start: one does for all that is tried, each under its own prefix.
#[test]
fn a_bucket_is_as_good_as_a_directory() {
    let bucket = Bucket::start();
    has_what_a_directory_has(&bucket);
    is_asked_again_when_it_does_not_answer(&bucket);
    is_complete_when_the_answer_to_its_end_is_lost(&bucket);
    is_unharmed_by_a_run_whose_lock_ran_out(&bucket);
    tells_who_may_not(&bucket);
}

fn has_what_a_directory_has(bucket: &Bucket) {
    let (to, work) = ("s3://own/all/of it", directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    // More than two parts, and more than is asked for at once.
    write_much(&mut client, 36);
    let said = back_up(server.port(), bucket.port, to, &[]).good();
    assert!(said.contains("36 keys"), "{said}");
    let mut rests = Vec::new();
    for number in 0..3 {
        client.call_text(&format!("SET k {number}")).unwrap();
        rests.push((place(&position(&mut client)), State::of(&mut client)));
        let said = back_up(server.port(), bucket.port, to, &[]).good();
        assert!(said.contains("the stream goes on after"), "{said}");
    }
    let about =
        |rest: &[&str]| dunlin_with(bucket.port, SECRET, &[&["backup", "--to", to], rest].concat());
    assert!(about(&["--verify"]).good().contains("all 4 files are"));
    assert!(about(&["--list"]).good().contains("base-00000001-"));
    for (index, (at, expected)) in rests.iter().enumerate() {
        let to_directory = work.path().join(index.to_string());
        restore(bucket.port, to, &to_directory, &["--at", at]).good();
        let server = serve(Target::Dunlin, &to_directory);
        expected.check(&State::of(&mut server.connect().unwrap()), at);
    }
    // What a run that was killed has left goes, and so does what need not be kept.
    let folder = bucket.directory.path().join("data/own/all/of it");
    let names = bucket.objects("all/of it");
    let stream = names.iter().find(|name| name.starts_with("stream-")).unwrap();
    // With what the server keeps beside an object.
    let copied = Command::new("cp")
        .arg("-a")
        .args([stream, "stream-00000001.aof"].map(|name| folder.join(name)))
        .status();
    assert!(copied.unwrap().success());
    back_up(server.port(), bucket.port, to, &["--full", "--keep", "1"]).good();
    let names = bucket.objects("all/of it");
    assert_eq!(names.iter().filter(|name| name.starts_with("base-")).count(), 1, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("-00000001.") || name == "lock"), "{names:?}");
    about(&["--verify"]).good();
    // A byte that has changed at the other side.
    let base = folder.join(names.iter().find(|name| name.starts_with("base-")).unwrap());
    let mut bytes = fs::read(&base).unwrap();
    bytes[5000] ^= 1;
    fs::write(&base, bytes).unwrap();
    assert!(about(&["--verify"]).bad().contains("base-"));
    restore(bucket.port, to, &work.path().join("bad"), &[]).bad();
}

fn is_asked_again_when_it_does_not_answer(bucket: &Bucket) {
    let proxy = Proxy::start(bucket.port).unwrap();
    let (to, work) = ("s3://own/again", directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    write_much(&mut client, 40);
    let port = proxy.port();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| back_up(server.port(), port, to, &[]));
        // Its connections are cut in the middle of parts, and refused for a while.
        let mut cuts = 0;
        while !run.is_finished() && cuts < 4 {
            let made = proxy.made();
            wait_for("another connection", || proxy.made() > made || run.is_finished());
            proxy.cut();
            cuts += 1;
        }
        run.join().unwrap().good();
        assert!(cuts > 1, "the run was over before it was cut");
    });
    restore(port, to, &work.path().join("to"), &[]).good();
    let server = serve(Target::Reference, &work.path().join("to"));
    let size = server.connect().unwrap().call_text("DBSIZE").unwrap();
    assert_eq!(size, Reply::Integer(40));
}

/// The last request of an upload is done, and its answer is lost.
fn is_complete_when_the_answer_to_its_end_is_lost(bucket: &Bucket) {
    let proxy = Proxy::start(bucket.port).unwrap();
    let (to, work) = ("s3://own/unanswered", directory());
    let server = start(Target::Dunlin);
    write_much(&mut server.connect().unwrap(), 20);
    proxy.lose_answer_to(b"<CompleteMultipartUpload");
    let said = back_up(server.port(), proxy.port(), to, &[]).good();
    assert!(!proxy.will_lose_an_answer() && said.contains("trying again"), "{said}");
    restore(proxy.port(), to, &work.path().join("to"), &[]).good();
}

/// It counts its files from the same number as the run that has the store meanwhile.
fn is_unharmed_by_a_run_whose_lock_ran_out(bucket: &Bucket) {
    let (to, work) = ("s3://own/two", directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    client.call_text("SET k 1").unwrap();
    let words = ["--follow", "--segment-seconds", "600", "--from", &url(server.port()), "--to", to];
    let mut command = program(&[&["backup"], &words[..]].concat());
    let mut following =
        Following::spawn(with_key(&mut command, bucket.port, SECRET), &work.path().join("log"));
    following.wait_for("is complete");
    client.call_text("SET k 2").unwrap();
    fs::remove_file(bucket.directory.path().join("data/own/two/lock")).unwrap();
    back_up(server.port(), bucket.port, to, &[]).good();
    let at = place(&position(&mut client));
    assert!(following.end_badly().contains("another backup has written there meanwhile"));
    dunlin_with(bucket.port, SECRET, &["backup", "--to", to, "--verify"]).good();
    restore(bucket.port, to, &work.path().join("to"), &["--at", &at]).good();
    // Nor does what it has left stay.
    back_up(server.port(), bucket.port, to, &["--full", "--keep", "1"]).good();
    let names = bucket.objects("two");
    assert_eq!(names.iter().filter(|name| name.starts_with("stream-")).count(), 0, "{names:?}");
}

fn tells_who_may_not(bucket: &Bucket) {
    let server = start(Target::Dunlin);
    let from = url(server.port());
    let words = ["backup", "--from", &from, "--to"];
    let said = dunlin_with(bucket.port, "wr0ng", &[&words[..], &["s3://own/none"]].concat()).bad();
    assert!(said.contains("SignatureDoesNotMatch"), "{said}");
    assert!(!said.contains("wr0ng") && !said.contains("X-Amz"), "{said}");
    let said =
        dunlin_with(bucket.port, SECRET, &[&words[..], &["s3://nobodys/none"]].concat()).bad();
    assert!(said.contains("NoSuchBucket"), "{said}");
    assert!(bucket.objects("none").is_empty());
    for wrong in ["s3://", "s3:///x", "s3://own/../x", "ftp://own"] {
        dunlin_with(bucket.port, SECRET, &[&words[..], &[wrong]].concat()).bad();
    }
}
