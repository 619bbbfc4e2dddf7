//! A file that `dunlin check --fix` calls good must load, whatever happened to it before.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::mutation::mutated;
use tests::random::{Random, Rounds};

use super::{Answered, Rig, Setup};
use crate::check::{self, Verdict};

/// How long the test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(3);

/// Kinds of files that are damaged, in turn.
const FORMATS: [Format; 4] =
    [Format::Snapshot, Format::Base, Format::BaseAsCommands, Format::BaseWithCommands];

/// The files in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// An RDB file alone.
    Snapshot,
    /// A base in the RDB format and an increment.
    Base,
    /// A base of commands and an increment.
    BaseAsCommands,
    /// An RDB part with commands after it in the same file.
    BaseWithCommands,
}

/// Says which round it was that failed.
struct NamedInPanic(u64);

impl Drop for NamedInPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "SEED={}", self.0);
        }
    }
}

/// Commands with which files are filled, all types and some databases among them.
fn lines(random: &mut Random) -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..3 + random.below(25) {
        let few = number % 5;
        let text = "x".repeat(random.below(80));
        lines.push(match random.below(9) {
            0 => format!("SET string:{number} {text}-"),
            1 => format!("RPUSH list:{few} {number} {text}-"),
            2 => format!("SADD set:{few} {number} {text}-"),
            3 => format!("SADD numbers:{few} {number}"),
            4 => format!("HSET hash:{few} field:{number} {text}-"),
            5 => format!("ZADD zset:{few} {number}.5 {text}-"),
            6 => format!("SELECT {}", random.below(16)),
            7 => format!("SET expiring:{number} {text}- PXAT 99999999999999"),
            _ => format!("SET number:{few} {number}"),
        });
    }
    lines
}

fn commands(random: &mut Random) -> Vec<u8> {
    let mut content = Vec::new();
    for line in lines(random) {
        let whole = random.percent(10);
        if whole {
            resp::client::encode_command(["MULTI"].iter(), &mut content);
        }
        resp::client::encode_command(line.split(' '), &mut content);
        if whole {
            resp::client::encode_command(["EXEC"].iter(), &mut content);
        }
    }
    content
}

fn snapshot(random: &mut Random) -> Vec<u8> {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    for line in lines(random) {
        assert!(matches!(rig.tell(&line), Answered::Reply(_)));
    }
    assert_eq!(rig.tell("SAVE"), Answered::Reply("+OK\r\n".to_owned()));
    fs::read(setup.path("dump.rdb")).unwrap()
}

/// Whole files of all kinds, made once.
struct Samples {
    snapshots: Vec<Vec<u8>>,
    commands: Vec<Vec<u8>>,
}

impl Samples {
    fn new() -> Samples {
        let mut random = Random::new(1);
        let (snapshots, commands) =
            (0..8).map(|_| (snapshot(&mut random), commands(&mut random))).unzip();
        Samples { snapshots, commands }
    }
}

/// Writes files of that kind; at least one may be damaged.
fn write(setup: &Setup, format: Format, samples: &Samples, random: &mut Random) -> PathBuf {
    let base = random.pick(&samples.snapshots).clone();
    let increment = random.pick(&samples.commands).clone();
    let before = random.pick(&samples.commands).clone();
    let damaged = |bytes: &[u8], other: &[u8], random: &mut Random| match random.below(10) {
        // The file system had reserved space that was never written.
        0 => [&bytes[..random.below(bytes.len())], &vec![0; random.below(60)]].concat(),
        _ => mutated(bytes, other, random),
    };
    if format == Format::Snapshot {
        let file = setup.path("dump.rdb");
        fs::write(&file, damaged(&base, &before, random)).unwrap();
        return file;
    }
    let (name, base) = match format {
        Format::BaseAsCommands => ("appendonly.aof.1.base.aof", before),
        Format::BaseWithCommands => ("appendonly.aof.1.base.aof", [&base[..], &before].concat()),
        _ => ("appendonly.aof.1.base.rdb", base),
    };
    let directory = setup.path("appendonlydir");
    fs::create_dir(&directory).unwrap();
    let list = format!("file {name} seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n");
    fs::write(directory.join("appendonly.aof.manifest"), list).unwrap();
    let (damages_base, damages_increment) =
        *random.pick(&[(true, false), (false, true), (true, true)]);
    let write = |name: &str, content: Vec<u8>| fs::write(directory.join(name), content).unwrap();
    write(name, if damages_base { damaged(&base, &increment, random) } else { base.clone() });
    let changed = if damages_increment { damaged(&increment, &base, random) } else { increment };
    write("appendonly.aof.1.incr.aof", changed);
    directory
}

/// The checker's verdict, and its report.
fn look(path: &Path, fix: bool) -> (Option<Verdict>, String) {
    let mut report = Vec::new();
    let options = check::Options { fix, truncate_to: None };
    let verdict = check::check(path, options, &mut report);
    let mut report = String::from_utf8(report).unwrap();
    if let Err(error) = &verdict {
        report += &error.to_string();
    }
    (verdict.ok(), report)
}

fn start(setup: &Setup, format: Format) -> Result<Rig, String> {
    setup.start(format != Format::Snapshot)
}

#[test]
fn what_the_checker_calls_good_is_loaded() {
    let samples = Samples::new();
    let (mut good, mut changed, mut rounds) = (0, 0, 0);
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let _named = NamedInPanic(seed);
        let mut random = Random::new(seed);
        let format = FORMATS[usize::try_from(seed % 4).unwrap()];
        let setup = Setup::new();
        let path = write(&setup, format, &samples, &mut random);
        let (verdict, report) = look(&path, false);
        let (fixed, repairs) = look(&path, true);
        rounds += 1;
        let report = format!("{format:?}\n{report}\n{repairs}");
        match fixed {
            Some(Verdict::Good) => good += 1,
            Some(Verdict::Changed) => {
                changed += 1;
                assert_ne!(verdict, Some(Verdict::Unsupported), "{report}");
                let (again, more) = look(&path, false);
                assert_eq!(again, Some(Verdict::Good), "{report}\n{more}");
            }
            _ => continue,
        }
        if let Err(reason) = start(&setup, format) {
            panic!("{report}\n{reason}");
        }
    }
    // A line is worthwhile, since it depends on the disk.
    let _ = writeln!(std::io::stderr(), "{rounds} rounds: {good} good, {changed} changed");
    assert!(rounds < 100 || (good > 0 && changed > 0), "{good} {changed} of {rounds}");
}
