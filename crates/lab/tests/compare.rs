//! Comparisons of invented results: what counts as a change, and what does not.

use lab::compare::{Change, compare};
use lab::results::{Check, Event, Results, Run, Skipped};

#[allow(dead_code)]
mod sample;

use sample::Shape;

/// Results of three repetitions at these rates; the rates of one target's repetitions differ by a
/// few per cent.
fn results(rates: &[(&str, f64)], repetitions: u32) -> Results {
    let mut experiment =
        sample::experiment("plain", "A plain experiment", "Which one is faster?", None);
    for repetition in 0..repetitions {
        for (target, rate) in rates {
            experiment.runs.push(run(target, repetition, *rate));
        }
    }
    Results { experiments: vec![experiment], ..sample::empty() }
}

fn run(target: &str, repetition: u32, rate: f64) -> Run {
    let shape = Shape { rate, median_ms: 25_000.0 / rate, tail: 0.2, seconds: 3, open: false };
    sample::run(target, &[("connections", "50")], repetition, &shape, |_| (1.0, 1.0))
}

#[test]
fn the_same_is_no_change() {
    let both = sample::results();
    let comparison = compare(&both, &both);
    assert!(comparison.rows.len() > 100);
    assert!(comparison.rows.iter().all(|row| row.change == Change::WithinNoise));
    assert!(!comparison.is_regression());
    let text = comparison.to_string();
    let count = comparison.rows.len();
    assert!(text.contains(&format!("{count} of {count} figures are the same within noise.")));
    assert!(text.contains("fewer than three runs"), "value-size has one: {text}");
}

#[test]
fn a_faster_server_may_be_busier_in_a_closed_loop() {
    let busy = |rate: f64, processors: f64, is_open: bool| {
        let mut results = results(&[("dunlin", rate)], 3);
        for run in &mut results.experiments[0].runs {
            run.figures.insert("server_cpu_processors".to_owned(), processors);
            if is_open {
                let plan = &mut run.loads[0].recording.plan;
                plan.pace = lab::load::Pace::Open { rate, schedule: lab::load::Schedule::Poisson };
            }
        }
        results
    };
    for (is_open, expected) in [(false, Change::Different), (true, Change::Worse)] {
        let before = busy(50_000.0, 0.5, is_open);
        let comparison = compare(&before, &busy(100_000.0, 0.9, is_open));
        let is_it = |row: &&lab::compare::Row| {
            row.figure.contains("server CPU time") && row.unit == lab::results::Unit::Processors
        };
        let row = comparison.rows.iter().find(is_it).expect("it is compared");
        assert_eq!(row.change, expected, "open: {is_open}");
    }
}

#[test]
fn slower_is_worse_and_faster_is_better() {
    let before = results(&[("dunlin", 100_000.0), ("redis-server", 80_000.0)], 3);
    let after = results(&[("dunlin", 70_000.0), ("redis-server", 110_000.0)], 3);
    let comparison = compare(&before, &after);
    let change = |target: &str, figure: &str| {
        let found = comparison
            .rows
            .iter()
            .find(|row| row.target == target && row.figure == figure)
            .unwrap_or_else(|| panic!("no row for {figure} of {target}"));
        assert_eq!(found.point, "connections 50");
        (found.change, found.share().expect("not from zero"))
    };
    let (judged, share) = change("dunlin", "throughput");
    assert_eq!(judged, Change::Worse);
    assert!((share + 0.3).abs() < 0.05, "{share}");
    assert_eq!(change("dunlin", "p50 response time").0, Change::Worse);
    assert_eq!(change("dunlin", "server CPU time per request").0, Change::Worse);
    assert_eq!(change("redis-server", "throughput").0, Change::Better);
    assert_eq!(change("redis-server", "p99 response time").0, Change::Better);
    assert_eq!(change("dunlin", "peak memory").0, Change::WithinNoise);
    assert!(comparison.is_regression());
    assert!(comparison.regressions().all(|row| row.target == "dunlin"));
    let text = comparison.to_string();
    assert!(text.contains("worse beyond noise:") && text.contains("better beyond noise:"));
    assert!(
        text.lines().any(|line| line.contains("throughput") && line.contains("-30 %")),
        "{text}"
    );
}

