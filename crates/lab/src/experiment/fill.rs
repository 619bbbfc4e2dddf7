//! Makes a case of a file's sections: each text becomes a value, or an error with its line.

mod encrypted;
mod target;

use std::time::Duration;

use toml::Spanned;

use super::case::{
    Action, Case, CheckRule, Event, Followed, KneeRule, LagRule, Load, Sampling, StopRule,
};
use super::error::{FileError, guess};
use super::file::{
    CheckSection, EventSection, Field, File, HttpSection, KneeSection, LagSection, LoadSection,
    TargetSection, Template,
};
use super::scope::Scope;
use crate::load::{
    self, Address, HttpRequest, HttpWork, Keys, Mix, Operation, Pace, Plan, RespWork, Schedule,
    Size, Sizes, Work,
};
use crate::targets::Target;
use crate::targets::kinds::Kind;
use target::{is_on, processors};

/// Fills in a whole file for one target.
///
/// # Errors
/// A field's text is no value that it can have, or fields contradict each other.
pub(crate) fn case(
    file: &File,
    target: &TargetSection,
    kind: Option<&'static Kind>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Case, FileError> {
    let is_measured = is_on(target.on.as_ref(), scope)?;
    let target = target::target(target, kind, name, scope)?;
    let mut events = Vec::new();
    for section in &file.events {
        let mut event = event(section, scope)?;
        let mut is_there = true;
        if let (Action::Attach { replica, .. }, Some(name)) =
            (&mut event.action, &section.get_ref().replica)
        {
            match target::addressee(name, file, &target, scope)? {
                Some(place) => *replica = place,
                None => is_there = false,
            }
        }
        if let Some(name) = &section.get_ref().of {
            let field = Spanned::new(name.span(), Template(name.get_ref().clone()));
            event.of = Some(target::place_of(&field, &target, scope)?);
        }
        refuse_without_processes(section, &event.action, &target, scope)?;
        if is_there && is_on(section.get_ref().on.as_ref(), scope)? {
            let section = section.get_ref();
            let times: u32 = scope.positive_or(section.times.as_ref(), 1)?;
            let every = scope.number_or(section.every.as_ref(), 0.0)?;
            if let Some(field) = section.times.as_ref().filter(|_| times > 1 && every <= 0.0) {
                return Err(scope.error(field, "every how many seconds?"));
            }
            events.extend(
                (0..times)
                    .map(|turn| Event { at: event.at + f64::from(turn) * every, ..event.clone() }),
            );
        }
    }
    events.sort_by(|left, right| left.at.total_cmp(&right.at));
    // An experiment that breaks the server should show how it recovers.
    let breaks = |event: &Event| {
        let action = &event.action;
        matches!(
            action,
            Action::Kill { .. }
                | Action::Stop { .. }
                | Action::Cut { .. }
                | Action::ConnectionStorm { .. }
        )
    };
    let reconnects = events.iter().any(breaks);
    let (mut prefill, mut loads) = (Vec::new(), Vec::new());
    for (at, section) in file.loads.iter().enumerate() {
        let name = &section.get_ref().name;
        if file.loads[..at].iter().any(|other| other.get_ref().name.get_ref() == name.get_ref()) {
            let message = format!("two loads are called '{}'", name.get_ref());
            return Err(scope.error_at(name.span().start, message));
        }
        let mut load = load(section, file.knee.is_some(), scope)?;
        refuse_idle_fields(section.get_ref(), file.knee.is_some(), scope)?;
        if let Some(to) = &section.get_ref().to {
            load.to = target::addressee(to, file, &target, scope)?;
        }
        if let Some(members) = &section.get_ref().members {
            load.members = target::members(members, &target, scope)?;
            let is_other = matches!(load.plan.work, Work::Resp(_)) || load.plan.pipeline > 1;
            if is_other && !load.members.is_empty() {
                let message = "members are asked over HTTP, one request at a time";
                return Err(scope.error(members, message));
            }
        }
        load.plan.reconnect |= reconnects && section.get_ref().reconnect.is_none();
        // Requests over HTTP, and those to another process, go where they are told to.
        load.plan.cluster = target.cluster.is_some()
            && load.to.is_none()
            && matches!(load.plan.work, Work::Resp(_));
        if is_on(section.get_ref().on.as_ref(), scope)? {
            if section.get_ref().prefill { &mut prefill } else { &mut loads }.push(load);
        }
    }
    // A burst comes from the processors of the first load, and not from the server's own.
    for event in &mut events {
        if let Action::HotKeyBurst(burst) = &mut event.action {
            burst.cpus = loads.first().map(|load| load.cpus.clone()).unwrap_or_default();
        }
    }
    let check = file.check.as_ref();
    let check = check.map(|section| check_rule(section.get_ref(), &target, scope)).transpose()?;
    let lag = file.lag.as_ref();
    let lag = lag.map(|section| lag_rule(section, file, &target, scope)).transpose()?;
    if let (Some(_), Some(section)) = (&file.knee, &file.check)
        && let Some(field) = &section.get_ref().seconds
    {
        return Err(scope.error(field, "with a [knee], the checker lasts as long as the search"));
    }
    let case = Case {
        target,
        is_measured,
        prefill,
        events,
        sampling: sampling(file, scope)?,
        stop: stop(file, scope)?,
        knee: file.knee.as_ref().map(|section| knee(section, &loads, scope)).transpose()?,
        check: check.flatten(),
        lag,
        loads,
    };
    if case.loads.is_empty() && case.check.is_none() {
        return Err(FileError::whole(
            scope.path,
            "there is no [[load]] to measure, and no [check]",
        ));
    }
    let bounded = |check: &CheckRule| check.seconds.is_some();
    if case.loads.is_empty() && !case.check.as_ref().is_some_and(bounded) {
        return Err(FileError::whole(
            scope.path,
            "[check] needs seconds when there is no [[load]]",
        ));
    }
    Ok(case)
}

