//! Reports of invented results: what a reader must find in them, and what must never be in them.

use std::collections::BTreeMap;
use std::path::Path;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use lab::record::{Latency, Second};
use lab::report;
use lab::results::{AgentClock, Check, ExperimentResult, Results, Run, Skipped};

mod markup;
mod sample;

use sample::Shape;

const SHAPE: Shape = Shape { rate: 50_000.0, median_ms: 0.5, tail: 0.3, seconds: 3, open: false };

fn steady(_: u32) -> (f64, f64) {
    (1.0, 1.0)
}

/// A run at a rate, which is exact but for the little that runs differ.
fn run(target: &str, repetition: u32, rate: f64) -> Run {
    let median_ms = 25_000.0 / rate;
    sample::run(target, &[], repetition, &Shape { rate, median_ms, ..SHAPE }, steady)
}

fn with(experiment: ExperimentResult) -> Results {
    Results { experiments: vec![experiment], ..sample::empty() }
}

fn plain() -> ExperimentResult {
    sample::experiment("plain", "A plain experiment", "Which one is faster?", None)
}

/// All files of a report by their names.
fn files(results: &Results) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let written = report::write_all(results, directory.path()).expect("it is written");
    let mut files = BTreeMap::new();
    for path in written {
        let name = path.strip_prefix(directory.path()).expect("it lies within");
        let text = std::fs::read_to_string(&path).expect("it is there");
        files.insert(name.to_str().expect("plain letters").to_owned(), text);
    }
    files
}

/// The page and all charts are well-formed, need nothing from elsewhere, and contain only numbers
/// that are numbers. Returns the page.
fn check(results: &Results) -> String {
    let files = files(results);
    let documents =
        files.iter().filter(|(name, _)| name.ends_with(".html") || name.ends_with(".svg"));
    for (name, text) in documents {
        for element in markup::elements(text) {
            for (attribute, value) in &element.attributes {
                check_attribute(name, &element.name, attribute, value);
            }
        }
        assert!(!text.contains("@import") && !text.contains("url("), "{name} fetches");
    }
    files["report.html"].clone()
}

fn check_attribute(file: &str, element: &str, attribute: &str, value: &str) {
    match attribute {
        "href" => assert!(value.starts_with('#'), "{file}: a link to {value}"),
        "src" | "srcset" | "action" => panic!("{file}: {element} fetches {value}"),
        "xmlns" => assert_eq!(value, "http://www.w3.org/2000/svg"),
        "x" | "y" | "x1" | "x2" | "y1" | "y2" | "cx" | "cy" | "r" | "width" | "height" => {
            let number: f64 =
                value.parse().unwrap_or_else(|_| panic!("{file}: {attribute} {value}"));
            assert!(number.is_finite() && number.abs() < 1e5, "{file}: {attribute} {value}");
        }
        "d" | "points" | "viewBox" => {
            assert!(!value.contains("NaN") && !value.contains("inf"), "{file}: {value}");
        }
        _ => assert!(!attribute.starts_with("on"), "{file}: {attribute}"),
    }
}

/// Whether the table of a page that compares two targets has this ratio of a figure.
fn is_shown(page: &str, figure: &str, ratio: &str) -> bool {
    page.contains(&format!(">{figure}</td><td class=\"number\">{ratio}</td>"))
}

#[test]
fn a_report_tells_questions_machines_versions_and_commands() {
    let page = check(&sample::results());
    for text in [
        "AMD EPYC 7B13 · 2 processors · 8 GiB of memory",
        "2026-11-22 00:13 UTC",
        "What does each persistence mode cost, and does the cost fall with the number of connections?",
        "redis-server 7.0.15",
        "dunlin serve --port 7001 --threads 1",
        "redis-server --port 7002 --save &#39;&#39;",
        "50 connections from 1 thread, closed loop, SET, 1\u{202f}000\u{202f}000 keys, Zipf",
        "dunlin / redis-server",
        "CONFIG SET appendfsync everysec",
        "limit 2 ms",
        "percentile of requests",
    ] {
        assert!(page.contains(text), "missing: {text}");
    }
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing from a network");
}

