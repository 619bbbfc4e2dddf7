//! Comparisons of invented results: what counts as a change, and what does not.

use lab::compare::{Change, compare};
use lab::results::{Results, Run};

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
    // One slow repetition: nobody knows any more how much is noise.
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
    let comparison = compare(&before, &after);
    let text = comparison.to_string();
    for line in [
        "not compared: plain, redis-server, connections 50: only before",
        "not compared: old: only before",
        "not compared: new: only after",
        "note: another processor: AMD EPYC 7B13 before, another one after",
    ] {
        assert!(text.contains(line), "missing: {line}\n{text}");
    }
    assert!(!comparison.is_regression());
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
    assert_eq!(worse, ["requests that never left"]);
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