#[test]
fn a_change_within_the_spread_is_none() {
    let mut before = results(&[("dunlin", 100_000.0)], 3);
    // One slow repetition: the noise is unknown then.
    before.experiments[0].runs[2] = run("dunlin", 2, 70_000.0);
    let after = results(&[("dunlin", 80_000.0)], 3);
    assert!(!compare(&before, &after).is_regression());
}

#[test]
fn few_runs_must_change_more() {
    let before = results(&[("dunlin", 100_000.0)], 2);
    let little = compare(&before, &results(&[("dunlin", 90_000.0)], 2));
    let throughput = little.rows.iter().find(|row| row.figure == "throughput").expect("a row");
    assert_eq!(throughput.change, Change::WithinNoise);
    assert!(little.cautions.iter().any(|caution| caution.contains("their noise is unknown")));
    assert!(compare(&before, &results(&[("dunlin", 60_000.0)], 1)).is_regression());
}

#[test]
fn what_is_on_one_side_only_is_named() {
    let mut before = results(&[("dunlin", 100_000.0), ("redis-server", 80_000.0)], 2);
    let mut after = results(&[("dunlin", 100_000.0)], 2);
    before.experiments.push(sample::experiment("old", "Old", "?", None));
    after.experiments.push(sample::experiment("new", "New", "?", None));
    after.machine.processor = "another one".to_owned();
    after.experiments[0].skipped.push(Skipped {
        name: "redis-server".to_owned(),
        reason: "it is not installed".to_owned(),
    });
    let comparison = compare(&before, &after);
    let text = comparison.to_string();
    for line in [
        "FAILURE: plain, redis-server, connections 50: only before: it is not installed",
        "FAILURE: old: only before",
        "not compared: new: only after",
        "note: another processor: AMD EPYC 7B13 before, another one after",
    ] {
        assert!(text.contains(line), "missing: {line}\n{text}");
    }
    assert!(comparison.is_regression(), "what is gone may have become anything");
    assert!(!compare(&after, &after).is_regression());
    let more = compare(&results(&[("dunlin", 100_000.0)], 2), &before);
    assert!(!more.is_regression(), "more targets are no loss: {more}");
    assert!(compare(&sample::empty(), &after).is_regression(), "nothing was compared");
}

/// Three runs of one target with a checker that found this much lost in each.
fn checked(lost: [u64; 3]) -> Results {
    let mut results = results(&[("dunlin", 100_000.0)], 3);
    for (run, lost) in results.experiments[0].runs.iter_mut().zip(lost) {
        run.check = Some(Check { acknowledged: 20_000, lost, ..Check::default() });
    }
    results
}

fn change_of(before: &Results, after: &Results, figure: &str) -> Change {
    let comparison = compare(before, after);
    let row = comparison.rows.iter().find(|row| row.figure == figure);
    row.unwrap_or_else(|| panic!("no row for {figure}: {comparison}")).change
}

#[test]
fn one_loss_in_one_run_is_worse_where_there_was_none() {
    let (none, once) = (checked([0; 3]), checked([0, 4_000, 0]));
    let comparison = compare(&none, &once);
    assert!(comparison.is_regression());
    let text = comparison.to_string();
    assert!(text.contains("acknowledged writes lost") && text.contains("0, up to 4"), "{text}");
    let lost = "acknowledged writes lost";
    assert_eq!(change_of(&once, &none, lost), Change::Better);
    assert_eq!(change_of(&checked([0, 0, 1]), &checked([0, 1, 1]), lost), Change::Worse);
    assert_eq!(change_of(&checked([5; 3]), &checked([5, 6, 5]), lost), Change::Worse);
    assert_eq!(change_of(&once, &once, lost), Change::WithinNoise);
    // Neither the generator's lateness nor a failure excuses a loss.
    for spoil in [
        (|run| run.loads[0].recording.generator.invalid.push("It was late.".to_owned()))
            as fn(&mut Run),
        |run| run.failure = Some("it was too slow".to_owned()),
    ] {
        let (mut before, mut after) = (none.clone(), once.clone());
        spoil(&mut before.experiments[0].runs[1]);
        spoil(&mut after.experiments[0].runs[1]);
        assert_eq!(change_of(&before, &after, lost), Change::Worse);
    }
}