#[test]
fn what_is_in_doubt_is_named() {
    let page = check(&sample::results());
    for text in [
        "Skipped: valkey-server (not found on this machine), dragonfly (not found on this machine).",
        "dunlin at fsync none, connections 200, repetition 2, INVALID and not counted: the busiest \
         sending thread took 97 % of a processor.",
        "redis-server at pipeline 16, test ZPOPMIN, repetition 1 and 2 more runs, failed: no reply \
         to PING within 5 s.",
        "Every figure comes from fewer than three runs",
        "There is no valid run, so there is no answer.",
        "dunlin lost none of 2\u{202f}437\u{202f}038 acknowledged writes",
        "redis-server lost 3\u{202f}615 of 2\u{202f}437\u{202f}038 acknowledged writes",
    ] {
        assert!(page.contains(text), "missing: {text}");
    }
}

#[test]
fn failures_stand_right_below_the_verdict() {
    let page = check(&sample::results());
    let failed = page.find("no reply to PING within 5 s").expect("it is told");
    let section = page[..failed].rfind("<section").expect("of an experiment");
    assert!(!page[section..failed].contains("<table"), "tables come later");
    let contents = page.find("<main").expect("the experiments follow");
    assert!(page[..contents].contains(" failed.</span>"), "the list of questions tells it");
}

#[test]
fn a_server_has_the_same_colour_in_all_reports() {
    let colours = |targets: &[&str]| -> BTreeMap<String, String> {
        let mut experiment = plain();
        experiment.targets.truncate(1);
        let template = experiment.targets[0].clone();
        experiment.targets = targets
            .iter()
            .map(|name| lab::results::TargetInfo { name: (*name).to_owned(), ..template.clone() })
            .collect();
        experiment.runs = targets.iter().map(|name| run(name, 0, 50_000.0)).collect();
        experiment.views = vec!["memory-over-time".to_owned()];
        let files = files(&with(experiment));
        let chart = files.iter().find(|(name, _)| name.ends_with("memory-over-time.svg"));
        let (_, chart) = chart.expect("a chart");
        let names = chart.split("class=\"s").skip(1).filter_map(|rest| {
            let (class, rest) = rest.split_once('"')?;
            let text = targets.iter().find(|name| rest.contains(&format!(">{name}<")))?;
            Some(((*text).to_owned(), class.to_owned()))
        });
        names.collect()
    };
    let both = colours(&["dunlin", "redis-server", "a service"]);
    let other = colours(&["valkey-server", "redis-server", "another", "a service"]);
    assert_eq!((both.len(), other.len()), (3, 4), "{both:?} {other:?}");
    assert_eq!(both["redis-server"], other["redis-server"]);
    assert_eq!(both["a service"], other["a service"]);
}

#[test]
fn an_invalid_run_counts_in_no_figure() {
    let mut experiment = plain();
    for repetition in 0..3 {
        experiment.runs.push(run("dunlin", repetition, 100_000.0));
        experiment.runs.push(run("redis-server", repetition, 50_000.0));
    }
    let without = check(&with(experiment.clone()));
    assert!(is_shown(&without, "throughput", "1.97×"), "{without}");
    for repetition in 3..8 {
        let mut wrong = run("dunlin", repetition, 900_000.0);
        wrong.loads[0].recording.generator.invalid.push("It was late.".to_owned());
        experiment.runs.push(wrong);
    }
    let page = check(&with(experiment));
    let answer = |page: &str| {
        let (_, rest) = page.split_once("<p class=\"answer\">").expect("an answer");
        rest.split_once("</p>").expect("its end").0.to_owned()
    };
    assert_eq!(answer(&page), answer(&without));
    assert!(page.contains("3 of 8 runs"), "the table says how many count");
    assert!(
        page.contains(
            "dunlin, repetition 4 and 4 more runs, INVALID and not counted: It was late."
        )
    );
}