fn load(
    spanned: &Spanned<LoadSection>,
    has_knee: bool,
    scope: &Scope<'_>,
) -> Result<Load, FileError> {
    let section = spanned.get_ref();
    let kinds = usize::from(section.mix.is_some())
        + usize::from(section.command.is_some())
        + usize::from(!section.http.is_empty());
    if kinds != 1 {
        let message = "a load has exactly one of mix, command and http";
        return Err(scope.error_at(spanned.span().start, message));
    }
    let seconds = scope.number(section.seconds.as_ref())?;
    let requests = section.requests.as_ref();
    let requests = requests.map(|_| scope.positive_or::<u64>(requests, 1)).transpose()?;
    // The load that a knee steps, and loads beside it, last as long as a step.
    let is_bounded = has_knee && !section.prefill;
    if seconds.is_none() && requests.is_none() && !is_bounded {
        let message = "a load needs seconds or requests, or it would never end";
        return Err(scope.error_at(spanned.span().start, message));
    }
    let protocol = scope.value_or(section.protocol.as_ref(), "2 or 3", 2)?;
    if let Some(field) = section.protocol.as_ref().filter(|_| !(2..=3).contains(&protocol)) {
        return Err(scope.error(field, "the protocol is 2 or 3"));
    }
    let keys = parsed(section.keys.as_ref(), scope, Keys::Uniform { count: 1 })?;
    let sizes = section.size.as_ref().map(|field| parsed_by::<Sizes>(field, scope)).transpose()?;
    let sizes = sizes.map_or_else(|| vec![Size { bytes: 3, weight: 1.0 }], |sizes| sizes.0);
    let keep_alive = scope.value_or(section.keep_alive.as_ref(), "true or false", true)?;
    let work = if section.http.is_empty() {
        let operations = operations(section, scope)?;
        Work::Resp(RespWork { operations, keys, sizes, protocol, keep_alive, tracking: false })
    } else {
        let requests = section.http.iter().map(|request| http_request(request.get_ref(), scope));
        Work::Http(HttpWork {
            requests: requests.collect::<Result<_, _>>()?,
            keys,
            sizes,
            keep_alive,
        })
    };
    let plan = Plan {
        address: Address::default(),
        connections: scope.positive_or(section.connections.as_ref(), 50)?,
        threads: scope.positive_or(section.threads.as_ref(), 1)?,
        pipeline: scope.positive_or(section.pipeline.as_ref(), 1)?,
        pace: pace(section, scope)?,
        requests,
        seconds,
        warmup_seconds: 0.0,
        work,
        phase: 0.0,
        seed: 1,
        reconnect: scope.value_or(section.reconnect.as_ref(), "true or false", false)?,
        cluster: false,
        members: Vec::new(),
    };
    load::check(&plan).map_err(|error| scope.error_at(spanned.span().start, error.to_string()))?;
    Ok(Load {
        name: section.name.get_ref().clone(),
        plan,
        warmup_seconds: scope.number_or(section.warmup.as_ref(), 0.0)?,
        cpus: processors(section.cpus.as_ref(), scope)?,
        start_seconds: scope.number_or(section.start.as_ref(), 0.0)?,
        to: None,
        members: Vec::new(),
    })
}

