//! A cluster in which nothing is said in the open: nodes, clients, etcd and `dunlin cluster` show
//! each other certificates and passwords, and each has the rights that it needs and no others.

use std::fs;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use tests::certificates::Encryption;
use tests::client::{Client, Received, Reply};
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::server::{Server, Target, dunlin_binary};

use crate::interrupted::in_words;

/// The users of the nodes. The rules of `node` and `keeper` are those of docs/security.md, those of
/// `backup` those of docs/backup.md.
const USERS: &str = "\
user default off
user node on >nodes-word NODE_RULES
user keeper on >keepers-word KEEPER_RULES
user backup on >backups-word BACKUP_RULES
user app on >apps-word ~* &* +@all -@dangerous
";

struct Secured {
    etcd: EtcdMembers,
    encryption: Encryption,
    nodes: Vec<Server>,
    /// The users of each of them.
    users: String,
    directory: tempfile::TempDir,
}

/// The rules that a page of the documentation gives a user.
fn rules(page: &str, user: &str) -> Result<String> {
    let page = fs::read_to_string(tests::server::repository().join("docs").join(page))?;
    let start = format!("ACL SETUSER {user} ");
    let line = page.lines().find_map(|line| line.split_once(&start)).context("a line for it")?.1;
    let line = line.split('`').next().unwrap_or_default();
    let words = line.split(' ').filter(|word| !word.starts_with('>') && *word != "on");
    Ok(words.collect::<Vec<_>>().join(" "))
}

impl Secured {
    fn start(count: usize) -> Result<Secured> {
        let etcd = EtcdMembers::start_encrypted()?;
        for words in [
            "user add root:roots-word",
            "user grant-role root root",
            "user add nodes:etcds-word",
            "role add nodes",
            "role grant-permission nodes --prefix=true readwrite /dunlin/shop/",
            "user grant-role nodes nodes",
            "auth enable",
        ] {
            etcd.control(&words.split(' ').collect::<Vec<_>>())?;
        }
        let directory = tempfile::tempdir()?;
        let users = USERS.replace("NODE_RULES", &rules("security.md", "node")?);
        let users = users.replace("KEEPER_RULES", &rules("security.md", "keeper")?);
        let users = users.replace("BACKUP_RULES", &rules("backup.md", "backup")?);
        let encryption = Encryption::make()?;
        let mut secured = Secured { etcd, encryption, nodes: Vec::new(), users, directory };
        for number in 0..count {
            secured.start_node(number)?;
        }
        Ok(secured)
    }

    fn start_node(&mut self, number: usize) -> Result<()> {
        let list = self.directory.path().join(format!("{number}.acl"));
        fs::write(&list, &self.users)?;
        let (certificates, client) = self.etcd.encryption().context("it is encrypted")?;
        let text = |path: &std::path::Path| path.display().to_string();
        let (authority, list) = (text(&certificates.authority()), text(&list));
        let (certificate, key) = (text(&client.certificate), text(&client.key));
        let url = self.etcd.url(0);
        let options = [
            ("cluster-enabled", "yes"),
            ("cluster-name", "shop"),
            ("cluster-etcd", &url),
            ("cluster-etcd-user", "nodes"),
            ("cluster-etcd-password", "etcds-word"),
            ("cluster-etcd-ca-file", &authority),
            ("cluster-etcd-cert-file", &certificate),
            ("cluster-etcd-key-file", &key),
            ("cluster-durability", "quorum"),
            ("tls-cluster", "yes"),
            ("aclfile", &list),
            ("masteruser", "node"),
            ("masterauth", "nodes-word"),
            ("repl-diskless-sync-delay", "0"),
        ];
        self.nodes.push(Server::start_through(Target::Dunlin, Some(&self.encryption), &options)?);
        Ok(())
    }

    /// Runs `dunlin cluster` as the operator.
    fn tool(&self, words: &[&str]) -> Result<Output> {
        let (certificates, client) = self.etcd.encryption().context("it is encrypted")?;
        let own = self.encryption.certificates();
        let mut command = Command::new(dunlin_binary()?);
        command.arg("cluster").args(words);
        command.args(["--name", "shop", "--etcd", &self.etcd.url(0), "--etcd-user", "nodes"]);
        command.arg("--etcd-cacert").arg(certificates.authority());
        command.arg("--etcd-cert").arg(&client.certificate).arg("--etcd-key").arg(&client.key);
        command.args(["--user", "keeper", "--tls"]).arg("--cacert").arg(own.authority());
        command.arg("--cert").arg(own.server()).arg("--key").arg(own.key());
        command.env("DUNLIN_CLUSTER_ETCD_PASSWORD", "etcds-word");
        command.env("REDISCLI_AUTH", "keepers-word").stdin(Stdio::null());
        command.output().context("it does not run")
    }

    fn done(&self, words: &[&str]) -> Result<String> {
        let output = self.tool(words)?;
        ensure!(
            output.status.code() == Some(0),
            "{words:?}: {}\n{}",
            in_words(&output),
            self.logs()
        );
        Ok(in_words(&output))
    }

    /// A client of an application.
    fn client(&self, node: usize) -> Result<Client> {
        let mut client = self.nodes[node].connect()?;
        let entered = client.call(&["AUTH", "app", "apps-word"])?;
        ensure!(entered == Reply::Status(b"OK".to_vec()), "{entered:?}");
        Ok(client)
    }

    /// The node that takes a write to a key.
    fn owner(&self, key: &str) -> Result<usize> {
        self.answering(&["SET", key, "1"])
    }