#[test]
fn a_late_generator_spoils_response_times_only() {
    let mut experiment = ExperimentResult { answers: Some("E1".to_owned()), ..plain() };
    for repetition in 0..3 {
        for (target, rate) in [("dunlin", 100_000.0), ("redis-server", 50_000.0)] {
            let mut one = run(target, repetition, rate);
            let generator = &mut one.loads[0].recording.generator;
            generator.late.push("It was late.".to_owned());
            generator.doubtful_from = Some(0.99);
            experiment.runs.push(one);
        }
    }
    experiment.columns =
        ["throughput", "peak_memory_bytes", "p50", "p99"].map(str::to_owned).to_vec();
    let results = with(experiment);
    let page = check(&results);
    assert!(is_shown(&page, "throughput", "1.97×"), "{page}");
    let caution = "dunlin, repetition 1 and 2 more runs, response times INVALID and not counted: It \
                   was late.";
    assert!(page.contains(caution), "{page}");
    assert!(page.contains("valid without its times: It was late."));
    let markdown = report::markdown(&results);
    let (_, table) = markdown.split_once("| target | TPS |").expect("the table of columns");
    let row = table.lines().find(|line| line.starts_with("| dunlin |")).expect("its row");
    let fields: Vec<&str> = row.split(" | ").collect();
    assert!(fields[1..4].iter().all(|field| *field != "INVALID"), "{row}");
    assert_eq!(fields[4], "INVALID |", "{row}");
    assert!(report::csv(&results).contains(",late,It was late.,"));
}

#[test]
fn what_answers_no_published_question_comes_last_on_the_page() {
    let mut experiment = plain();
    for repetition in 0..3 {
        experiment.runs.push(run("dunlin", repetition, 50_000.0));
    }
    let markdown = report::markdown(&with(experiment.clone()));
    let (published, beyond) = markdown.split_once("## Beyond these").expect("its section");
    assert!(!published.contains("A plain experiment"), "{markdown}");
    assert!(beyond.contains("### A plain experiment") && !beyond.contains("## E"), "{markdown}");
    experiment.answers = Some("E1".to_owned());
    assert!(!report::markdown(&with(experiment)).contains("Beyond these"));
}

#[test]
fn a_verdict_says_who_is_ahead_where_and_by_how_much() {
    let mut experiment = plain();
    let connections = ["1", "50", "500"];
    experiment.matrix = vec![(
        "connections".to_owned(),
        connections.iter().map(|count| (*count).to_owned()).collect(),
    )];
    // Ahead, level and behind.
    for (connection, factor) in connections.into_iter().zip([2.0, 1.0, 0.8]) {
        for repetition in 0..5 {
            for (target, factor) in [("dunlin", factor), ("redis-server", 1.0)] {
                let rate = 50_000.0 * factor;
                let shape = Shape { rate, median_ms: 25_000.0 / rate, ..SHAPE };
                let mut one =
                    sample::run(target, &[("connections", connection)], repetition, &shape, steady);
                one.figures.clear();
                experiment.runs.push(one);
            }
        }
    }
    experiment.views = vec!["throughput".to_owned(), "p50".to_owned()];
    let markdown = report::markdown(&Results {
        experiments: vec![ExperimentResult { answers: Some("E1".to_owned()), ..experiment }],
        ..sample::empty()
    });
    let verdicts: Vec<&str> = markdown.lines().filter(|line| line.starts_with("**")).collect();
    let [verdict] = verdicts[..] else { panic!("one sentence: {verdicts:?}") };
    // A mean over opposite points would be true of none.
    assert!(verdict.starts_with("**dunlin: 0.") && verdict.contains("× to "), "{verdict}");
    let end = "× the throughput of redis-server. 1 of 3 ahead, 1 level, 1 behind.**";
    assert!(verdict.ends_with(end), "{verdict}");
    for (figure, behind) in [("throughput", "0."), ("p50 response time", "1.")] {
        let names = format!("| dunlin | redis-server | {figure} | ");
        let row = markdown.lines().find(|line| line.starts_with(&names)).expect("its details");
        assert!(row.contains(&format!("× | 1 | 1 | 1 | {behind}")), "{row}");
    }
    let row = markdown.lines().find(|line| line.starts_with("| connections 50 |")).expect("a row");
    assert!(row.ends_with("×, tie |"), "a tie has its ratio: {row}");
}

#[test]
fn what_only_invalid_runs_have_hides_no_answer() {
    let mut experiment = plain();
    for repetition in 0..3 {
        for (target, rate) in [("dunlin", 100_000.0), ("redis-server", 50_000.0)] {
            experiment.runs.push(run(target, repetition, rate));
            let mut wrong = run(target, repetition, rate);
            wrong.loads[0].recording.generator.invalid.push("It was late.".to_owned());
            for name in ["p99_during_events_ms", "p99_quiet_ms"] {
                wrong.figures.insert(name.to_owned(), 3.0);
            }
            experiment.runs.push(wrong);
        }
    }
    let page = check(&with(experiment));
    assert!(is_shown(&page, "throughput", "1.97×"), "{page}");
}

