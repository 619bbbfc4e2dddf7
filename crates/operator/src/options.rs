//! What the user wants.

use std::path::PathBuf;
use std::time::Duration;

use cluster::slots::SlotRanges;
use gateway::Config;
use lab::bench::unknown_option;
use lab::load::Encryption;
use tls::ClientSettings;

/// What `dunlin cluster --help` prints.
pub(crate) const USAGE: &str = "\
Makes a cluster whose nodes go by etcd, shows it and changes it.

Usage: dunlin cluster dev [--shards N] [--replicas N] [--port PORT] [--directory DIR] [OPTIONS]
       dunlin cluster create [NODE...] [--replicas N] [--discard-keys]
       dunlin cluster status [--json]
       dunlin cluster add NODE... [--shard SHARD | --new-shard [--without-functions]]
                              [--discard-keys]
       dunlin cluster remove NODE...
       dunlin cluster forget NODE... [--accept-loss]
       dunlin cluster failover NODE | --shard SHARD
       dunlin cluster move SLOTS --shard SHARD
       dunlin cluster abort MOVE...
       dunlin cluster rebalance [--weigh slots|keys] [--share SHARD=N ...] [--tolerance PERCENT]
       dunlin cluster upgrade --restart COMMAND [--to VERSION]
       dunlin cluster rebuild NODE... [--without NODE ...] [--trust NODE]

  dev        brings up an etcd and the nodes of a cluster on this machine, keeps their data in DIR
             (./dunlin-cluster), says how to connect, and ends all of it on Ctrl-C
  create     makes a cluster of the nodes that have come to etcd, or of those that are named
  status     shows shards and nodes, and first what is wrong
  add        gives nodes to the shard that needs one most, to SHARD, or to new shards without slots
  remove     takes nodes out of their shards; a primary hands over first
  forget     takes nodes out that are gone for ever
  failover   makes a replica the primary of its shard; nothing is lost
  move       gives slots, as in 0-1023,2048, to SHARD while clients use them
  abort      gives up moves of slots that are under way: the slots stay where they are
  rebalance  moves slots until each shard has its share of them
  upgrade    restarts one node after the other, the replicas of a shard first, by a COMMAND of yours
  rebuild    writes the cluster anew into an etcd that has lost it, by what its nodes know

A NODE is host:port, a name, or the beginning of an id; a SHARD is the beginning of an id, and so is
a MOVE, which status shows.

  --etcd URL,...      etcd's addresses for clients, as in DUNLIN_CLUSTER_ETCD
                      (http://127.0.0.1:2379)
  --name NAME         the cluster's name, as in DUNLIN_CLUSTER_NAME (dunlin)
  --etcd-user NAME    a user of etcd (DUNLIN_CLUSTER_ETCD_USER); the password comes from
                      DUNLIN_CLUSTER_ETCD_PASSWORD
  --etcd-cacert FILE  the authority of etcd's certificates; --etcd-cert FILE and --etcd-key FILE are
                      the client's own
  --user NAME         a user of the nodes; the password comes from REDISCLI_AUTH, or -a PASSWORD
  --tls               connects to the nodes' encrypted ports; --cacert FILE, --cert FILE, --key FILE,
                      --sni NAME and --insecure are those of dunlin cli
  --discard-keys      takes nodes that have keys, which they lose: a replica takes over the data of
                      its primary, and a primary deletes keys in slots of other shards
  --without-functions makes new shards of nodes as they are; else they get the functions (FUNCTION
                      LOAD) that the other shards have
  --accept-loss       has shards that cannot elect a primary without the nodes to forget do so with
                      what the others have: acknowledged writes may be lost
  --dry-run           shows what would be done
  --yes               does not ask
  --timeout SECONDS   how long to wait for the cluster to get there, and for a restart to end (60)

For dev:
  --shards N          how many shards there are (3); --replicas N replicas each (1)
  --port PORT         the first node's port (7000); the others have the next ones
  --etcd-program FILE etcd, if it is not in PATH; with --etcd one that runs is used
  -- OPTIONS...       options of the nodes, as dunlin serve takes them

For rebalance:
  --weigh keys        goes by the keys in the slots, not by the number of slots
  --share SHARD=N     gives a shard N times the share of one that is not named; with 0 it gives away
                      all that it has, so that its nodes can be removed (1)
  --tolerance PERCENT moves nothing while no shard differs more from its share (2)

For upgrade:
  --restart COMMAND   what restarts a node, run by sh; it finds DUNLIN_NODE, DUNLIN_NODE_HOST,
                      DUNLIN_NODE_PORT and DUNLIN_NODE_NAME in its environment
  --to VERSION        passes over nodes that have this version, so that an upgrade that was
                      interrupted goes on

For rebuild, where a NODE is host:port; it asks all nodes of which the first ones know:
  --without NODE      goes on although this node does not answer: what it alone knows is lost
  --trust NODE        goes by the picture of this node, where nodes contradict each other

A command that was interrupted can be given again: it goes on with what is not done.

Exit code: 0 if all is done, or if status finds nothing wrong; 1 after a failure; 2 for a wrong command
line; 3 if status finds something wrong, or a wait has ended before the cluster got there.
";

/// A node or a shard as the user names it.
pub(crate) type Word = String;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Dev(Dev),
    Create { nodes: Vec<Word>, replicas: usize },
    Status { json: bool },
    Add { nodes: Vec<Word>, to: Destination },
    Remove { nodes: Vec<Word> },
    Forget { nodes: Vec<Word>, accepts_loss: bool },
    Failover(Target),
    Move { slots: SlotRanges, to: Word },
    Abort { moves: Vec<Word> },
    Rebalance(Rebalance),
    Upgrade { restart: String, version: Option<String> },
    Rebuild(Recovery),
}