/// Fields that would be read but have no meaning.
fn refuse_idle_fields(
    section: &LoadSection,
    has_knee: bool,
    scope: &Scope<'_>,
) -> Result<(), FileError> {
    const PREFILL: &str = "a load that fills is neither measured nor delayed";
    const KNEE: &str = "with a [knee], each load begins with a step and lasts as long";
    let is_stepped = has_knee && !section.prefill;
    let fields = [
        (&section.warmup, section.prefill, PREFILL),
        (&section.start, section.prefill, PREFILL),
        (&section.start, is_stepped, KNEE),
        (&section.seconds, is_stepped, KNEE),
        (&section.requests, is_stepped, KNEE),
    ];
    for (field, is_idle, message) in fields {
        if let Some(field) = field.as_ref().filter(|_| is_idle) {
            return Err(scope.error(field, message));
        }
    }
    Ok(())
}

fn operations(section: &LoadSection, scope: &Scope<'_>) -> Result<Vec<Operation>, FileError> {
    if let Some(mix) = &section.mix {
        return Ok(parsed_by::<Mix>(mix, scope)?.0);
    }
    let words = section.command.as_deref().unwrap_or_default();
    let arguments: Vec<String> =
        words.iter().map(|word| scope.text(word)).collect::<Result<_, _>>()?;
    match arguments.first() {
        Some(name) => {
            let name = name.to_ascii_uppercase();
            Ok(vec![Operation { name, weight: 1.0, arguments }])
        }
        None => Err(FileError::whole(scope.path, "a load's command is empty")),
    }
}

fn http_request(section: &HttpSection, scope: &Scope<'_>) -> Result<HttpRequest, FileError> {
    let method = section.method.as_ref().map_or(Ok("GET".to_owned()), |field| scope.text(field))?;
    let path = scope.text(&section.path)?;
    if !path.starts_with('/') {
        return Err(scope.error(&section.path, "a path begins with /"));
    }
    let headers = section.headers.iter();
    let headers = headers.map(|(name, field)| Ok((name.clone(), scope.text(field)?)));
    Ok(HttpRequest {
        name: section.name.clone().unwrap_or_else(|| format!("{method} {path}")),
        weight: scope.number_or(section.weight.as_ref(), 1.0)?,
        method,
        path,
        headers: headers.collect::<Result<_, FileError>>()?,
        body: section.body.as_ref().map(|field| scope.text(field)).transpose()?,
    })
}

fn pace(section: &LoadSection, scope: &Scope<'_>) -> Result<Pace, FileError> {
    let rate = scope.number(section.rate.as_ref())?;
    let schedule = parsed(section.schedule.as_ref(), scope, Schedule::Poisson)?;
    match (rate, &section.rate, &section.think_ms, &section.schedule) {
        (Some(_), _, Some(field), _) => {
            Err(scope
                .error(field, "with a rate, connections do not pause between reply and request"))
        }
        (Some(rate), Some(field), _, _) if rate <= 0.0 => {
            Err(scope.error(field, "it must be more than 0"))
        }
        (Some(rate), ..) => Ok(Pace::Open { rate, schedule }),
        (None, _, _, Some(field)) => Err(scope.error(field, "without a rate there is no schedule")),
        (None, _, think, _) => {
            Ok(Pace::Closed { think_seconds: scope.number_or(think.as_ref(), 0.0)? / 1000.0 })
        }
    }
}