#[test]
fn what_was_asked_without_a_valid_run_gets_no_other_answer() {
    let mut experiment = ExperimentResult { answers: Some("E1".to_owned()), ..plain() };
    for (target, rate) in [("dunlin", 100_000.0), ("redis-server", 50_000.0)] {
        let mut one = run(target, 0, rate);
        one.figures.insert("p99_during_events_ms".to_owned(), 3.0);
        if target == "redis-server" {
            let generator = &mut one.loads[0].recording.generator;
            generator.late.push("It was late.".to_owned());
            generator.doubtful_from = Some(0.99);
        }
        experiment.runs.push(one);
    }
    experiment.views =
        ["p99_during_events_ms", "server_cpu_us_per_request"].map(str::to_owned).to_vec();
    let markdown = report::markdown(&with(experiment));
    let verdicts: Vec<&str> = markdown.lines().filter(|line| line.starts_with("**")).collect();
    let none = "**dunlin and redis-server: no valid answer, since no run of redis-server has a valid p99 \
                during events.**";
    assert_eq!(verdicts, [none]);
    let details = "| dunlin | redis-server | server CPU time per request | 0.";
    assert!(markdown.contains(details), "{markdown}");
}

#[test]
fn a_loss_is_told_of_a_run_that_does_not_count_otherwise() {
    for spoil in [
        (|run| run.loads[0].recording.generator.invalid.push("It was late.".to_owned()))
            as fn(&mut Run),
        |run| run.failure = Some("it was too slow".to_owned()),
    ] {
        let mut experiment = plain();
        for (repetition, lost) in [(0, 0), (1, 7)] {
            let mut one = run("dunlin", repetition, 50_000.0);
            one.check = Some(Check { acknowledged: 100, lost, ..Check::default() });
            experiment.runs.push(one);
        }
        spoil(&mut experiment.runs[1]);
        let page = check(&with(experiment));
        assert!(page.contains("dunlin lost 7 of"), "{page}");
    }
}

#[test]
fn an_overloaded_run_counts_and_is_named() {
    let mut experiment = plain();
    for repetition in 0..3 {
        experiment.runs.push(run("dunlin", repetition, 100_000.0));
        let mut bad = run("redis-server", repetition, 50_000.0);
        bad.loads[0].recording.generator.overloaded.push("Requests never left.".to_owned());
        experiment.runs.push(bad);
    }
    let results = with(experiment);
    let page = check(&results);
    for text in [
        "redis-server could not keep up with the load in 3 of 3 runs.",
        "redis-server, repetition 1 and 2 more runs, overloaded, which counts: Requests never left.",
        " overloaded in 3 of 3</small>",
        "valid, overloaded: Requests never left.",
    ] {
        assert!(page.contains(text), "missing: {text}");
    }
    assert!(is_shown(&page, "throughput", "1.97×"), "{page}");
    assert!(report::csv(&results).contains(",overloaded,Requests never left.,"));
}

#[test]
fn recovery_is_told_in_a_sentence_for_each_target() {
    let page = check(&sample::results());
    for (target, time) in [("dunlin", "2.4 s"), ("redis-server", "4.4 s")] {
        let recovered = format!("{target}: back at 90 % of its throughput after {time}.");
        assert!(page.contains(&recovered), "{page}");
    }
    let mut results = sample::results();
    results.experiments.retain(|experiment| experiment.name == "self-heal");
    let runs = results.experiments[0].runs.iter_mut();
    for (index, run) in runs.filter(|run| run.target == "dunlin").enumerate() {
        let check = run.check.as_mut().expect("it looked");
        (check.stale_reads, check.wrong) = (2, 1);
        check.recovery_seconds = None;
        if index == 0 {
            run.figures.remove("recovery_seconds");
        }
    }
    let page = check(&results);
    for text in [
        "dunlin: back at 90 % of its throughput after 2.4 s, but not in 1 of 3 runs.",
        "acknowledged writes, with 6 stale reads, with 3 values that nobody wrote. redis-server",
        "not recovered in 1 of 3</small>",
    ] {
        assert!(page.contains(text), "missing: {text}");
    }
}