/// How etcd gets a cluster again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Where nodes are asked first.
    pub(crate) nodes: Vec<Word>,
    /// Nodes that need not answer.
    pub(crate) without: Vec<Word>,
    /// The node whose picture is right.
    pub(crate) trust: Option<Word>,
}

/// How slots are shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rebalance {
    /// Slots weigh as much as they have keys, not all the same.
    pub(crate) by_keys: bool,
    /// Shards whose share is another one than 1.
    pub(crate) shares: Vec<(Word, u64)>,
    /// How far shards may be from their shares, in percent.
    pub(crate) tolerance: u64,
}

/// Where added nodes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    WhereNeeded,
    Shard(Word),
    NewShards {
        /// They get the functions that the other shards have.
        with_functions: bool,
    },
}

/// Which replica takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Node(Word),
    AnyOf(Word),
}

/// A cluster on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dev {
    pub(crate) shards: usize,
    pub(crate) replicas: usize,
    pub(crate) port: u16,
    pub(crate) directory: PathBuf,
    pub(crate) etcd_program: Option<PathBuf>,
    /// An etcd that runs is used.
    pub(crate) has_etcd: bool,
    /// Options of the nodes.
    pub(crate) options: Vec<String>,
}

/// How nodes are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) encryption: Option<Encryption>,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) etcd: Config,
    pub(crate) name: String,
    pub(crate) access: Access,
    /// Nodes may lose the keys that they have.
    pub(crate) discard_keys: bool,
    pub(crate) dry_run: bool,
    pub(crate) yes: bool,
    pub(crate) timeout: Duration,
}

