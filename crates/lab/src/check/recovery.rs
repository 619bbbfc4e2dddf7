//! How long a server took to recover, from the times of its answers.

/// The server counts as recovered at this share of the throughput before the fault.
const SHARE: f64 = 0.9;

/// Counts moments in buckets of `width` seconds, from 0 to `end`; the last, which is not whole, is
/// left out.
pub(super) fn buckets(times: impl Iterator<Item = f64>, width: f64, end: f64) -> Vec<f64> {
    let mut buckets = vec![0.0; (end / width) as usize];
    for time in times {
        if let Some(bucket) = buckets.get_mut((time / width) as usize) {
            *bucket += 1.0;
        }
    }
    buckets
}

/// The longest time between two of these moments, which are in no order, or between the last of
/// them and the end. Nothing when there is none.
pub(super) fn longest_gap(mut times: Vec<f64>, end: f64) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    let last = end - times.last()?;
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    Some(gaps.fold(last.max(0.0), f64::max))
}

/// The median, over the faults, of the longest time without one of these moments from a fault to
/// the next one, or to the end.
pub(super) fn usual_gap(mut times: Vec<f64>, faults: &[f64], end: f64) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    let after = |at: usize| {
        let (from, to) = (faults[at], faults.get(at + 1).copied().unwrap_or(end));
        let inside = times.iter().copied().filter(|time| (from..to).contains(time));
        longest_gap(inside.chain([from]).collect(), to).unwrap_or(0.0)
    };
    let mut gaps: Vec<f64> = (0..faults.len()).map(after).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied()
}

/// Seconds from a fault until the throughput was back at 90 % of its level before the first fault,
/// and stayed there for `window` buckets; the longest time if there are several faults. Zero when
/// it never fell. Nothing when it was not seen to come back after one of them, or there was no
/// throughput before. A fault without any buckets after it is not judged; if that is so of all
/// faults, the result is nothing.
///
/// `buckets` are counts of answers, `width` seconds each. The bucket with a fault in it may be full
/// of answers from before the fault: it can show that the throughput fell, but never that it is
/// back.
pub fn recovery_seconds(buckets: &[f64], width: f64, window: usize, faults: &[f64]) -> Option<f64> {
    let first = faults.iter().copied().reduce(f64::min)?;
    let before = buckets.get(..(first / width) as usize)?;
    // A server that is still warming up is slower: with enough time before the fault, only the
    // later half shows the usual throughput. The median: one slow second before the fault must not
    // set a low bar.
    let mut usual: Vec<f64> = before[before.len() / 2..].to_vec();
    usual.sort_by(f64::total_cmp);
    let usual = *usual.get(usual.len() / 2)?;
    if usual <= 0.0 {
        return None;
    }
    let judged = faults.iter().filter(|fault| is_judged(buckets.len(), width, **fault));
    let mut longest = None;
    for fault in judged {
        let took = after_one(buckets, width, window.max(1), *fault, usual)?;
        longest = Some(longest.map_or(took, |other: f64| other.max(took)));
    }
    longest
}

/// Whether this many buckets include some before a fault, and some after it.
pub fn is_judged(buckets: usize, width: f64, fault: f64) -> bool {
    fault >= width && ((fault / width).ceil() as usize) < buckets
}