/// A value in the generator's own short form.
fn parsed_by<T>(field: &Field, scope: &Scope<'_>) -> Result<T, FileError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    scope.text(field)?.parse().map_err(|error: T::Err| scope.error(field, error.to_string()))
}

fn parsed<T>(field: Option<&Field>, scope: &Scope<'_>, default: T) -> Result<T, FileError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    field.map_or(Ok(default), |field| parsed_by(field, scope))
}

/// The words that are not a command for the server but something that the lab does to it.
const ACTIONS: [&str; 10] = [
    "kill",
    "stop",
    "continue",
    "cut",
    "attach",
    "move",
    "move slots",
    "backup",
    "connection storm",
    "hot-key burst",
];

fn event(spanned: &Spanned<EventSection>, scope: &Scope<'_>) -> Result<Event, FileError> {
    let section = spanned.get_ref();
    let text = scope.text(&section.action)?;
    let seconds = scope.number(section.seconds.as_ref())?;
    let name = text.to_ascii_lowercase();
    let action = match name.as_str() {
        "kill" => Action::Kill { restart_after: scope.number(section.restart_after.as_ref())? },
        "stop" => Action::Stop { seconds },
        "continue" => Action::Continue,
        "cut" => Action::Cut { seconds },
        "move" => Action::Move,
        "move slots" => {
            let slots = scope.positive_or(section.slots.as_ref(), 1024)?;
            if let Some(field) = section.slots.as_ref().filter(|_| slots > 16_384) {
                return Err(scope.error(field, "there are 16384 slots"));
            }
            Action::MoveSlots(slots)
        }
        "backup" => Action::Backup,
        "attach" => match &section.replica {
            // Its place is known when the target's processes are.
            Some(name) => Action::Attach { replica: 0, name: name.get_ref().clone() },
            None => return Err(scope.error(&section.action, "which replica attaches?")),
        },
        "connection storm" => Action::ConnectionStorm {
            connections: scope.positive_or(section.connections.as_ref(), 500)?,
            seconds: seconds.unwrap_or(1.0),
        },
        "hot-key burst" => Action::HotKeyBurst(Box::new(burst(section, seconds, scope)?)),
        _ => {
            let words = words(&text).map_err(|message| scope.error(&section.action, message))?;
            Action::Command(words)
        }
    };
    refuse_foreign_fields(section, &name, scope)?;
    let breaks = ["kill", "stop", "continue"].contains(&name.as_str());
    let replica = section.replica.as_ref().filter(|_| name != "attach");
    if let Some(foreign) = replica.or(section.of.as_ref().filter(|_| !breaks)) {
        let message = format!("it means nothing to '{name}'");
        return Err(scope.error_at(foreign.span().start, message));
    }
    Ok(Event { at: scope.number_or(Some(&section.at), 0.0)?, action, of: None })
}

