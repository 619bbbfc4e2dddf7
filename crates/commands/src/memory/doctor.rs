//! MEMORY DOCTOR: says in words what is wrong with the use of memory.

use engine::reclaim::overview::Overview;

/// With less memory in use, factors say nothing.
const TOO_SMALL: usize = 5 << 20;
/// A difference of fewer bytes is not worth a word.
const WORTH_A_WORD: i64 = 10 << 20;
/// Buffers of this size per client, on average, are a lot.
const LARGE_CLIENT: usize = 200 << 10;

/// The report.
pub(super) fn report(overview: &Overview) -> String {
    if overview.used < TOO_SMALL {
        return "Too little memory is in use to tell what is wrong with it.\n".to_string();
    }
    let findings = findings(overview);
    if findings.is_empty() {
        return "Nothing is wrong with the use of memory.\n".to_string();
    }
    let mut text = "Problems with the use of memory:\n\n".to_string();
    findings.iter().for_each(|finding| text.push_str(&format!("- {finding}\n")));
    text
}

fn findings(overview: &Overview) -> Vec<String> {
    let fragmentation = overview.fragmentation();
    let is_bad = |(ratio, bytes): (f64, i64), limit: f64| ratio > limit && bytes > WORTH_A_WORD;
    let mut findings = Vec::new();
    if overview.peak > overview.used / 2 * 3 {
        findings.push(format!(
            "Peak: once {} bytes were in use, now it is {}. The allocator keeps some of the rest for \
             itself; MEMORY PURGE gives it back.",
            overview.peak, overview.used
        ));
    }
    if is_bad(fragmentation.allocator, 1.1) {
        findings.push(format!(
            "Fragmentation: the allocator's pages have {} unused bytes between the values. Values \
             of many different sizes that come and go leave such holes.",
            fragmentation.allocator.1
        ));
    }
    if is_bad(fragmentation.allocator_resident, 1.1) {
        findings.push(format!(
            "Unused pages: {} bytes were freed and not given back to the system yet. MEMORY PURGE \
             does it at once.",
            fragmentation.allocator_resident.1
        ));
    }
    if is_bad(fragmentation.resident_overhead, 1.1) {
        findings.push(format!(
            "Other memory: the process occupies {} bytes outside of the allocator.",
            fragmentation.resident_overhead.1
        ));
    }
    if overview.clients.checked_div(overview.client_count).unwrap_or(0) > LARGE_CLIENT {
        findings.push(format!(
            "Clients: {} of them have {} bytes in their buffers. CLIENT LIST shows whose; \
             maxmemory-clients and client-output-buffer-limit bound them.",
            overview.client_count, overview.clients
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::host::MemoryMetrics;

    #[test]
    fn each_finding_has_its_cause() {
        let mut overview = Overview {
            used: 1000,
            peak: 1000,
            startup: 0,
            clients: 0,
            client_count: 0,
            tables: Vec::new(),
            keys: 0,
            metrics: MemoryMetrics::default(),
        };
        assert!(report(&overview).starts_with("Too little"));
        overview.used = 100 << 20;
        assert!(report(&overview).starts_with("Nothing is wrong"));
        overview.peak = 200 << 20;
        assert!(report(&overview).contains("Peak"));
        overview.metrics.allocated = 100 << 20;
        overview.metrics.active = 150 << 20;
        overview.metrics.resident = 151 << 20;
        let text = report(&overview);
        assert!(text.contains("52428800 unused bytes between") && !text.contains("Unused"));
        (overview.clients, overview.client_count) = (1 << 20, 2);
        assert!(report(&overview).contains("Clients: 2 of them"));
    }
}