#[test]
fn a_server_that_keeps_up_with_no_rate_is_a_bad_result() {
    let mut results = sample::results();
    results.experiments.retain(|experiment| experiment.name == "knee");
    for run in &mut results.experiments[0].runs {
        let knee = run.knee.as_mut().expect("it looked for one");
        knee.steps[4].invalid.push("It was late.".to_owned());
        if run.target == "dunlin" {
            knee.limited_by_generator = true;
        } else {
            knee.best_rate = None;
        }
    }
    let page = check(&results);
    for text in ["no good rate</td>", "dunlin, at least ", "the rate is a lower bound."] {
        assert!(page.contains(text), "missing: {text}");
    }
    // A rate that the server could not keep up with is below one that the generator could not
    // offer.
    assert!(!page.contains("INVALID and not counted"));
    // When even the lowest rate was the generator's fault, the result is unknown.
    for run in &mut results.experiments[0].runs {
        let knee = run.knee.as_mut().expect("it looked for one");
        knee.best_rate = None;
        knee.steps.iter_mut().for_each(|step| step.invalid.push("It was late.".to_owned()));
    }
    assert!(check(&results).contains("INVALID and not counted: It was late."));
}

#[test]
fn agents_are_named_with_their_clocks() {
    let mut experiment = plain();
    let mut one = run("dunlin", 0, 1_000.0);
    one.loads[0].agents =
        vec![AgentClock { address: "10.0.0.5:7200".to_owned(), ahead_ms: -1.5, bound_ms: 0.25 }];
    experiment.runs.push(one);
    let page = check(&with(experiment));
    assert!(page.contains("10.0.0.5:7200 (clock 1.5 ms behind, known to 250 µs)"));
}

#[test]
fn errors_that_nobody_caused_are_named() {
    let mut experiment = plain();
    let mut one = run("dunlin", 0, 1_000.0);
    one.loads[0].recording.operations[0].errors.insert("LOADING".to_owned(), 3);
    experiment.runs.push(one);
    let page = check(&with(experiment.clone()));
    assert!(page.contains("dunlin, repetition 1, had errors that no event explains: LOADING."));
    experiment.runs[0].events.push(lab::results::Event::new(
        1.0,
        Some(1.5),
        "kill -9".to_owned(),
        "process 1 killed",
    ));
    assert!(!check(&with(experiment)).contains("no event explains"));
}

#[test]
fn a_point_without_a_valid_run_shows_why() {
    let mut experiment = plain();
    experiment.runs.push(run("dunlin", 0, 100_000.0));
    let mut wrong = run("redis-server", 0, 50_000.0);
    wrong.loads[0].recording.generator.invalid.push("It was late".to_owned());
    experiment.runs.push(wrong);
    let page = check(&with(experiment));
    assert!(page.contains("<td class=\"number missing\">INVALID</td>"));
    assert!(page.contains(">INVALID</text>"), "the chart says it too");
    assert!(!page.contains("× the "), "there is nobody to compare with");
}

#[test]
fn ratios_are_in_terms_of_the_first_peer() {
    for order in [["dunlin", "limit", "redis-server"], ["redis-server", "dunlin", "limit"]] {
        let mut experiment = plain();
        let targets = experiment.targets.clone();
        experiment.targets = order
            .iter()
            .map(|name| {
                let mut target = targets[0].clone();
                target.name = (*name).to_owned();
                target
            })
            .collect();
        for repetition in 0..2 {
            for name in order {
                experiment.runs.push(run(name, repetition, 50_000.0));
            }
        }
        let page = check(&with(experiment));
        assert!(page.contains("dunlin / redis-server") && page.contains("limit / redis-server"));
        for other in ["redis-server", "limit"] {
            let verdict = format!("dunlin: 0.67× the CPU time of {other}. Ahead.");
            assert!(page.contains(&verdict), "{page}");
        }
    }
}