/// The options of the command line, before it is known what they are for.
#[derive(Debug, Default)]
struct Given {
    words: Vec<Word>,
    replicas: Option<usize>,
    shards: Option<usize>,
    port: Option<u16>,
    directory: Option<PathBuf>,
    etcd_program: Option<PathBuf>,
    options: Vec<String>,
    shard: Option<Word>,
    new_shard: bool,
    without_functions: bool,
    accept_loss: bool,
    json: bool,
    weigh: Option<String>,
    shares: Vec<(Word, u64)>,
    tolerance: Option<u64>,
    restart: Option<String>,
    version: Option<String>,
    without: Vec<Word>,
    trust: Option<Word>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Options, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Options::parse_with(words, &variable)
    }

    fn parse_with(
        words: &[String],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Options, String> {
        let mut given = Given::default();
        let (mut etcd, mut name, mut user) = (None, None, None);
        let (mut authority, mut certificate, mut key) = (None, None, None);
        let mut discard_keys = false;
        let (mut dry_run, mut yes, mut timeout) = (false, false, Duration::from_secs(60));
        let (mut encryption, mut encrypts) = (Encryption::default(), false);
        // In a container of a node, the password is in a file.
        let of_node = || {
            let text = std::fs::read_to_string(variable("DUNLIN_PASSWORD_FILE")?).ok()?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        };
        let password = variable("REDISCLI_AUTH").or_else(of_node);
        let mut access = Access { password, ..Access::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word}: what?"));
            match word.as_str() {
                "--etcd" => etcd = Some(value()?),
                "--name" => name = Some(value()?),
                "--etcd-user" => user = Some(value()?),
                "--etcd-cacert" => authority = Some(value()?),
                "--etcd-cert" => certificate = Some(value()?),
                "--etcd-key" => key = Some(value()?),
                "--user" => access.user = Some(value()?),
                "-a" | "--pass" => access.password = Some(value()?),
                "--tls" => encrypts = true,
                "--discard-keys" => discard_keys = true,
                "--dry-run" => dry_run = true,
                "--yes" => yes = true,
                "--timeout" => timeout = Duration::from_secs(number(word, &value()?, 1)?),
                "--replicas" => given.replicas = Some(number(word, &value()?, 0)?),
                "--shards" => given.shards = Some(number(word, &value()?, 1)?),
                "--port" => given.port = Some(number(word, &value()?, 1)?),
                "--directory" => given.directory = Some(value()?.into()),
                "--etcd-program" => given.etcd_program = Some(value()?.into()),
                "--shard" => given.shard = Some(value()?),
                "--new-shard" => given.new_shard = true,
                "--without-functions" => given.without_functions = true,
                "--accept-loss" => given.accept_loss = true,
                "--json" => given.json = true,
                "--weigh" => given.weigh = Some(value()?),
                "--share" => given.shares.push(share(word, &value()?)?),
                "--tolerance" => given.tolerance = Some(number(word, &value()?, 0)?),
                "--restart" => given.restart = Some(value()?),
                "--to" => given.version = Some(value()?),
                "--without" => given.without.push(value()?),
                "--trust" => given.trust = Some(value()?),
                "--" => given.options = words.by_ref().cloned().collect(),
                option if encryption.take_option(option, &mut value)? => {}
                option if option.starts_with('-') => {
                    return Err(unknown_option(option));
                }
                _ => given.words.push(word.clone()),
            }
        }
        if encryption != Encryption::default() && !encrypts {
            return Err("certificates of the nodes are for --tls".to_owned());
        }
        access.encryption = encrypts.then_some(encryption);
        if access.user.is_some() && access.password.is_none() {
            return Err("--user needs a password: REDISCLI_AUTH".to_owned());
        }
        let has_etcd = etcd.is_some();
        let etcd = etcd.or_else(|| variable("DUNLIN_CLUSTER_ETCD"));
        let etcd = etcd.unwrap_or_else(|| "http://127.0.0.1:2379".to_owned());
        let endpoints: Vec<String> = etcd.split(',').map(|url| url.trim().to_owned()).collect();
        for url in &endpoints {
            gateway::endpoint(url)?;
        }
        let user = user.or_else(|| variable("DUNLIN_CLUSTER_ETCD_USER"));
        let password = variable("DUNLIN_CLUSTER_ETCD_PASSWORD");
        let user = match (user, password) {
            (Some(_), None) => {
                return Err("--etcd-user needs DUNLIN_CLUSTER_ETCD_PASSWORD".to_owned());
            }
            (user, password) => user.zip(password),
        };
        let authority = authority.or_else(|| variable("DUNLIN_CLUSTER_ETCD_CA_FILE"));
        let certificate = certificate.or_else(|| variable("DUNLIN_CLUSTER_ETCD_CERT_FILE"));
        let key = key.or_else(|| variable("DUNLIN_CLUSTER_ETCD_KEY_FILE"));
        let own = match (&certificate, &key) {
            (Some(certificate), Some(key)) => Some((&**certificate, &**key)),
            (None, None) => None,
            _ => return Err("--etcd-cert and --etcd-key come together".to_owned()),
        };
        let tls = ClientSettings::of_options(authority.as_deref(), own);
        let etcd = Config { endpoints, user, tls, ..Config::default() };
        let name = name.or_else(|| variable("DUNLIN_CLUSTER_NAME"));
        let name = name.unwrap_or_else(|| "dunlin".to_owned());
        let is_known = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if name.is_empty() || !name.chars().all(is_known) {
            return Err(format!("'{name}' is no name of letters, digits, '.', '-' and '_'"));
        }
        let task = given.task(has_etcd)?;
        if discard_keys && !matches!(task, Task::Create { .. } | Task::Add { .. }) {
            return Err("--discard-keys is for create and add".to_owned());
        }
        Ok(Options { task, etcd, name, access, discard_keys, dry_run, yes, timeout })
    }
}

