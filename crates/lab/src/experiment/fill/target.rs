//! Makes a target of its section: the process itself, those beside it, and their limits.

use std::collections::{BTreeMap, BTreeSet};

use base::size::parse_size;
use toml::Spanned;

use super::super::clustered;
use super::super::error::{FileError, guess};
use super::super::file::{Field, File, TargetSection};
use super::super::scope::Scope;
use super::encrypted::{Encrypted, encryption};
use crate::targets::cpus;
use crate::targets::kinds::{self, KINDS, Kind};
use crate::targets::target::ClusterRule;
use crate::targets::{Limits, Origin, Probe, Target};

/// The least memory that a process can be limited to, in bytes: below that none starts.
const LEAST_MEMORY: u64 = 1 << 20;

/// Whether a section takes part at this point; without the field it does.
pub(super) fn is_on(field: Option<&Field>, scope: &Scope<'_>) -> Result<bool, FileError> {
    scope.value_or(field, "true or false", true)
}

/// The processors of a list.
pub(super) fn processors(
    field: Option<&Field>,
    scope: &Scope<'_>,
) -> Result<Vec<usize>, FileError> {
    let Some(field) = field else { return Ok(Vec::new()) };
    listed(&scope.text(field)?, field, scope)
}

fn listed(text: &str, field: &Field, scope: &Scope<'_>) -> Result<Vec<usize>, FileError> {
    let list = cpus::parse(text).map_err(|message| scope.error(field, message))?;
    cpus::available(&list).map_err(|message| scope.error(field, message))
}