#[test]
fn views_are_those_that_the_file_asks_for() {
    let mut experiment = plain();
    experiment.runs = vec![run("dunlin", 0, 100_000.0), run("redis-server", 0, 50_000.0)];
    experiment.views = vec!["p50".to_owned(), "cpu-over-time".to_owned()];
    let results = with(experiment);
    let names: Vec<String> =
        files(&results).into_keys().filter(|name| name.ends_with(".svg")).collect();
    assert_eq!(names, ["charts/plain-p50.svg", "charts/plain-processors-over-time.svg"]);
    assert!(check(&results).contains("× the p50 of redis-server. Ahead."));
    assert!(report::VIEWS.contains(&"cpu-over-time"));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</p><script>alert('1')</script>\"><img src=x onerror=alert(2)>&amp;\u{1}]]>";
    let mut experiment = plain();
    experiment.name = format!("../../{hostile}");
    experiment.title = hostile.to_owned();
    experiment.question = hostile.to_owned();
    experiment.answers = Some(hostile.to_owned());
    experiment.file = hostile.to_owned();
    experiment.matrix = vec![(hostile.to_owned(), vec![hostile.to_owned(), "b".to_owned()])];
    experiment.skipped = vec![Skipped { name: hostile.to_owned(), reason: hostile.to_owned() }];
    experiment.targets[0].name = hostile.to_owned();
    experiment.targets[0].version = hostile.to_owned();
    experiment.targets[0].command = vec![hostile.to_owned(), "-".to_owned()];
    for value in [hostile, "b"] {
        let mut one = sample::run(hostile, &[(hostile, value)], 0, &SHAPE, steady);
        one.loads[0].name = hostile.to_owned();
        one.loads[0].recording.operations[0].name = format!("{hostile}, a b\n");
        one.figures.insert(hostile.to_owned(), 3.0);
        one.command = vec![hostile.to_owned()];
        one.events.push(lab::results::Event::new(1.0, None, hostile, hostile));
        let mut failed = one.clone();
        failed.failure = Some(hostile.to_owned());
        failed.repetition = 1;
        experiment.runs.extend([one, failed]);
    }
    let results = with(experiment);
    let page = check(&results);
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)"));
    let scripts = markup::elements(&page).iter().filter(|element| element.name == "script").count();
    assert_eq!(scripts, 1, "the page's own");
    let markdown = report::markdown(&results);
    assert!(!markdown.contains("<script>") && !markdown.contains("<img"));
}

#[test]
fn there_may_be_nothing_to_show() {
    assert!(check(&sample::empty()).contains("No experiment was run."));
    // No run at all; runs without loads; a load without a request; one point of one target.
    assert!(check(&with(plain())).contains("There is no valid run"));
    let mut bare = plain();
    let mut one = run("dunlin", 0, 1_000.0);
    one.loads.clear();
    one.samples.clear();
    one.figures.clear();
    bare.runs = vec![one.clone()];
    check(&with(bare.clone()));
    bare.views = report::VIEWS.iter().map(|view| (*view).to_owned()).collect();
    check(&with(bare));
    let mut silent = plain();
    silent.runs = vec![sample::run("dunlin", &[], 0, &SHAPE, |_| (0.0, 1.0))];
    silent.runs[0].loads[0].recording.seconds = 0.0;
    silent.views = report::VIEWS.iter().map(|view| (*view).to_owned()).collect();
    silent.views.push("throughput".to_owned());
    check(&with(silent));
    let mut lonely = plain();
    lonely.targets.clear();
    lonely.matrix = vec![("connections".to_owned(), Vec::new())];
    lonely.runs = vec![sample::run("unnamed", &[("connections", "")], 0, &SHAPE, steady)];
    assert!(check(&with(lonely)).contains("The throughput of unnamed is"));
}

#[test]
fn numbers_out_of_all_bounds_are_drawn_within_the_chart() {
    let mut experiment = plain();
    let values = ["0", "0.000001", "1", "99999999999999999999"];
    experiment.matrix =
        vec![("size".to_owned(), values.iter().map(|value| (*value).to_owned()).collect())];
    for (index, value) in values.iter().enumerate() {
        let mut one = sample::run("dunlin", &[("size", value)], 0, &SHAPE, steady);
        let extreme = [f64::INFINITY, f64::NAN, -1e300, 1e300][index];
        one.figures.insert("odd_ms".to_owned(), extreme);
        one.loads[0].recording.seconds = [1e-9, 1e12, 3.0, 0.0][index];
        one.samples[1].at = extreme;
        one.samples[2].cpu_user_seconds = extreme;
        one.events.push(lab::results::Event::new(
            extreme,
            Some(f64::INFINITY),
            "odd".to_owned(),
            "",
        ));
        experiment.runs.push(one);
    }
    check(&with(experiment.clone()));
    experiment.views = report::VIEWS.iter().map(|view| (*view).to_owned()).collect();
    experiment.views.extend(["odd_ms", "throughput"].map(str::to_owned));
    check(&with(experiment));
}

