//! Programs of others as clients.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::peers;

use crate::house::{House, run};

#[test]
fn openssl_is_a_client() -> Result<()> {
    let house = House::open(&[])?;
    for version in ["-tls1_2", "-tls1_3"] {
        let client = house.openssl(&["-quiet", version]);
        let output = run(client, b"SET from openssl\r\nGET from\r\nQUIT\r\n")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(text == "+OK\r\n$7\r\nopenssl\r\n+OK\r\n", "{version}: {text:?} {complaints}");
    }
    for version in ["-tls1", "-tls1_1"] {
        let output = run(house.openssl(&["-quiet", version]), b"PING\r\n")?;
        ensure!(!output.status.success() && output.stdout.is_empty(), "{version}");
    }
    Ok(())
}

#[test]
fn the_command_lines_of_redis_and_valkey_are_clients() -> Result<()> {
    let house = House::open(&[])?;
    let large = vec![b'v'; 3_000_000];
    for program in ["redis-cli", "valkey-cli"] {
        let mut set = house.tool(program);
        set.args(["-x", "SET", program]);
        ensure!(run(set, &large)?.stdout == b"OK\n", "{program}");
        let mut get = house.tool(program);
        get.args(["GET", program]);
        let got = run(get, b"")?.stdout;
        ensure!(got.strip_suffix(b"\n") == Some(&large[..]), "{program}: {} bytes", got.len());
        let mut eval = house.tool(program);
        eval.args(["EVAL", "return redis.call('STRLEN', KEYS[1])", "1", program]);
        ensure!(run(eval, b"")?.stdout == b"3000000\n");
    }
    Ok(())
}

#[test]
fn redis_py_is_a_client() -> Result<()> {
    let house = House::open(&[("threads", "2")])?;
    let script = "
import sys, threading, redis
port, ca, cert, key = sys.argv[1:]
for protocol in 2, 3:
    def client():
        return redis.Redis(host='127.0.0.1', port=int(port), ssl=True, ssl_ca_certs=ca,
                           ssl_certfile=cert, ssl_keyfile=key, protocol=protocol)
    r = client()
    r.flushall()
    value = bytes(range(256)) * 4000
    assert r.set('k', value) and r.get('k') == value
    with r.pipeline(transaction=True) as pipe:
        for index in range(2000):
            pipe.rpush('list', 'item-%d' % index)
        assert pipe.execute()[-1] == 2000
    assert len(r.lrange('list', 0, -1)) == 2000
    threading.Timer(0.1, lambda: client().rpush('queue', 'late')).start()
    assert client().blpop('queue', timeout=30) == (b'queue', b'late') \\
        or protocol == 3
    subscriber = client().pubsub()
    subscriber.subscribe('news')
    assert subscriber.get_message(timeout=30)['type'] == 'subscribe'
    assert r.publish('news', 'hello') == 1
    assert subscriber.get_message(timeout=30)['data'] == b'hello'
    try:
        redis.Redis(host='127.0.0.1', port=int(port), ssl=True, ssl_ca_certs=ca).ping()
        raise SystemExit('a client without a certificate is served')
    except redis.exceptions.ConnectionError:
        pass
print('all is well')
";
    let mut python = Command::new(peers::directory().join("python/bin/python"));
    python.args(["-c", script, &house.port.to_string()]).arg(house.certificates.authority());
    python.arg(&house.client.certificate).arg(&house.client.key);
    let output = run(python, b"")?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.stdout == b"all is well\n", "{complaints}\n{}", house.server.log_tail());
    Ok(())
}

#[test]
fn curl_is_a_client() -> Result<()> {
    let house = House::open(&[])?;
    let curl = |path: &str, options: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60"]).args(options);
        curl.arg("--cacert").arg(house.certificates.authority());
        curl.arg("--cert").arg(&house.client.certificate).arg("--key").arg(&house.client.key);
        curl.arg(format!("https://127.0.0.1:{}{path}", house.https));
        run(curl, b"")
    };
    let put = curl("/v1/keys/greeting", &["-X", "PUT", "--data-binary", "hello"])?;
    ensure!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    let got = curl("/v1/keys/greeting", &["--include", "--verbose"])?;
    let (text, said) = (String::from_utf8_lossy(&got.stdout), String::from_utf8_lossy(&got.stderr));
    ensure!(text.ends_with("\r\n\r\nhello"), "{text}\n{said}");
    ensure!(said.contains("server accepted http/1.1"), "{said}");
    // More than the socket takes at once.
    let mut control = house.control()?;
    control.call(&[&b"SET"[..], b"large", &[b'x'; 20_000_000]])?;
    let large = curl("/v1/keys/large", &[])?.stdout;
    ensure!(large.len() == 20_000_000 && large.iter().all(|byte| *byte == b'x'));
    // One that speaks no HTTP/1.1 is told so.
    let own = house.https.to_string();
    let mut client = house.openssl(&["-alpn", "h2", "-connect", &format!("127.0.0.1:{own}")]);
    client.arg("-brief");
    let output = run(client, b"")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("no application protocol"), "{said}");
    Ok(())
}
