//! An experiment ready to run: a file, the chosen size, and the replacements of the command line.
//! All of it is filled in once before anything starts, so that a mistake costs no time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::case::Case;
use super::clustered;
use super::error::{FileError, guess};
use super::figures;
use super::file::{Axis, File, SizeSection, TargetSection, Template, Value};
use super::scope::Scope;
use crate::load::Encryption;
use crate::report::VIEWS;
use crate::results::figure::QUANTILES;
use crate::targets::cpus;
use crate::targets::kinds::{KINDS, Kind};

/// The choices of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The size with which figures are meant to be published; the quick one otherwise.
    pub full: bool,
    /// In place of the file's repetitions.
    pub repetitions: Option<u32>,
    /// Only these targets.
    pub targets: Vec<String>,
    /// Replacements for values and for swept parameters (whose values are separated by commas).
    pub set: Vec<(String, String)>,
    /// How connections are encrypted where the file does not say, if they are.
    pub encryption: Option<Encryption>,
}

/// An experiment ready to run.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The file's name in messages.
    path: String,
    /// The file's text.
    text: String,
    /// The file.
    file: File,
    /// The values of placeholders that are not swept.
    values: BTreeMap<String, Spanned<Value>>,
    /// The swept parameters, in the order of the file.
    matrix: Vec<(String, Vec<String>)>,
    /// How often each point is measured.
    repetitions: u32,
    /// The targets: a section of the file, and one of the kinds that it names.
    targets: Vec<Member>,
    /// See [`Choice::encryption`].
    encryption: Option<Encryption>,
}

/// One target of the file.
#[derive(Clone, Debug)]
struct Member {
    section: usize,
    kind: Option<&'static Kind>,
    name: String,
}

/// What is known of a run before it starts.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The ports of the target: its own, that of its HTTP, one for each process beside it, one for
    /// the HTTP of each of these, and one for the link of each and its own. Missing ones are 1, for
    /// questions that do not depend on them.
    pub ports: Vec<u16>,
    /// The target's directory.
    pub directory: PathBuf,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// A point of the matrix: a value for each swept parameter.
pub type Point = BTreeMap<String, String>;

/// The placeholders that every file has.
const BUILT_IN: [&str; 11] = [
    "cores",
    "last_core",
    "other_cores",
    "dunlin",
    "port",
    "http_port",
    "link_port",
    "directory",
    "tls_directory",
    "repetition",
    "target",
];

/// The figures that the report itself reads from recordings, besides percentiles.
const OWN_FIGURES: [&str; 14] = [
    "throughput",
    "max",
    "service_p99",
    "errors",
    "best_rate",
    "lost",
    "stale",
    "wrong",
    "refused",
    "unknown",
    "write_gap_seconds",
    "usual_write_gap_seconds",
    "check_recovery_seconds",
    "unsent_percent",
];

/// More threads than this no load needs.
const MOST_OTHER_CORES: usize = 8;

impl Definition {
    /// Reads an experiment and fills in every point for every target, to see whether that succeeds.
    ///
    /// # Errors
    /// The first mistake in the file or in the choice.
    pub fn new(path: &str, text: &str, choice: &Choice) -> Result<Self, FileError> {
        let mut file = File::parse(path, text)?;
        clustered::expand(path, text, &mut file)?;
        let mut definition = Definition {
            path: path.to_owned(),
            text: text.to_owned(),
            values: BTreeMap::new(),
            matrix: Vec::new(),
            repetitions: 1,
            targets: Vec::new(),
            encryption: choice.encryption.clone(),
            file,
        };
        definition.check_views()?;
        definition.check_columns()?;
        definition.targets = definition.members(choice)?;
        definition.fill_in_values(choice)?;
        definition.repetitions = definition.count_repetitions(choice)?;
        definition.check_all()?;
        Ok(definition)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.file.name.get_ref()
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The swept parameters, in the order of the file.
    pub fn matrix(&self) -> &[(String, Vec<String>)] {
        &self.matrix
    }

    /// How often each point is measured.
    pub fn repetitions(&self) -> u32 {
        self.repetitions
    }

    /// The names of the targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|target| target.name.as_str())
    }