#[test]
fn results_are_read_as_they_were_written() {
    let mut results = sample::results();
    results.experiments[0].runs[0].figures.insert("odd".to_owned(), f64::NAN);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("results.json");
    results.write(&path).expect("it is written");
    let read = Results::read(&path).expect("it is read");
    results.experiments[0].runs[0].figures.remove("odd");
    assert_eq!(read, results);
    assert_eq!(report::html(&read), report::html(&results));
}

#[test]
fn later_results_take_the_place_of_earlier_ones() {
    let mut all = with(plain());
    all.experiments.push(sample::experiment("kept", "Kept", "?", None));
    let mut later = plain();
    later.runs.push(run("dunlin", 0, 1_000.0));
    let later = Results {
        experiments: vec![later, sample::experiment("new", "New", "?", None)],
        started_unix_ms: sample::STARTED + 1,
        ..sample::empty()
    };
    all.join(later.clone()).expect("the same machine");
    let names: Vec<&str> = all.experiments.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["plain", "kept", "new"]);
    assert_eq!((all.experiments[0].runs.len(), all.started_unix_ms), (1, sample::STARTED + 1));
    let mut elsewhere = later;
    elsewhere.machine.kernel = "another".to_owned();
    assert!(all.join(elsewhere).is_err());
}

#[test]
fn the_table_has_a_row_per_run_and_load() {
    let results = sample::results();
    let text = report::csv(&results);
    let rows: Vec<Vec<String>> = text.lines().map(fields).collect();
    let runs = results.experiments.iter().flat_map(|experiment| &experiment.runs);
    let loads: usize = runs.map(|run| run.loads.len().max(1)).sum();
    assert_eq!(rows.len(), loads + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name: &str| {
        rows[0].iter().position(|head| head == name).unwrap_or_else(|| panic!("no column {name}"))
    };
    let first = &results.experiments[0].runs[0];
    let response = first.loads[0].recording.response();
    assert_eq!(rows[1][column("target")], "dunlin");
    assert_eq!(rows[1][column("parameter_fsync")], "none");
    assert_eq!(rows[1][column("outcome")], "valid");
    let p999: f64 = rows[1][column("response_p999_ms")].parse().expect("a number");
    assert!((p999 - response.quantile_ms(0.999)).abs() < 1e-6);
    let cpu: f64 = rows[1][column("server_cpu_us_per_request")].parse().expect("a number");
    assert!((cpu - first.figures["server_cpu_us_per_request"]).abs() < 1e-9);
    let failed = rows.iter().find(|row| row[column("outcome")] == "failed").expect("there is one");
    assert_eq!(failed[column("reason")], "no reply to PING within 5 s");
    assert_eq!(failed[column("requests")], "");
}

/// The fields of a line without line breaks in quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("there is one").push(c),
        }
    }
    fields
}

#[test]
fn logs_are_read_back_by_their_own_reader() {
    let mut experiment = plain();
    let mut one = run("dunlin", 0, 40_000.0);
    let recording = &mut one.loads[0].recording;
    recording.operations[0].name = "GET, then SET".to_owned();
    // A second in which nothing was answered has a line too.
    recording.timeline.push(Second { at: 3, ..Second::default() });
    recording.seconds = 4.0;
    let expected = recording.clone();
    experiment.runs = vec![one];
    let files = files(&with(experiment));
    let log = &files["logs/plain-dunlin-main-run-1.hlog"];
    let mut seconds: Vec<Latency> = Vec::new();
    let mut tagged = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.expect("a line that can be read") else {
            continue;
        };
        let latency = Latency::try_from(interval.encoded_histogram().to_owned()).expect("decodes");
        match interval.tag() {
            Some(tag) => tagged.push((tag.as_str().to_owned(), interval.duration(), latency)),
            None => {
                assert_eq!(interval.start_timestamp().as_secs() as usize, seconds.len());
                seconds.push(latency);
            }
        }
    }
    let recorded: Vec<Latency> =
        expected.timeline.iter().map(|second| second.response.clone()).collect();
    assert_eq!(seconds, recorded);
    let [(tag, duration, latency)] = &tagged[..] else { panic!("one operation, one tag") };
    assert_eq!((tag.as_str(), duration.as_secs()), ("GET__then_SET", 4));
    assert_eq!(*latency, expected.operations[0].response);
    // Other tools decode without our type.
    let text = String::from(latency.clone());
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text);
    let bytes = bytes.expect("base64");
    let other: Histogram<u64> =
        Deserializer::new().deserialize(&mut &bytes[..]).expect("an HDR histogram");
    assert_eq!(other.len(), latency.count());
}