#[test]
fn what_chance_loses_in_every_kill_has_the_spread_of_before() {
    let killed = |lost| {
        let mut results = checked(lost);
        for run in &mut results.experiments[0].runs {
            run.events.push(Event::new(1.0, Some(1.5), "kill -9", ""));
            run.check.as_mut().expect("it looked").recovery_seconds = Some(0.5);
        }
        results
    };
    let change =
        |before, after| change_of(&killed(before), &killed(after), "acknowledged writes lost");
    assert_eq!(change([100, 800, 300], [900, 200, 400]), Change::WithinNoise);
    assert_eq!(change([100, 120, 110], [110, 4_000, 100]), Change::Worse);
    assert_eq!(change([100, 0, 110], [100, 111, 110]), Change::Worse);
    assert_eq!(change([0, 0, 0], [0, 0, 1]), Change::Worse);
}

#[test]
fn stale_and_wrong_values_and_errors_have_no_noise() {
    let none = checked([0; 3]);
    let with = |change: fn(&mut Run)| {
        let mut results = none.clone();
        change(&mut results.experiments[0].runs[2]);
        results
    };
    let stale = with(|run| run.check.as_mut().expect("it looked").stale_reads = 1);
    let wrong = with(|run| run.check.as_mut().expect("it looked").wrong = 1);
    let errors = with(|run| {
        run.loads[0].recording.operations[0].errors.insert("ERR".to_owned(), 1);
    });
    for (after, figure) in
        [(&stale, "stale reads"), (&wrong, "values that nobody wrote"), (&errors, "errors")]
    {
        assert_eq!(change_of(&none, after, figure), Change::Worse);
        assert!(compare(&none, after).is_regression());
        assert_eq!(change_of(after, &none, figure), Change::Better);
    }
}

#[test]
fn a_single_run_that_fails_now_is_a_regression() {
    let before = results(&[("dunlin", 100_000.0)], 3);
    let failing = |count: usize| {
        let mut after = before.clone();
        for run in &mut after.experiments[0].runs[..count] {
            run.failure = Some("the server has ended with signal 11".to_owned());
        }
        after
    };
    let comparison = compare(&before, &failing(1));
    assert!(comparison.is_regression());
    let line = "fails now: 1 of 3 runs, none before: the server has ended with signal 11";
    assert!(comparison.to_string().contains(line), "{comparison}");
    assert!(compare(&failing(1), &failing(2)).is_regression());
    assert!(!compare(&failing(2), &failing(1)).is_regression());
}

#[test]
fn a_check_that_is_gone_is_a_regression() {
    let before = checked([0; 3]);
    let after = results(&[("dunlin", 100_000.0)], 3);
    let comparison = compare(&before, &after);
    assert!(comparison.is_regression());
    let line = "FAILURE: plain, dunlin, connections 50, acknowledged writes lost: only before";
    assert!(comparison.to_string().contains(line), "{comparison}");
    assert!(!compare(&after, &before).is_regression());
    assert!(compare(&after, &checked([0, 1, 0])).is_regression(), "a loss is one all the same");
    let mut quiet = results(&[("dunlin", 100_000.0)], 3);
    quiet.experiments[0].runs.iter_mut().for_each(|run| run.loads.clear());
    assert!(compare(&after, &quiet).is_regression(), "a load that is gone");
}