    /// All points of the matrix; the last parameter changes fastest.
    pub fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new()];
        for (name, values) in &self.matrix {
            let with = |point: &Point, value: &String| {
                let mut point = point.clone();
                point.insert(name.clone(), value.clone());
                point
            };
            points = points
                .iter()
                .flat_map(|point| values.iter().map(|value| with(point, value)).collect::<Vec<_>>())
                .collect();
        }
        points
    }

    /// One target at one point.
    ///
    /// # Errors
    /// A field's text is no value that it can have.
    pub fn case(
        &self,
        target: usize,
        point: &Point,
        context: &RunContext,
    ) -> Result<Case, FileError> {
        let member = &self.targets[target];
        let section = self.file.targets[member.section].get_ref();
        let scope = self.scope(section, &member.name, point, context)?;
        super::fill::case(&self.file, section, member.kind, &member.name, &scope)
    }

    /// How many ports a target needs.
    pub fn port_count(&self, target: usize) -> usize {
        3 + 3 * self.file.targets[self.targets[target].section].get_ref().beside.len()
    }

    /// Whether a target is measured at a point.
    pub fn is_measured(&self, target: usize, point: &Point, context: &RunContext) -> bool {
        self.case(target, point, context).is_ok_and(|case| case.is_measured)
    }

    fn scope(
        &self,
        section: &TargetSection,
        target: &str,
        point: &Point,
        context: &RunContext,
    ) -> Result<Scope<'_>, FileError> {
        let mut values = built_in();
        let mut ports = context.ports.iter().map(u16::to_string);
        let mut port = || ports.next().unwrap_or_else(|| "1".to_owned());
        values.insert("port".to_owned(), port());
        values.insert("http_port".to_owned(), port());
        let names = section.beside.iter().filter_map(|beside| beside.get_ref().name.as_ref());
        let names: Vec<&String> = names.map(Spanned::get_ref).collect();
        for name in &names {
            values.insert(format!("{name}.port"), port());
            let directory = context.directory.join(name).to_string_lossy().into_owned();
            values.insert(format!("{name}.directory"), directory);
        }
        for name in &names {
            values.insert(format!("{name}.http_port"), port());
        }
        for name in &names {
            values.insert(format!("{name}.link_port"), port());
        }
        values.insert("link_port".to_owned(), port());
        // Those of the target itself, for the processes beside it.
        for name in ["port", "http_port", "link_port"] {
            let own = values.get(name).cloned().unwrap_or_default();
            values.insert(format!("target.{name}"), own);
        }
        values.insert("directory".to_owned(), context.directory.to_string_lossy().into_owned());
        let certificates = context.directory.join("tls").to_string_lossy().into_owned();
        values.insert("tls_directory".to_owned(), certificates);
        values.insert("repetition".to_owned(), context.repetition.to_string());
        values.insert("target".to_owned(), target.to_owned());
        values.extend(point.clone());
        let mut scope = self.scope_of(values);
        // A value may be made of built-in ones, of swept ones, and of others.
        let mut left: Vec<(&String, &Spanned<Value>)> = self.values.iter().collect();
        while !left.is_empty() {
            let mut later = Vec::new();
            let mut mistake = None;
            for &(name, value) in &left {
                match value_at(&scope, value) {
                    Ok(text) => {
                        scope.values.insert(name.clone(), text);
                    }
                    Err(error) => {
                        later.push((name, value));
                        mistake = mistake.or(Some(error));
                    }
                }
            }
            if let Some(error) = mistake.filter(|_| later.len() == left.len()) {
                return Err(error);
            }
            left = later;
        }
        Ok(scope)
    }

    /// A scope with these values.
    fn scope_of(&self, values: BTreeMap<String, String>) -> Scope<'_> {
        let encryption = self.encryption.as_ref();
        Scope { path: &self.path, text: &self.text, values, encryption }
    }

    /// Each kind of each section is a target; two of the same name are a mistake.
    fn members(&self, choice: &Choice) -> Result<Vec<Member>, FileError> {
        let mut members: Vec<Member> = Vec::new();
        for (section, target) in self.file.targets.iter().enumerate() {
            for (kind, name) in self.kinds_of(target)? {
                if members.iter().any(|member| member.name == name) {
                    let message = format!("two targets are called '{name}'; give one another name");
                    return Err(self.error_at(target.span().start, message));
                }
                members.push(Member { section, kind, name });
            }
        }
        if members.is_empty() {
            return Err(FileError::whole(&self.path, "there is no [[target]]"));
        }
        if choice.targets.is_empty() {
            return Ok(members);
        }
        let is_meant = |member: &Member, wanted: &String| {
            member.name == *wanted || member.kind.is_some_and(|kind| kind.name == wanted)
        };
        for wanted in &choice.targets {
            if !members.iter().any(|member| is_meant(member, wanted)) {
                let known = members.iter().map(|member| member.name.as_str());
                let message = format!("there is no target '{wanted}'{}", guess(wanted, known));
                return Err(FileError::whole(&self.path, message));
            }
        }
        members.retain(|member| choice.targets.iter().any(|wanted| is_meant(member, wanted)));
        Ok(members)
    }

    /// The kinds that a section names, each with the name of its target.
    fn kinds_of(
        &self,
        section: &Spanned<TargetSection>,
    ) -> Result<Vec<(Option<&'static Kind>, String)>, FileError> {
        let target = section.get_ref();
        let origins = usize::from(target.kind.is_some())
            + usize::from(target.kinds.is_some())
            + usize::from(target.command.is_some())
            + usize::from(target.address.is_some());
        let error = |offset, message| Err(self.error_at(offset, message));
        if origins != 1 {
            let message = "a target has exactly one of kind, kinds, command and address".to_owned();
            return error(section.span().start, message);
        }
        let named: Vec<(&str, usize)> = match (&target.kind, &target.kinds) {
            (Some(kind), _) => vec![(kind.get_ref().as_str(), kind.span().start)],
            (_, Some(kinds)) => {
                kinds.get_ref().iter().map(|kind| (kind.as_str(), kinds.span().start)).collect()
            }
            _ => {
                return match &target.name {
                    Some(name) => Ok(vec![(None, name.get_ref().clone())]),
                    None => error(section.span().start, "this target needs a name".to_owned()),
                };
            }
        };
        let mut kinds = Vec::new();
        for (word, offset) in named {
            let Some(kind) = Kind::named(word) else {
                let known = KINDS.iter().map(|kind| kind.name);
                return error(offset, format!("there is no kind '{word}'{}", guess(word, known)));
            };
            let name = match &target.name {
                Some(name) if target.kinds.is_some() => {
                    format!("{} {}", kind.title, name.get_ref())
                }
                Some(name) => name.get_ref().clone(),
                None => kind.title.to_owned(),
            };
            kinds.push((Some(kind), name));
        }
        Ok(kinds)
    }

    fn size(&self, choice: &Choice) -> &SizeSection {
        if choice.full { &self.file.full } else { &self.file.quick }
    }

    /// The values of placeholders: the file's, replaced by the size's, and both replaced by the
    /// command line's.
    fn fill_in_values(&mut self, choice: &Choice) -> Result<(), FileError> {
        let scope = self.scope_of(built_in());
        let size = self.size(choice);
        let mut values: BTreeMap<String, Spanned<Value>> = BTreeMap::new();
        for (name, value) in self.file.values.iter().chain(&size.values) {
            if BUILT_IN.contains(&name.as_str()) {
                let message = format!("{{{name}}} has a meaning already");
                return Err(scope.error_at(value.span().start, message));
            }
            values.insert(name.clone(), value.clone());
        }
        let mut axes: Vec<(&String, &Spanned<Axis>)> = self.file.matrix.iter().collect();
        axes.sort_by_key(|(_, axis)| axis.span().start);
        // Parameters that only a size sweeps come last.
        axes.extend(size.matrix.iter().filter(|(name, _)| !self.file.matrix.contains_key(*name)));
        let mut matrix = Vec::new();
        for (name, axis) in axes {
            let axis = size.matrix.get(name).unwrap_or(axis);
            if values.contains_key(name) || BUILT_IN.contains(&name.as_str()) {
                let message = format!("{{{name}}} has a meaning already");
                return Err(scope.error_at(axis.span().start, message));
            }
            let axis_values = axis_values(&scope, axis)?;
            if axis_values.is_empty() {
                return Err(scope.error_at(axis.span().start, "there is no value to sweep"));
            }
            matrix.push((name.clone(), axis_values));
        }
        for (name, text) in &choice.set {
            if let Some((_, values)) = matrix.iter_mut().find(|(swept, _)| swept == name) {
                *values = text.split(',').map(|value| value.trim().to_owned()).collect();
            } else if let Some(value) = values.get_mut(name) {
                *value = Spanned::new(value.span(), Value::Plain(Template(text.clone())));
            } else {
                let known: Vec<&str> = values
                    .keys()
                    .chain(matrix.iter().map(|(name, _)| name))
                    .map(String::as_str)
                    .collect();
                let guess = guess(name, known.iter().copied());
                return Err(FileError::whole(
                    &self.path,
                    format!("--set {name}: the experiment has no such value{guess}"),
                ));
            }
        }
        (self.values, self.matrix) = (values, matrix);
        Ok(())
    }

    fn count_repetitions(&self, choice: &Choice) -> Result<u32, FileError> {
        if let Some(count) = choice.repetitions {
            return Ok(count.max(1));
        }
        let scope = self.scope_of(built_in());
        let field = self.size(choice).repetitions.as_ref().or(self.file.repetitions.as_ref());
        scope.positive_or(field, 1)
    }

    /// The report would silently leave out a view that it does not know.
    fn check_views(&self) -> Result<(), FileError> {
        let known = || {
            let views = VIEWS.iter().chain(&OWN_FIGURES).chain(&figures::NAMES);
            views.copied().chain(QUANTILES.iter().map(|(name, _)| *name))
        };
        match self.file.views().iter().find(|view| known().all(|name| name != view.as_str())) {
            None => Ok(()),
            Some(view) => {
                let offset = self.file.views.as_ref().map_or(0, |views| views.span().start);
                let message = format!("there is no view '{view}'{}", guess(view, known()));
                Err(self.error_at(offset, message))
            }
        }
    }

    /// The same for the columns that the page for a repository shows.
    fn check_columns(&self) -> Result<(), FileError> {
        let known = || OWN_FIGURES.iter().chain(&figures::NAMES).copied();
        let known = || known().chain(QUANTILES.iter().map(|(name, _)| *name));
        let unknown = |column: &&String| known().all(|name| name != column.as_str());
        match self.file.columns().iter().find(unknown) {
            None => Ok(()),
            Some(column) => {
                let offset = self.file.columns.as_ref().map_or(0, |columns| columns.span().start);
                let guess = guess(column, known());
                Err(self.error_at(offset, format!("there is no figure '{column}'{guess}")))
            }
        }
    }

    /// Fills in everything once.
    fn check_all(&self) -> Result<(), FileError> {
        let directory = PathBuf::from("directory");
        let context = RunContext { ports: Vec::new(), directory, repetition: 0 };
        for point in self.points() {
            for target in 0..self.targets.len() {
                self.case(target, &point, &context)?;
            }
        }
        Ok(())
    }

    fn error_at(&self, offset: usize, message: impl Into<String>) -> FileError {
        FileError::at(&self.path, &self.text, offset, message)
    }
}