    /// The node that answers a command without an error.
    fn answering(&self, words: &[&str]) -> Result<usize> {
        let mut found = None;
        wait_until("a node has the key", || {
            found = (0..self.nodes.len()).find(|node| {
                let answered = self.client(*node).and_then(|mut own| own.call(words));
                answered.is_ok_and(|reply| !reply.is_error())
            });
            Ok(found.is_some())
        })
        .with_context(|| self.logs())?;
        found.context("it was found")
    }

    fn logs(&self) -> String {
        self.nodes.iter().map(Server::log_tail).collect::<Vec<_>>().join("\n----\n")
    }

    fn shards(&self) -> Result<Vec<serde_json::Value>> {
        let status = self.tool(&["status", "--json"])?;
        let status: serde_json::Value =
            serde_json::from_slice(&status.stdout).with_context(|| in_words(&status))?;
        Ok(status["shards"].as_array().cloned().unwrap_or_default())
    }
}

/// The slot of `foo`.
const SLOT: &str = "12182";

#[test]
fn a_cluster_works_with_certificates_passwords_and_few_rights() -> Result<()> {
    let mut secured = Secured::start(4)?;
    // It waits until all of them have come to etcd.
    let places: Vec<_> =
        secured.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let words = ["create", "--replicas", "1", "--yes"].into_iter();
    secured.done(&words.chain(places.iter().map(String::as_str)).collect::<Vec<_>>())?;
    let whole = || -> Result<()> {
        let mut status = String::new();
        wait_until("nothing is wrong", || {
            let output = secured.tool(&["status"])?;
            status = in_words(&output);
            Ok(output.status.code() == Some(0))
        })
        .with_context(|| format!("{status}\n{}", secured.logs()))
    };
    whole()?;
    // A replica has it, since writes wait for a quorum.
    let owner = secured.owner("foo")?;
    let other = secured.owner("bar")?;
    ensure!(owner != other, "both slots are of one shard\n{}", secured.logs());
    // Where clients are sent is the encrypted port.
    let place = format!("MOVED {SLOT} 127.0.0.1:{}", secured.nodes[owner].port());
    let sent = secured.client(other)?.call_text("GET foo")?;
    ensure!(sent == Reply::Error(place.into_bytes()), "{sent:?}");
    // A message reaches subscribers of every node.
    let mut listeners = Vec::new();
    for node in 0..4 {
        let mut listener = secured.client(node)?;
        listener.call_text("SUBSCRIBE news")?;
        listeners.push(listener);
    }
    let mut publisher = secured.client(owner)?;
    for listener in &mut listeners {
        wait_until("it hears", || {
            publisher.call_text("PUBLISH news x")?;
            listener.has_input(std::time::Duration::from_millis(50))
        })
        .with_context(|| secured.logs())?;
        ensure!(matches!(listener.receive()?, Received::Reply(Reply::Array(_))));
    }
    // Slots move to the other shard.
    let shards = secured.shards()?;
    let is_of = |shard: &serde_json::Value, node: usize| {
        let nodes = shard["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().any(|own| own["tls_port"] == secured.nodes[node].port())
    };
    let id = |node: usize| {
        let shard = shards.iter().find(|shard| is_of(shard, node));
        shard.and_then(|shard| shard["id"].as_str()).map(str::to_owned)
    };
    let (from, to) = (id(owner).context("a shard")?, id(other).context("a shard")?);
    secured.done(&["move", SLOT, "--shard", &to, "--yes"])?;
    ensure!(secured.owner("foo")? == other, "{}", secured.logs());
    secured.done(&["move", SLOT, "--shard", &from, "--yes"])?;
    whole()?;
    secured.done(&["failover", "--shard", &from, "--yes"])?;
    let next = secured.owner("foo")?;
    ensure!(next != owner, "{}", secured.logs());
    whole()?;
    // One that is killed is seen to be gone, and replaced. Writes wait until it is back.
    secured.nodes[next].kill();
    ensure!(secured.answering(&["GET", "foo"])? == owner, "{}", secured.logs());
    secured.nodes[next].start_again()?;
    let mut status = String::new();
    wait_until("nothing is wrong", || {
        let output = secured.tool(&["status"])?;
        status = in_words(&output);
        Ok(output.status.code() == Some(0))
    })
    .with_context(|| format!("{status}\n{}", secured.logs()))?;
    // A new shard gets the functions of the others.
    let code = "#!lua name=own\nredis.register_function('own', function() return 'here' end)";
    for node in [owner, other] {
        let loaded = secured.client(node)?.call(&["FUNCTION", "LOAD", code])?;
        ensure!(!loaded.is_error(), "{loaded:?}");
    }
    secured.start_node(4)?;
    let place = format!("127.0.0.1:{}", secured.nodes[4].port());
    secured.done(&["add", &place, "--new-shard", "--yes"])?;
    let returned = secured.client(4)?.call_text("FCALL own 0")?;
    ensure!(returned.text() == Some(b"here"), "{returned:?}");
    // The node's user may do nothing else.
    let mut client = secured.nodes[owner].connect()?;
    client.call(&["AUTH", "node", "nodes-word"])?;
    for line in ["SET foo 1", "GET foo", "FLUSHALL", "CONFIG GET *", "ACL LIST", "KEYS *"] {
        let reply = client.call_text(line)?;
        let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
        ensure!(text.starts_with("NOPERM"), "{line}: {reply:?}");
    }
    // One that copies data does not acknowledge in the name of a member, nor forbid a failover.
    let mut client = secured.nodes[owner].connect()?;
    client.call(&["AUTH", "backup", "backups-word"])?;
    let own = "03".repeat(20);
    for (option, words) in
        [("cluster-node", format!("{own}:1")), ("cluster-promise", format!("{own} 1 1 1000 {own}"))]
    {
        let reply = client.call(&["REPLCONF", option, &words])?;
        let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
        ensure!(text.starts_with("NOPERM User backup may not speak for a node"), "{text}");
    }
    Ok(())
}