#[test]
fn figures_stand_side_by_side_where_the_file_asks_for_that() {
    let mut experiment = sample::experiment("side", "Side by side", "What is what?", Some("E2"));
    experiment.columns =
        ["throughput", "server_cpu_processors", "errors_percent", "peak_memory_bytes"]
            .map(str::to_owned)
            .to_vec();
    experiment.matrix = vec![("request".to_owned(), vec!["read".to_owned(), "store".to_owned()])];
    for (request, target, cpu) in
        [("read", "dunlin", 0.25), ("read", "redis-server", 0.9), ("store", "dunlin", 0.5)]
    {
        let shape = Shape { rate: 1000.0, ..SHAPE };
        let mut run = sample::run(target, &[("request", request)], 0, &shape, steady);
        // Another load at each point, and one column for both.
        run.loads[0].name = format!("users {request}");
        run.figures.insert("server_cpu_processors".to_owned(), cpu);
        run.figures.insert("errors_percent".to_owned(), 0.5);
        run.figures.insert("peak_memory_bytes".to_owned(), 64.0 * 1024.0 * 1024.0);
        experiment.runs.push(run);
    }
    let results = with(experiment);
    let markdown = report::markdown(&results);
    let lines = markdown.lines().skip_while(|line| !line.starts_with("| request |"));
    let lines: Vec<&str> = lines.filter(|line| line.starts_with('|')).collect();
    assert_eq!(lines[0], "| request | target | TPS | CPU (millicores) | errors | peak memory |");
    assert_eq!(lines[1], "|---|---|--:|--:|--:|--:|");
    assert_eq!(lines.len(), 5, "a row for each target at each point: {markdown}");
    assert!(lines[2].starts_with("| read | dunlin | "), "{}", lines[2]);
    assert!(lines[2].ends_with(" | 250 | 0.5 % | 64 MiB |"), "{}", lines[2]);
    assert!(
        lines[4].starts_with("| store | dunlin | ") && lines[4].contains("| 500 |"),
        "{}",
        lines[4]
    );
    let page = check(&results);
    assert!(page.contains("CPU (millicores)") && page.contains("0.5 %"));
}

#[test]
fn the_page_for_a_repository_has_tables_and_pictures() {
    let mut results = sample::results();
    let directory = tempfile::tempdir().expect("a directory");
    let written = report::write_markdown(&results, directory.path()).expect("it is written");
    let text = std::fs::read_to_string(&written[0]).expect("it is there");
    for part in [
        "## E1 · ",
        "## E4 · The battle of blob storages\n\nNot measured here.",
        "## E5 · ",
        "AMD EPYC 7B13",
        "| server CPU time per request | dunlin | redis-server | dunlin / redis-server |",
        "| fsync none, connections 500 |",
    ] {
        assert!(text.contains(part), "missing: {part}");
    }
    let mut pictures = 0;
    for link in text.split("](").skip(1) {
        let target = link.split(')').next().expect("the link's end");
        let svg = std::fs::read_to_string(directory.path().join(Path::new(target)));
        markup::elements(&svg.unwrap_or_else(|_| panic!("{target} is not there")));
        pictures += 1;
    }
    assert!(pictures >= 5, "{pictures} pictures");
    assert_eq!(pictures + 1, written.len());
    for experiment in &mut results.experiments {
        experiment.views = vec!["throughput".to_owned()];
    }
    let written = report::write_markdown(&results, directory.path()).expect("it is written");
    let text = std::fs::read_to_string(&written[0]).expect("it is there");
    for part in ["| throughput | dunlin | redis-server | dunlin / redis-server |", ", tie |"] {
        assert!(text.contains(part), "missing: {part}");
    }
}