/// The values of placeholders in every file.
fn built_in() -> BTreeMap<String, String> {
    let cores = cpus::count();
    let program = std::env::current_exe();
    let program = program.as_deref().unwrap_or(Path::new("dunlin")).to_string_lossy().into_owned();
    let values = [
        ("cores", cores.to_string()),
        ("last_core", (cores - 1).to_string()),
        ("other_cores", (cores - 1).clamp(1, MOST_OTHER_CORES).to_string()),
        ("dunlin", program),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The value of a placeholder at a point of the matrix.
fn value_at(scope: &Scope<'_>, value: &Spanned<Value>) -> Result<String, FileError> {
    let fill = |template: &Template| scope.text(&Spanned::new(value.span(), template.clone()));
    let table = match value.get_ref() {
        Value::Plain(template) => return fill(template),
        Value::By(table) => table,
    };
    let error = |message: String| Err(scope.error_at(value.span().start, message));
    let Some(Template(by)) = table.get("by") else {
        return error("a value that is a table says by which parameter: by = \"..\"".to_owned());
    };
    let Some(key) = scope.values.get(by) else {
        let known = scope.values.keys().map(String::as_str);
        return error(format!("nothing is called {{{by}}}{}", guess(by, known)));
    };
    match table.get(key).or_else(|| table.get("else")) {
        Some(template) => fill(template),
        None => error(format!("it says nothing for {by} = \"{key}\", and has no else")),
    }
}

/// The values of a swept parameter.
fn axis_values(scope: &Scope<'_>, axis: &Spanned<Axis>) -> Result<Vec<String>, FileError> {
    let fill = |template: &Template| scope.text(&Spanned::new(axis.span(), template.clone()));
    let range = match axis.get_ref() {
        Axis::List(list) => return list.iter().map(fill).collect(),
        Axis::Range(range) => fill(range)?,
    };
    let Some((first, last)) = range.split_once("..") else { return Ok(vec![range]) };
    let bounds = first.trim().parse::<u64>().ok().zip(last.trim().parse::<u64>().ok());
    match bounds {
        Some((first, last)) if 0 < first && first <= last => {
            let mut values: Vec<u64> =
                std::iter::successors(Some(first), |value| value.checked_mul(2))
                    .take_while(|value| *value < last)
                    .collect();
            values.push(last);
            Ok(values.iter().map(u64::to_string).collect())
        }
        _ => {
            let message = format!("'{range}' is no range of numbers from 1 up, as 1..8");
            Err(scope.error_at(axis.span().start, message))
        }
    }
}

#[cfg(test)]
mod tests;