impl Given {
    fn task(mut self, has_etcd: bool) -> Result<Task, String> {
        if self.words.is_empty() {
            return Err("which command?".to_owned());
        }
        let command = self.words.remove(0);
        let nodes = std::mem::take(&mut self.words);
        let task = match command.as_str() {
            "dev" => {
                self.refuse_words(&nodes)?;
                Task::Dev(Dev {
                    shards: self.shards.take().unwrap_or(3),
                    replicas: self.replicas.take().unwrap_or(1),
                    port: self.port.take().unwrap_or(7000),
                    directory: self.directory.take().unwrap_or_else(|| "dunlin-cluster".into()),
                    etcd_program: self.etcd_program.take(),
                    has_etcd,
                    options: std::mem::take(&mut self.options),
                })
            }
            "create" => Task::Create { nodes, replicas: self.replicas.take().unwrap_or(1) },
            "status" => {
                self.refuse_words(&nodes)?;
                Task::Status { json: std::mem::take(&mut self.json) }
            }
            "add" => {
                let to = match (self.shard.take(), std::mem::take(&mut self.new_shard)) {
                    (Some(_), true) => return Err("--shard or --new-shard, not both".to_owned()),
                    (Some(shard), false) => Destination::Shard(shard),
                    (None, true) => {
                        let without = std::mem::take(&mut self.without_functions);
                        Destination::NewShards { with_functions: !without }
                    }
                    (None, false) => Destination::WhereNeeded,
                };
                Task::Add { nodes: some(nodes)?, to }
            }
            "remove" => Task::Remove { nodes: some(nodes)? },
            "forget" => {
                let accepts_loss = std::mem::take(&mut self.accept_loss);
                Task::Forget { nodes: some(nodes)?, accepts_loss }
            }
            "failover" => match (nodes.as_slice(), self.shard.take()) {
                ([node], None) => Task::Failover(Target::Node(node.clone())),
                ([], Some(shard)) => Task::Failover(Target::AnyOf(shard)),
                _ => return Err("failover takes one node, or --shard".to_owned()),
            },
            "move" => match (nodes.as_slice(), self.shard.take()) {
                ([slots], Some(to)) => {
                    let ranges = slots.parse::<SlotRanges>().ok().filter(|own| !own.is_empty());
                    let ranges = ranges.ok_or_else(|| format!("'{slots}' are no slots"))?;
                    Task::Move { slots: ranges, to }
                }
                _ => return Err("move takes slots, as in 0-1023,2048, and --shard".to_owned()),
            },
            "abort" if nodes.is_empty() => return Err("which move?".to_owned()),
            "abort" => Task::Abort { moves: nodes },
            "rebalance" => {
                self.refuse_words(&nodes)?;
                let by_keys = match self.weigh.take().as_deref() {
                    None | Some("slots") => false,
                    Some("keys") => true,
                    Some(other) => return Err(format!("--weigh: slots or keys, not '{other}'")),
                };
                Task::Rebalance(Rebalance {
                    by_keys,
                    shares: std::mem::take(&mut self.shares),
                    tolerance: self.tolerance.take().unwrap_or(2),
                })
            }
            "upgrade" => {
                self.refuse_words(&nodes)?;
                let restart = self.restart.take().ok_or("--restart is missing")?;
                Task::Upgrade { restart, version: self.version.take() }
            }
            "rebuild" => Task::Rebuild(Recovery {
                nodes: some(nodes)?,
                without: std::mem::take(&mut self.without),
                trust: self.trust.take(),
            }),
            other => return Err(format!("there is no command '{other}'")),
        };
        self.refuse_rest(&command)?;
        Ok(task)
    }

    fn refuse_words(&self, words: &[Word]) -> Result<(), String> {
        match words.first() {
            Some(word) => Err(format!("'{word}' is one word too many")),
            None => Ok(()),
        }
    }