/// Some actions need a target of several processes, or a link.
fn refuse_without_processes(
    section: &Spanned<EventSection>,
    action: &Action,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<(), FileError> {
    let store = target.store.map_or(target, |store| &target.beside[store]);
    let message = match action {
        Action::Cut { .. } if store.link_port.is_none() => {
            "the way to the store can be cut only with link = true, if others use its link_port"
        }
        Action::MoveSlots(_) if target.cluster.is_none() => {
            "slots move between the shards of a cluster"
        }
        Action::Move if target.store.is_none() => {
            "data moves from a process beside the target, its store, to the target itself"
        }
        _ => return Ok(()),
    };
    Err(scope.error(&section.get_ref().action, message))
}

/// A field that the action ignores is a mistake.
fn refuse_foreign_fields(
    section: &EventSection,
    action: &str,
    scope: &Scope<'_>,
) -> Result<(), FileError> {
    let fields: [(&Option<Field>, &[&str]); 6] = [
        (&section.slots, &["move slots"]),
        (&section.restart_after, &["kill"]),
        (&section.seconds, &["stop", "cut", "connection storm", "hot-key burst"]),
        (&section.connections, &["connection storm", "hot-key burst"]),
        (&section.rate, &["hot-key burst"]),
        (&section.mix, &["hot-key burst"]),
    ];
    for (field, actions) in fields {
        if let Some(field) = field
            && !actions.contains(&action)
        {
            let hint = if ACTIONS.contains(&action) { "" } else { ", which is sent as a command" };
            let message = format!("it means nothing to '{action}'{hint}");
            return Err(scope.error(field, message));
        }
    }
    Ok(())
}

fn burst(
    section: &EventSection,
    seconds: Option<f64>,
    scope: &Scope<'_>,
) -> Result<Load, FileError> {
    let mix = section.mix.as_ref().map(|field| parsed_by::<Mix>(field, scope)).transpose()?;
    let get = || Operation {
        name: "GET".to_owned(),
        weight: 1.0,
        arguments: vec!["GET".to_owned(), "key:__rand_int__".to_owned()],
    };
    let operations = mix.map_or_else(|| vec![get()], |mix| mix.0);
    let pace = match scope.number(section.rate.as_ref())? {
        Some(rate) if rate > 0.0 => Pace::Open { rate, schedule: Schedule::Poisson },
        _ => Pace::Closed { think_seconds: 0.0 },
    };
    let work = RespWork { operations, keys: Keys::Uniform { count: 1 }, ..RespWork::default() };
    let plan = Plan {
        connections: scope.positive_or(section.connections.as_ref(), 50)?,
        pace,
        requests: None,
        seconds: Some(seconds.unwrap_or(1.0)),
        work: Work::Resp(work),
        reconnect: true,
        ..Plan::default()
    };
    Ok(Load {
        name: "hot-key burst".to_owned(),
        plan,
        warmup_seconds: 0.0,
        cpus: Vec::new(),
        start_seconds: 0.0,
        to: None,
        members: Vec::new(),
    })
}

/// The words of a command; quotes of both kinds keep words together.
fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match (quote, words.is_empty()) {
        (Some(_), _) => Err("a quote is not closed"),
        (None, true) => Err("there is nothing to do"),
        (None, false) => Ok(words),
    }
}

fn sampling(file: &File, scope: &Scope<'_>) -> Result<Sampling, FileError> {
    let every = scope.number_or(file.sample.every.as_ref(), 0.5)?;
    if let Some(field) = file.sample.every.as_ref().filter(|_| every < 0.05) {
        return Err(scope.error(field, "the shortest time between two samples is 0.05 seconds"));
    }
    let is_of_store = match &file.sample.of {
        None => false,
        Some(field) => match scope.text(field)?.as_str() {
            "all" => false,
            "store" => true,
            other => {
                return Err(scope.error(field, format!("'{other}' is neither all nor store")));
            }
        },
    };
    Ok(Sampling { every, info: file.sample.info.clone(), is_of_store })
}

fn stop(file: &File, scope: &Scope<'_>) -> Result<StopRule, FileError> {
    let errors = file.stop.max_errors.as_ref();
    Ok(StopRule {
        max_errors: errors.map(|field| scope.value(field, "a whole number")).transpose()?,
        max_p99_ms: scope.number(file.stop.max_p99_ms.as_ref())?,
        max_seconds: scope.number(file.stop.max_seconds.as_ref())?,
    })
}

