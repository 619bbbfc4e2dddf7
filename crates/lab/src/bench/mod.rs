//! `dunlin bench`: runs loads one after the other, with redis-benchmark's options and output.

mod files;
mod help;
mod options;
mod plans;
mod progress;
mod text;
pub(crate) mod url;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::agent::{self, Agents, Token};
use crate::load::{self, Address, Control, Pace, Work, name_of_option};
use crate::record::Recording;
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;
use options::{Invocation, Options};
use plans::Measurement;
use progress::Shown;
use resp::client::Value;
use text::KernelParameters;

/// What is said of a word that is no option.
pub fn unknown_option(word: &str) -> String {
    format!("there is no option {}", name_of_option(word))
}

/// Understands `redis://user:password@host:port/database`.
///
/// # Errors
/// What is wrong with it.
pub fn redis_address(url: &str) -> Result<Address, String> {
    let mut address = Address::default();
    url::redis(url, &mut address)?;
    Ok(address)
}

/// A wrong command line: nothing was started.
const MISTAKE: u8 = 2;
/// The exit code that shells use after SIGINT.
const INTERRUPTED: u8 = 130;
/// How long the server may take to return its settings.
const SETTINGS_PATIENCE: Duration = Duration::from_secs(5);

/// Carries out `dunlin bench ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    let options = match options::parse(arguments) {
        Ok(Invocation::Help) => return say(help::USAGE, ExitCode::SUCCESS),
        Ok(Invocation::Version) => {
            let version = format!("dunlin bench {}\n", env!("CARGO_PKG_VERSION"));
            return say(&version, ExitCode::SUCCESS);
        }
        Ok(Invocation::Bench(options)) => *options,
        Err(message) => {
            complain(&format!("{message}\n\ndunlin bench --help lists the options."));
            return ExitCode::from(MISTAKE);
        }
    };
    let measurements = match plans::plans(&options) {
        Ok(measurements) => measurements,
        Err(message) => {
            complain(&message);
            return ExitCode::from(MISTAKE);
        }
    };
    if options.shows_errors {
        complain("WARNING: -e changes nothing: errors are always reported");
    }
    if options.hlog.is_some() && measurements.len() != 1 {
        complain("--hlog holds one load: choose one with -t, or use --mix");
        return ExitCode::from(MISTAKE);
    }
    load::descriptors::raise_limit();
    match Bench::new(options).and_then(|mut bench| bench.run(&measurements)) {
        Ok(code) => code,
        Err(message) => {
            complain(&message);
            ExitCode::FAILURE
        }
    }
}

/// The loads that are run, and their results.
struct Bench {
    options: Options,
    interrupt: Interrupt,
    settings: KernelParameters,
    /// The agents that send, if this process does not.
    agents: Option<Agents>,
    /// The name and the recording of each load that has run.
    recordings: Vec<(String, Recording)>,
    has_failed: bool,
}

impl Bench {
    fn new(options: Options) -> Result<Self, String> {
        let interrupt = Interrupt::by_signals()
            .map_err(|error| format!("signals cannot be caught: {error}"))?;
        let agents = match &options.agents[..] {
            [] => None,
            addresses => {
                let token = Token::find(options.token_file.as_deref());
                let token = token.map_err(|error| error.to_string())?;
                Some(Agents { addresses: addresses.to_vec(), token })
            }
        };
        Ok(Bench {
            options,
            interrupt,
            agents,
            settings: KernelParameters::default(),
            recordings: Vec::new(),
            has_failed: false,
        })
    }

    fn run(&mut self, measurements: &[Measurement]) -> Result<ExitCode, String> {
        if self.options.idle {
            return self.idle(measurements);
        }
        if !self.options.quiet && !self.options.csv && self.options.urls.is_empty() {
            self.ask_for_settings();
        }
        if self.options.csv {
            write(text::CSV_HEAD);
        }
        let measured = self.measure_all(measurements);
        // The results so far are written, also when a later load has failed.
        let written = match &self.recordings[..] {
            [] if measured.is_err() => Ok(()),
            recordings => files::write(&self.options, recordings),
        };
        measured.and(written)?;
        Ok(match (self.interrupt.is_set(), self.has_failed) {
            (true, _) => ExitCode::from(INTERRUPTED),
            (false, true) => ExitCode::FAILURE,
            (false, false) => ExitCode::SUCCESS,
        })
    }

    /// Runs all loads; with `-l` again and again until interrupted.
    fn measure_all(&mut self, measurements: &[Measurement]) -> Result<(), String> {
        loop {
            for (at, measurement) in measurements.iter().enumerate() {
                self.measure(measurement, (at + 1, measurements.len()))?;
                if self.interrupt.is_set() {
                    break;
                }
            }
            if !self.options.repeat || self.interrupt.is_set() || measurements.is_empty() {
                break;
            }
            self.recordings.clear();
        }
        if !self.options.csv && self.options.command.is_empty() {
            write("\n");
        }
        Ok(())
    }