    /// What the command has not taken is not for it.
    fn refuse_rest(&self, command: &str) -> Result<(), String> {
        let left = [
            ("--replicas", self.replicas.is_some()),
            ("--shards", self.shards.is_some()),
            ("--port", self.port.is_some()),
            ("--directory", self.directory.is_some()),
            ("--etcd-program", self.etcd_program.is_some()),
            ("--", !self.options.is_empty()),
            ("--shard", self.shard.is_some()),
            ("--new-shard", self.new_shard),
            ("--without-functions", self.without_functions),
            ("--accept-loss", self.accept_loss),
            ("--json", self.json),
            ("--weigh", self.weigh.is_some()),
            ("--share", !self.shares.is_empty()),
            ("--tolerance", self.tolerance.is_some()),
            ("--restart", self.restart.is_some()),
            ("--to", self.version.is_some()),
            ("--without", !self.without.is_empty()),
            ("--trust", self.trust.is_some()),
        ];
        match left.iter().find(|(_, is_left)| *is_left) {
            Some((option, _)) => Err(format!("{option} is not for {command}")),
            None => Ok(()),
        }
    }
}

fn share(option: &str, text: &str) -> Result<(Word, u64), String> {
    let (shard, count) = text.split_once('=').ok_or_else(|| format!("{option}: SHARD=N"))?;
    Ok((shard.to_owned(), number(option, count, 0)?))
}

fn some(nodes: Vec<Word>) -> Result<Vec<Word>, String> {
    if nodes.is_empty() { Err("which node?".to_owned()) } else { Ok(nodes) }
}

fn number<N: std::str::FromStr + PartialOrd>(
    option: &str,
    text: &str,
    least: N,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{option}: '{text}' is no number for it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse_with(&words, &|name| {
            (name == "DUNLIN_CLUSTER_ETCD_PASSWORD").then(|| "word".to_owned())
        })
    }

    #[test]
    fn command_lines_are_understood() {
        let options = parsed("create h:1 h:2 --replicas 0 --etcd a,https://b --yes").unwrap();
        let nodes = vec!["h:1".to_owned(), "h:2".to_owned()];
        assert_eq!(options.task, Task::Create { nodes, replicas: 0 });
        assert_eq!(options.etcd.endpoints, ["a", "https://b"]);
        assert!(options.yes && !options.dry_run);
        let dev = parsed("dev --port 9 -- --save 1").unwrap().task;
        let Task::Dev(dev) = dev else { panic!("{dev:?}") };
        assert_eq!((dev.port, dev.shards, dev.replicas, dev.has_etcd), (9, 3, 1, false));
        assert_eq!(dev.options, ["--save", "1"]);
        let user = parsed("status --json --etcd-user u").unwrap().etcd.user;
        assert_eq!(user, Some(("u".to_owned(), "word".to_owned())));
        let target = parsed("failover --shard ab").unwrap().task;
        assert_eq!(target, Task::Failover(Target::AnyOf("ab".to_owned())));
        let rebalance = parsed("rebalance --weigh keys --share ab=0 --share c=3").unwrap().task;
        let shares = vec![("ab".to_owned(), 0), ("c".to_owned(), 3)];
        assert_eq!(rebalance, Task::Rebalance(Rebalance { by_keys: true, shares, tolerance: 2 }));
        let rebuild = parsed("rebuild h:1 --without b:2 --without c --trust h:1").unwrap().task;
        assert_eq!(
            rebuild,
            Task::Rebuild(Recovery {
                nodes: vec!["h:1".to_owned()],
                without: vec!["b:2".to_owned(), "c".to_owned()],
                trust: Some("h:1".to_owned()),
            })
        );
        let add = parsed("add n --new-shard --without-functions").unwrap().task;
        let to = Destination::NewShards { with_functions: false };
        assert_eq!(add, Task::Add { nodes: vec!["n".to_owned()], to });
        let forget = parsed("forget h:1 --accept-loss").unwrap().task;
        assert_eq!(forget, Task::Forget { nodes: vec!["h:1".to_owned()], accepts_loss: true });
        let said = parsed("status --etcd-password=secret").unwrap_err();
        assert_eq!(said, "there is no option --etcd-password");
        for wrong in [
            "",
            "rebuild",
            "rebuild h:1 --shard s",
            "status --without h:1",
            "rebalance --weigh bytes",
            "rebalance --share ab",
            "move 1 --shard s --tolerance 3",
            "other",
            "status x",
            "status --replicas 1",
            "create --json",
            "create --replicas x",
            "add",
            "add n --shard s --new-shard",
            "add n --without-functions",
            "remove",
            "remove n --accept-loss",
            "failover",
            "failover n --shard s",
            "upgrade",
            "abort",
            "abort m --shard s",
            "status --etcd ftp://x",
            "status --name a/b",
            "status --etcd-cert f",
            "status --cacert f",
            "status --user u",
            "status --timeout 0",
            "status --unknown",
            "status --etcd",
            "dev --shards 0",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