fn knee(
    spanned: &Spanned<KneeSection>,
    loads: &[Load],
    scope: &Scope<'_>,
) -> Result<KneeRule, FileError> {
    let section = spanned.get_ref();
    let load = match &section.load {
        None => 0,
        Some(name) => {
            let wanted = name.get_ref();
            loads.iter().position(|load| load.name == *wanted).ok_or_else(|| {
                let guess = guess(wanted, loads.iter().map(|load| load.name.as_str()));
                scope.error_at(name.span().start, format!("there is no load '{wanted}'{guess}"))
            })?
        }
    };
    if loads.is_empty() {
        return Err(
            scope.error_at(spanned.span().start, "there is no load whose rate could be stepped")
        );
    }
    let rule = KneeRule {
        load,
        limit_ms: scope.number_or(Some(&section.limit_ms), 0.0)?,
        quantile: scope.number_or(section.quantile.as_ref(), 0.99)?,
        start: scope.number_or(Some(&section.start), 0.0)?,
        factor: scope.number_or(section.factor.as_ref(), 1.5)?,
        seconds: scope.number_or(Some(&section.seconds), 0.0)?,
        bisections: scope.value_or(section.bisections.as_ref(), "a whole number", 3)?,
    };
    let wrong = [
        (Some(&section.start), rule.start <= 0.0, "it must be more than 0"),
        (Some(&section.seconds), rule.seconds <= 0.0, "it must be more than 0"),
        (
            section.factor.as_ref(),
            rule.factor <= 1.0,
            "it must be more than 1, or rates never grow",
        ),
        (section.quantile.as_ref(), rule.quantile >= 1.0, "it is a share below 1, as 0.99"),
    ];
    match wrong
        .into_iter()
        .find_map(|(field, wrong, message)| field.filter(|_| wrong).zip(Some(message)))
    {
        Some((field, message)) => Err(scope.error(field, message)),
        None => Ok(rule),
    }
}

fn check_rule(
    section: &CheckSection,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<Option<CheckRule>, FileError> {
    let places = |names: &[Field]| {
        let places = names.iter().map(|name| target::place_of(name, target, scope));
        places.collect::<Result<Vec<usize>, FileError>>()
    };
    let followed = match (&section.sentinels, &section.servers) {
        (None, None) if target.cluster.is_some() => Followed::Cluster,
        (None, None) => Followed::Store,
        (Some(names), None) => Followed::Sentinels(places(names)?),
        (None, Some(names)) => Followed::Servers(places(names)?),
        (Some(_), Some(names)) => {
            let message = "writers ask either Sentinels or the servers themselves";
            return Err(match names.first() {
                Some(name) => scope.error(name, message),
                None => FileError::whole(scope.path, message),
            });
        }
    };
    // A command that depends on the matrix may be empty at some points.
    let command = |field: Option<&Field>| match field {
        None => Ok(Vec::new()),
        Some(field) => match scope.text(field)?.as_str() {
            "" => Ok(Vec::new()),
            text => words(text).map_err(|message| scope.error(field, message)),
        },
    };
    let rule = CheckRule {
        writers: scope.positive_or(section.writers.as_ref(), 4)?,
        readers: scope.positive_or(section.readers.as_ref(), 2)?,
        keys: scope.positive_or(section.keys.as_ref(), 1000)?,
        seconds: scope.number(section.seconds.as_ref())?,
        timeout: scope.number_or(section.timeout.as_ref(), 5.0)?,
        followed,
        greeting: command(section.greeting.as_ref())?,
        confirmation: command(section.confirmation.as_ref())?,
    };
    if let Some(field) = section.timeout.as_ref().filter(|_| rule.timeout <= 0.0) {
        return Err(scope.error(field, "it must be more than 0"));
    }
    Ok(is_on(section.on.as_ref(), scope)?.then_some(rule))
}

fn lag_rule(
    spanned: &Spanned<LagSection>,
    file: &File,
    target: &Target,
    scope: &Scope<'_>,
) -> Result<LagRule, FileError> {
    let section = spanned.get_ref();
    if file.knee.is_some() {
        let message = "with a [knee] the rate changes, and the lag with it";
        return Err(scope.error_at(spanned.span().start, message));
    }
    let own = target.beside.len();
    let replica = match &section.replica {
        Some(name) => target::place_of(name, target, scope)?,
        None => own,
    };
    if replica == target.store.unwrap_or(own) {
        let message = "the lag is that of a replica, and the store is the primary";
        return Err(scope.error_at(spanned.span().start, message));
    }
    let every = scope.number_or(section.every_ms.as_ref(), 5.0)?;
    Ok(LagRule {
        replica,
        every: Duration::from_secs_f64(every / 1000.0),
        cpus: processors(section.cpus.as_ref(), scope)?,
    })
}