/// A target with everything beside it. When one of its programs is missing, the target is missing.
pub(super) fn target(
    section: &TargetSection,
    kind: Option<&'static Kind>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Target, FileError> {
    let names = names_beside(section, scope)?;
    let mut target = process(section, kind, name, scope)?;
    for (section, name) in section.beside.iter().zip(&names) {
        // A mistake counts even at a point where the target takes no part.
        let own = scope.beside(name);
        let beside = beside(section, name, &own)?;
        if is_on(section.get_ref().on.as_ref(), &own)? {
            target.beside.push(beside);
        }
    }
    target.cluster = section.cluster.as_ref().map(|own| {
        let named = |beginning: &str| {
            let beside = target.beside.iter().enumerate();
            let own = beside.filter(|(_, process)| process.name.starts_with(beginning));
            own.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let mut nodes = named(clustered::NODE);
        nodes.push(target.beside.len());
        ClusterRule { shards: own.get_ref().shards, nodes, etcd: named(clustered::ETCD) }
    });
    if target.cluster.is_some() && target.encryption.is_some() {
        let reason = "the lab does not start clusters with TLS".to_owned();
        target.origin = Origin::Missing(reason);
    }
    if let Some(store) = &section.store {
        let place = target.beside.iter().position(|beside| beside.name == *store.get_ref());
        let known = names.iter().map(String::as_str);
        let Some(place) = place else {
            let message = format!(
                "no process beside it is '{store}'{}",
                guess(store.get_ref(), known),
                store = store.get_ref()
            );
            return Err(scope.error_at(store.span().start, message));
        };
        target.store = Some(place);
    }
    let missing = target.beside.iter().find_map(|beside| match &beside.origin {
        Origin::Missing(reason) => Some(reason.clone()),
        _ => None,
    });
    if let Some(reason) = missing {
        target.origin = Origin::Missing(reason);
    }
    Ok(target)
}

/// The names of the processes beside a target; each has a name of its own, and a directory of that
/// name.
fn names_beside(section: &TargetSection, scope: &Scope<'_>) -> Result<Vec<String>, FileError> {
    let mut names = BTreeSet::new();
    let name = |beside: &Spanned<TargetSection>| {
        let Some(name) = &beside.get_ref().name else {
            let message = "a process beside a target needs a name";
            return Err(scope.error_at(beside.span().start, message));
        };
        let (text, offset) = (name.get_ref(), name.span().start);
        if !is_file_name(text) {
            let message = format!("'{text}' is also its directory: letters, digits, - and _");
            return Err(scope.error_at(offset, message));
        }
        if !names.insert(text.clone()) {
            return Err(
                scope.error_at(offset, format!("two processes beside it are called '{text}'"))
            );
        }
        Ok(text.clone())
    };
    section.beside.iter().map(name).collect()
}

/// The process beside a target that a load names, if this target has it. A name that no target
/// knows is a mistake.
pub(super) fn addressee(
    name: &Spanned<String>,
    file: &File,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<Option<usize>, FileError> {
    let beside = file.targets.iter().flat_map(|section| &section.get_ref().beside);
    let names = beside.filter_map(|beside| beside.get_ref().name.as_ref().map(Spanned::get_ref));
    let known: Vec<&str> = names.map(String::as_str).collect();
    let (text, offset) = (name.get_ref(), name.span().start);
    if !known.contains(&text.as_str()) {
        let message =
            format!("no process beside a target is '{text}'{}", guess(text, known.into_iter()));
        return Err(scope.error_at(offset, message));
    }
    Ok(target.beside.iter().position(|beside| beside.name == *text))
}

/// The places of some processes of a target, whose names have commas between them.
pub(super) fn members(
    field: &Field,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<Vec<usize>, FileError> {
    let text = scope.text(field)?;
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| place_named(name, field, target, scope)).collect()
}

/// The place of a process of a target: one beside it, or itself, which comes after these.
pub(super) fn place_of(
    field: &Field,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<usize, FileError> {
    place_named(&scope.text(field)?, field, target, scope)
}

fn place_named(
    name: &str,
    field: &Field,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<usize, FileError> {
    let names = || target.beside.iter().chain([target]).map(|process| process.name.as_str());
    names().position(|own| own == name).ok_or_else(|| {
        let guess = guess(name, names());
        scope.error(field, format!("no process of the target is '{name}'{guess}"))
    })
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

/// A process beside a target.
fn beside(
    spanned: &Spanned<TargetSection>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Target, FileError> {
    let section = spanned.get_ref();
    let error = |message: &str| Err(scope.error_at(spanned.span().start, message));
    if section.kinds.is_some() || section.address.is_some() {
        return error("a process beside a target is started with it: it needs a kind or a command");
    }
    if !section.beside.is_empty() || section.store.is_some() || section.cluster.is_some() {
        return error("a process beside a target cannot have others beside it");
    }
    let kind = match (&section.kind, &section.command) {
        (Some(kind), None) => {
            let word = kind.get_ref();
            let Some(kind) = Kind::named(word) else {
                let known = guess(word, KINDS.iter().map(|kind| kind.name));
                return Err(
                    scope.error_at(kind.span().start, format!("there is no kind '{word}'{known}"))
                );
            };
            Some(kind)
        }
        (None, Some(_)) => None,
        _ => return error("a process beside a target has exactly one of kind and command"),
    };
    process(section, kind, name, scope)
}

/// One process, without any beside it yet.
fn process(
    section: &TargetSection,
    kind: Option<&'static Kind>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Target, FileError> {
    let texts = |fields: &BTreeMap<String, Field>| {
        let text = |(name, field): (&String, &Field)| Ok((name.clone(), scope.text(field)?));
        fields.iter().map(text).collect::<Result<BTreeMap<_, _>, FileError>>()
    };
    if let Some((name, field)) = section.files.iter().find(|(name, _)| !is_file_name(name)) {
        return Err(scope.error(field, format!("'{name}' is no name of a file")));
    }
    let probe = probe(section, kind, scope)?;
    let mut options = texts(&section.options)?;
    let mut http_port = None;
    let answers_http = matches!(probe, Probe::Http | Probe::Replica);
    let Encrypted { encryption, certificates } = encryption(section, kind, scope)?;
    let is_encrypted = encryption.is_some();
    let of_http = kind.and_then(|kind| if is_encrypted { kind.https } else { kind.http });
    if let Some(option) = of_http.filter(|_| answers_http) {
        let own = || scope.values.get("http_port").cloned().unwrap_or_default();
        let port = options.entry(option.to_owned()).or_insert_with(own);
        http_port = port.parse().ok();
    }
    let threads = section.threads.as_ref();
    let threads = threads.map(|_| scope.positive_or::<u32>(threads, 1)).transpose()?;
    let origin = match (kind, &section.command, &section.address) {
        (Some(kind), _, _) if is_encrypted && kind.tls.is_empty() => {
            Origin::Missing(format!("the lab does not start {} with TLS", kind.title))
        }
        (Some(kind), _, _) => {
            for (name, value) in kind.tls.iter().filter(|_| is_encrypted) {
                options.entry((*name).to_owned()).or_insert_with(|| (*value).to_owned());
            }
            let count = threads.map(|count| count.to_string());
            filled(kind.origin(&options, count.as_deref()), scope)
        }
        (_, Some(words), _) => command_origin(words, scope)?,
        (_, _, Some(address)) => address_origin(address, scope)?,
        _ => Origin::Missing("the file does not say where it is".to_owned()),
    };
    if kind.is_none()
        && let Some(field) = section.options.values().next().or(section.threads.as_ref())
    {
        return Err(scope.error(field, "only a target with a kind has options and threads"));
    }
    let (cpus, limits) = shares(section, scope)?;
    if matches!(origin, Origin::Running { .. }) && (!limits.is_none() || !section.beside.is_empty())
    {
        let field = section.address.as_ref().or(section.cpus.as_ref());
        let message =
            "the lab has not started it: it can neither starve it nor put others beside it";
        return Err(match field {
            Some(field) => scope.error(field, message),
            None => FileError::whole(scope.path, message),
        });
    }
    let has_link = scope.value_or(section.link.as_ref(), "true or false", false)?;
    let port_named = |name: &str| scope.values.get(name).and_then(|port| port.parse().ok());
    Ok(Target {
        name: name.to_owned(),
        origin,
        port: port_named("port").unwrap_or(0),
        http_port,
        link_port: port_named("link_port").filter(|_| has_link),
        cpus,
        limits,
        environment: texts(&section.environment)?,
        files: texts(&section.files)?,
        password: section.password.as_ref().map(|field| scope.text(field)).transpose()?,
        encryption,
        certificates,
        probe,
        beside: Vec::new(),
        store: None,
        cluster: None,
    })
}

fn probe(
    section: &TargetSection,
    kind: Option<&'static Kind>,
    scope: &Scope<'_>,
) -> Result<Probe, FileError> {
    const NAMES: [&str; 4] = ["ping", "replica", "http", "connect"];
    let Some(field) = &section.probe else {
        return Ok(kind.map_or(Probe::Ping, |kind| kind.probe));
    };
    Ok(match scope.text(field)?.as_str() {
        "ping" => Probe::Ping,
        "replica" => Probe::Replica,
        "http" => Probe::Http,
        "connect" => Probe::Connect,
        other => {
            let guess = guess(other, NAMES.into_iter());
            return Err(scope.error(field, format!("there is no probe '{other}'{guess}")));
        }
    })
}

/// The placeholders in the usual options of a kind.
fn filled(origin: Origin, scope: &Scope<'_>) -> Origin {
    let Origin::Command { program, arguments } = origin else { return origin };
    let fill = |argument: String| {
        ["port", "directory", "tls_directory"].iter().fold(argument, |argument, name| {
            let value = scope.values.get(*name).map_or("", String::as_str);
            argument.replace(&format!("{{{name}}}"), value)
        })
    };
    Origin::Command { program, arguments: arguments.into_iter().map(fill).collect() }
}

/// A program without a slash is searched in the PATH.
fn command_origin(words: &[Field], scope: &Scope<'_>) -> Result<Origin, FileError> {
    let words: Vec<String> = words.iter().map(|word| scope.text(word)).collect::<Result<_, _>>()?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(FileError::whole(scope.path, "a target's command is empty"));
    };
    if !program.contains('/') && kinds::find(program).is_none() {
        return Ok(Origin::Missing(format!("{program} is not installed on this machine")));
    }
    Ok(Origin::Command { program: program.into(), arguments: arguments.to_vec() })
}

fn address_origin(field: &Field, scope: &Scope<'_>) -> Result<Origin, FileError> {
    let text = scope.text(field)?;
    let schemes = ["redis://", "rediss://", "http://", "https://"];
    let place = schemes.iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(&text);
    let parts = place
        .trim_end_matches('/')
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if !host.is_empty() => {
            Ok(Origin::Running { host: host.trim_matches(['[', ']']).to_owned(), port })
        }
        _ => Err(scope.error(field, format!("'{text}' is no address, as 127.0.0.1:6379"))),
    }
}

/// The processors that a process may use, and its shares of them and of the memory: `0-3` is a
/// list, `0.1` a share of one processor, and `0.1 of 0` both.
fn shares(section: &TargetSection, scope: &Scope<'_>) -> Result<(Vec<usize>, Limits), FileError> {
    let (mut cpus, mut limits) = (Vec::new(), Limits::default());
    if let Some(field) = &section.cpus {
        let text = scope.text(field)?;
        let (share, list) = match text.split_once(" of ") {
            Some((share, list)) => (Some(share), list),
            None if text.contains('.') => (Some(&*text), ""),
            None => (None, &*text),
        };
        cpus = listed(list, field, scope)?;
        limits.cpus = share
            .map(|share| match share.trim().parse::<f64>() {
                Ok(share) if (0.01..=1e6).contains(&share) => Ok(share),
                _ => Err(scope.error(
                    field,
                    format!(
                        "'{text}' is neither a list of processors nor a share of at least 0.01"
                    ),
                )),
            })
            .transpose()?;
    }
    if let Some(field) = &section.memory {
        let text = scope.text(field)?;
        let starts_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
        let bytes = parse_size(text.as_bytes()).filter(|_| starts_with_digit);
        let Some(bytes) = bytes.filter(|bytes| *bytes >= LEAST_MEMORY) else {
            let message = format!("'{text}' is no size from 1mb up, as 256mb");
            return Err(scope.error(field, message));
        };
        limits.memory = Some(bytes);
    }
    Ok((cpus, limits))
}
