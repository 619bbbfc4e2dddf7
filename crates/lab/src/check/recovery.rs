//! How long a server took to be itself again, from what was answered when.

/// Of the throughput before the fault, how much counts as recovered.
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

/// Seconds from the fault until the throughput was back at 90 % of what it was before it, and stayed
/// there for `window` buckets. Nothing when that was not seen, or nothing went on before.
///
/// `buckets` are counts of answers, `width` seconds each.
pub fn recovery_seconds(buckets: &[f64], width: f64, window: usize, fault: f64) -> Option<f64> {
    let at_fault = (fault / width) as usize;
    let before = buckets.get(..at_fault)?;
    // A server that is still warming up is slower: with enough time before, only the later half says
    // what is usual. The median: one slow second before the fault must not set a low bar.
    let mut usual: Vec<f64> = before[before.len() / 2..].to_vec();
    usual.sort_by(f64::total_cmp);
    let usual = *usual.get(usual.len() / 2)?;
    if usual <= 0.0 {
        return None;
    }
    let windows = buckets.windows(window.max(1)).enumerate().skip(at_fault);
    let recovered = |window: &[f64]| {
        // Its first bucket too: the window must not begin before the server was back.
        let enough = |count: f64| count >= SHARE * usual;
        window.first().is_some_and(|first| enough(*first))
            && enough(window.iter().sum::<f64>() / window.len() as f64)
    };
    let (index, _) = windows.into_iter().find(|(_, window)| recovered(window))?;
    Some((index as f64 * width - fault).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_when_throughput_is_back_and_stays() {
        let seconds = [50.0, 100.0, 100.0, 100.0, 40.0, 0.0, 0.0, 95.0, 20.0, 91.0, 100.0, 100.0];
        assert_eq!(recovery_seconds(&seconds, 1.0, 2, 4.0), Some(5.0));
        assert_eq!(recovery_seconds(&seconds, 1.0, 1, 4.0), Some(3.0));
        assert_eq!(recovery_seconds(&seconds, 0.5, 1, 2.25), Some(1.25));
    }

    #[test]
    fn one_that_never_recovers_has_no_time() {
        assert_eq!(recovery_seconds(&[100.0, 100.0, 0.0, 50.0], 1.0, 1, 2.0), None);
        assert_eq!(recovery_seconds(&[0.0, 0.0, 10.0], 1.0, 1, 2.0), None);
        assert_eq!(recovery_seconds(&[], 1.0, 1, 2.0), None);
        assert_eq!(recovery_seconds(&[5.0, 5.0], 1.0, 1, 0.0), None);
    }

    #[test]
    fn a_fault_that_nobody_noticed_took_no_time() {
        assert_eq!(recovery_seconds(&[100.0; 6], 1.0, 2, 3.0), Some(0.0));
    }

    #[test]
    fn moments_are_counted_by_bucket() {
        let times = [0.0, 0.05, 0.1, 0.39, 0.41];
        assert_eq!(buckets(times.into_iter(), 0.1, 0.45), [2.0, 1.0, 0.0, 1.0]);
    }
}