    /// Runs one load, and prints its results.
    fn measure(&mut self, measurement: &Measurement, place: (usize, usize)) -> Result<(), String> {
        let control = Control::default();
        let (title, plan) = (&measurement.title, &measurement.plan);
        let shown = Shown { title, place, requests: plan.requests, seconds: plan.seconds };
        let shown = io::stderr().is_terminal().then_some(&shown);
        let result = progress::beside(shown, &control, &self.interrupt, || {
            self.carry_out(measurement, &control)
        });
        let recording = result?;
        let (title, digits) = (&measurement.title, self.options.precision);
        write(&if self.options.csv {
            text::csv(title, &recording, digits)
        } else if self.options.quiet {
            text::quiet(title, &recording, digits)
        } else {
            text::full(measurement, &recording, &self.settings, digits)
        });
        self.judge(title, &recording);
        self.recordings.push((title.clone(), recording));
        Ok(())
    }

    /// Runs the load here, or has agents run it.
    fn carry_out(&self, measurement: &Measurement, control: &Control) -> Result<Recording, String> {
        let plan = &measurement.plan;
        let Some(agents) = &self.agents else {
            return load::run(plan, control).map_err(|error| error.to_string());
        };
        let seen = agent::run(plan, control, agents).map_err(|error| error.to_string())?;
        if !self.options.quiet && !self.options.csv {
            for (address, (ahead, error)) in agents.addresses.iter().zip(&seen.clocks) {
                complain(&format!("agent {address}: clock {ahead:+.3} ms (+-{error:.3}) of ours"));
            }
        }
        Ok(seen.recording)
    }

    /// Reports what is wrong with a recording.
    fn judge(&mut self, title: &str, recording: &Recording) {
        let errors = text::errors(recording);
        if !errors.is_empty() {
            self.has_failed = true;
            complain(errors.trim_end());
        }
        if let Some(reason) = recording.interrupted.as_deref().filter(|_| !self.interrupt.is_set())
        {
            self.has_failed = true;
            complain(&format!("{title}: ended early: {reason}"));
        }
        let is_open = matches!(recording.plan.pace, Pace::Open { .. });
        let word = if is_open { "INVALID" } else { "WARNING: INVALID" };
        let generator = &recording.generator;
        for reason in generator.invalid.iter().chain(&generator.late) {
            self.has_failed |= is_open;
            complain(&format!("{word}: {title}: {reason}"));
        }
        for reason in &recording.generator.overloaded {
            self.has_failed = true;
            complain(&format!("OVERLOADED: {title}: {reason}"));
        }
        let counts = recording.is_valid() && generator.late.is_empty();
        if let Some(from) = generator.doubtful_from.filter(|_| counts) {
            let from = text::percentile(from);
            complain(&format!("NOTE: {title}: {from} may be the generator's own"));
        }
    }

    /// Opens connections and waits, until it is interrupted.
    fn idle(&self, measurements: &[Measurement]) -> Result<ExitCode, String> {
        let Some(Measurement { plan, .. }) = measurements.first() else {
            return Err("there is no load to be idle for".to_owned());
        };
        if matches!(plan.work, Work::Http(_)) {
            return Err("-I is for the Redis protocol".to_owned());
        }
        let count = plan.connections;
        write(&format!(
            "Creating {count} idle connections and waiting forever (Ctrl+C when done)\n"
        ));
        let control = Control::default();
        let told = |open: usize| {
            if open == count {
                write(&format!("clients: {open}\n"));
            }
        };
        let result =
            progress::beside(None, &control, &self.interrupt, || load::idle(plan, &control, told));
        result.map_err(|error| error.to_string())?;
        Ok(ExitCode::from(INTERRUPTED))
    }

    /// Asks the server for the settings that the report names.
    fn ask_for_settings(&mut self) {
        let address = &self.options.address;
        if address.socket.is_some() || address.user.is_some() {
            return complain(
                "WARNING: the server's CONFIG is asked for without -s and --user only",
            );
        }
        let endpoint = Endpoint {
            host: address.host.clone(),
            port: address.port,
            password: address.password.clone(),
            encryption: address.encryption.clone(),
        };
        let asked = endpoint.connect(SETTINGS_PATIENCE).and_then(|mut connection| {
            let mut setting =
                |name| connection.call(&["CONFIG", "GET", name]).map(|reply| value(&reply));
            Ok((setting("save")?, setting("appendonly")?))
        });
        match asked {
            Ok((Some(save), Some(append_only))) => {
                self.settings = KernelParameters { save, append_only };
            }
            _ => complain("WARNING: Could not fetch server CONFIG"),
        }
    }
}

/// The value in an answer of CONFIG GET.
fn value(reply: &Value) -> Option<String> {
    let value = match reply {
        Value::Array(pair) => pair.get(1)?,
        Value::Map(pairs) => &pairs.first()?.1,
        _ => return None,
    };
    Some(String::from_utf8_lossy(value.as_bytes()?).into_owned())
}

/// Prints to standard output. If its reader has gone the load goes on, because its files may be
/// wanted.
fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    write(text);
    code
}

/// Prints to standard error; if that fails, nobody can be told.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