/// The time after one fault, where the throughput is `usual` otherwise.
fn after_one(buckets: &[f64], width: f64, window: usize, fault: f64, usual: f64) -> Option<f64> {
    let at_fault = (fault / width) as usize;
    let enough = |count: &f64| *count >= SHARE * usual;
    let behind = (fault / width).ceil() as usize;
    // A fall much later is not caused by this fault.
    let near = buckets.get(at_fault..(behind + window + 1).min(buckets.len()))?;
    let Some(fell) = near.iter().position(|count| !enough(count)) else {
        return Some(0.0);
    };
    let from = (at_fault + fell).max(behind);
    let recovered = |window: &[f64]| {
        // The window's first bucket must suffice too: the window must not begin before the server
        // was back.
        window.first().is_some_and(enough)
            && enough(&(window.iter().sum::<f64>() / window.len() as f64))
    };
    let mut windows = buckets.windows(window).enumerate().skip(from);
    let (index, _) = windows.find(|(_, window)| recovered(window))?;
    Some((index as f64 * width - fault).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_when_throughput_is_back_and_stays() {
        let seconds = [50.0, 100.0, 100.0, 100.0, 40.0, 0.0, 0.0, 95.0, 20.0, 91.0, 100.0, 100.0];
        assert_eq!(recovery_seconds(&seconds, 1.0, 2, &[4.0]), Some(5.0));
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[4.0]), Some(3.0));
        assert_eq!(recovery_seconds(&seconds, 0.5, 1, &[2.25]), Some(1.25));
    }

    #[test]
    fn one_that_never_recovers_has_no_time() {
        assert_eq!(recovery_seconds(&[100.0, 100.0, 0.0, 50.0], 1.0, 1, &[2.0]), None);
        assert_eq!(recovery_seconds(&[0.0, 0.0, 10.0], 1.0, 1, &[2.0]), None);
        assert_eq!(recovery_seconds(&[], 1.0, 1, &[2.0]), None);
        assert_eq!(recovery_seconds(&[5.0, 5.0], 1.0, 1, &[0.0]), None);
    }

    #[test]
    fn a_fault_that_nobody_noticed_took_no_time() {
        assert_eq!(recovery_seconds(&[100.0; 6], 1.0, 2, &[3.0]), Some(0.0));
    }

    #[test]
    fn a_fault_at_the_edge_of_a_bucket_is_not_over_at_once() {
        // The second before the fault, and the second of the fault, are full or nearly so.
        let seconds = [100.0, 100.0, 100.0, 0.0, 0.0, 100.0, 100.0];
        let close = |fault: f64, expected: f64| {
            let found = recovery_seconds(&seconds, 1.0, 1, &[fault]).expect("it recovers");
            assert!((found - expected).abs() < 1e-9, "{fault}: {found}");
        };
        close(2.998, 2.002);
        close(3.0, 2.0);
        let late = [100.0, 100.0, 100.0, 95.0, 0.0, 0.0, 100.0];
        let found = recovery_seconds(&late, 1.0, 1, &[3.95]).expect("it recovers");
        assert!((found - 2.05).abs() < 1e-9, "{found}");
        // Shorter than a bucket, and nevertheless seen in it.
        let short = [100.0, 100.0, 100.0, 70.0, 100.0, 100.0];
        assert_eq!(recovery_seconds(&short, 1.0, 1, &[3.5]), Some(0.5));
    }

    #[test]
    fn a_fault_at_the_end_of_a_run_is_not_judged() {
        assert_eq!(recovery_seconds(&[100.0; 4], 1.0, 1, &[3.95]), None);
        assert_eq!(recovery_seconds(&[100.0; 4], 1.0, 1, &[7.0]), None);
    }

    #[test]
    fn a_slow_second_long_after_is_another_matter() {
        let mut seconds = [100.0; 20];
        seconds[15] = 50.0;
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[3.5]), Some(0.0));
    }

    #[test]
    fn every_fault_is_judged() {
        let mut seconds = vec![100.0; 20];
        seconds[5] = 0.0;
        seconds[10..14].fill(0.0);
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[5.0]), Some(1.0));
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[5.0, 10.0]), Some(4.0));
        // A fault that comes while the server is still down is part of the same outage.
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[10.0, 12.0]), Some(4.0));
        // It never came back from the second fault, though it had from the first.
        seconds[10..].fill(0.0);
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[5.0, 10.0]), None);
        // Less than before the first fault is not enough after the second either.
        let mut seconds = vec![100.0; 20];
        seconds[5] = 0.0;
        seconds[6..].fill(91.0);
        seconds[10] = 0.0;
        seconds[11..].fill(83.0);
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, &[5.0, 10.0]), None);
        // At the end of the run nothing is left to judge by.
        assert_eq!(recovery_seconds(&[100.0; 5], 1.0, 1, &[2.0, 4.5]), Some(0.0));
        assert!(is_judged(5, 1.0, 2.0) && !is_judged(5, 1.0, 4.5) && !is_judged(5, 1.0, 0.5));
    }

    #[test]
    fn the_longest_gap_may_be_the_last() {
        assert_eq!(longest_gap(vec![3.0, 1.0, 1.5], 3.5), Some(1.5));
        assert_eq!(longest_gap(vec![1.0, 1.5], 6.0), Some(4.5));
        assert_eq!(longest_gap(Vec::new(), 6.0), None);
    }

    #[test]
    fn each_fault_has_a_gap_and_the_usual_one_is_their_median() {
        let times = vec![1.0, 2.25, 2.5, 3.0, 3.875, 4.0, 4.25, 6.0, 6.25, 6.75];
        assert_eq!(usual_gap(times.clone(), &[2.0, 4.0, 6.0], 7.0), Some(0.875));
        assert_eq!(usual_gap(times, &[], 7.0), None);
        assert_eq!(usual_gap(Vec::new(), &[1.0], 3.0), Some(2.0));
    }

    #[test]
    fn moments_are_counted_by_bucket() {
        let times = [0.0, 0.05, 0.1, 0.39, 0.41];
        assert_eq!(buckets(times.into_iter(), 0.1, 0.45), [2.0, 1.0, 0.0, 1.0]);
    }
}