#[test]
fn a_run_that_fails_now_is_a_regression() {
    let before = results(&[("dunlin", 100_000.0)], 2);
    let mut after = before.clone();
    for run in &mut after.experiments[0].runs {
        run.failure = Some("it crashed".to_owned());
    }
    let comparison = compare(&before, &after);
    assert!(comparison.is_regression());
    assert!(comparison.to_string().contains("FAILURE: plain, dunlin, connections 50: fails now"));
    assert!(!compare(&after, &before).is_regression(), "and the other way round it is not");
    let mut invalid = before.clone();
    for run in &mut invalid.experiments[0].runs {
        run.loads[0].recording.generator.invalid.push("It was late.".to_owned());
    }
    let comparison = compare(&before, &invalid);
    assert!(comparison.is_regression(), "what cannot be measured any more may be anything");
    assert!(comparison.to_string().contains("no valid run now: INVALID: It was late."));
    assert!(!compare(&invalid, &before).is_regression());
}

#[test]
fn a_load_that_is_not_borne_any_more_is_a_regression() {
    let before = results(&[("dunlin", 100_000.0)], 3);
    let overloaded = |count: usize| {
        let mut after = before.clone();
        for run in &mut after.experiments[0].runs[..count] {
            run.loads[0].recording.generator.overloaded.push("Requests never left.".to_owned());
        }
        after
    };
    let comparison = compare(&before, &overloaded(2));
    assert!(comparison.is_regression());
    let text = comparison.to_string();
    let line = "overloaded in 2 of 3 runs now, in none before: Requests never left.";
    assert!(text.contains(&format!("FAILURE: plain, dunlin, connections 50: {line}")), "{text}");
    assert!(!compare(&overloaded(2), &overloaded(3)).is_regression(), "nor was it before");
    let once = compare(&before, &overloaded(1));
    assert!(!once.is_regression() && once.to_string().contains("overloaded in 1 of 3 runs"));
}

#[test]
fn requests_that_never_left_are_worse() {
    let shape = Shape { rate: 1_000.0, median_ms: 0.2, tail: 0.2, seconds: 3, open: true };
    let of = |unsent: u64| {
        let mut results = results(&[], 0);
        for repetition in 0..3 {
            let mut one = sample::run("dunlin", &[], repetition, &shape, |_| (1.0, 1.0));
            one.loads[0].recording.generator.unsent = unsent;
            results.experiments[0].runs.push(one);
        }
        results
    };
    assert!(!compare(&of(0), &of(2)).is_regression(), "the last ones of a run may be left over");
    let comparison = compare(&of(0), &of(600));
    let worse: Vec<&str> = comparison.regressions().map(|row| row.figure.as_str()).collect();
    assert_eq!(worse, ["requests that were never sent"]);
}

#[test]
fn a_figure_that_is_not_found_any_more_is_a_regression() {
    let before = sample::results();
    let experiment = |results: &mut Results, name: &str, change: fn(&mut Run)| {
        let found = results.experiments.iter_mut().find(|experiment| experiment.name == name);
        let runs = &mut found.expect("it is there").runs;
        runs.iter_mut().filter(|run| run.target == "dunlin").take(2).for_each(change);
    };
    let mut after = before.clone();
    experiment(&mut after, "knee", |run| {
        let knee = run.knee.as_mut().expect("it looked for one");
        knee.best_rate = None;
        knee.steps.iter_mut().for_each(|step| step.good = false);
    });
    experiment(&mut after, "self-heal", |run| {
        run.figures.remove("recovery_seconds");
        run.check.as_mut().expect("it looked").recovery_seconds = None;
    });
    let comparison = compare(&before, &after);
    let text = comparison.to_string();
    for line in [
        "knee, dunlin, largest good rate: no good rate in 2 of 3 runs now, in none before",
        "self-heal, dunlin, time until the load had recovered: not recovered in 2 of 3 runs now",
        "self-heal, dunlin, time until the checker had recovered: not recovered in 2 of 3 runs now",
    ] {
        assert!(text.contains(&format!("FAILURE: {line}")), "missing: {line}\n{text}");
    }
    assert!(comparison.is_regression());
    assert!(!compare(&after, &before).is_regression());
    assert!(!compare(&after, &after).is_regression());
}
