//! The arithmetic of eviction clocks: 24 bits per entry.
//!
//! LRU: the second of the last access, modulo 2^24. LFU: the minute of the last access, modulo
//! 2^16, above a logarithmic counter of eight bits, as in Redis's `maxmemory-policy` page.

/// The counter of a new key: high enough not to be evicted at once.
pub const LFU_INITIAL: u32 = 5;

/// Seconds since an access, across one wrap of the 24 bits.
pub fn idle_seconds(clock: u32, now: u32) -> u32 {
    now.wrapping_sub(clock) & 0xff_ffff
}

/// The counter after the time since the last access has taken its toll: one per `decay_minutes`.
pub fn lfu_decayed(clock: u32, now_minutes: u32, decay_minutes: u32) -> u32 {
    let counter = clock & 0xff;
    let elapsed = now_minutes.wrapping_sub(clock >> 8) & 0xffff;
    match elapsed.checked_div(decay_minutes) {
        Some(periods) => counter.saturating_sub(periods),
        None => counter,
    }
}

/// The counter after an access: the higher it is, the rarer it grows.
pub fn lfu_incremented(counter: u32, log_factor: u32) -> u32 {
    if counter >= 255 {
        return 255;
    }
    let above = counter.saturating_sub(LFU_INITIAL);
    let chance = 1.0 / (f64::from(above) * f64::from(log_factor) + 1.0);
    let hit = base::rng::with(|rng| rng.f64()) < chance;
    counter + u32::from(hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_wrap() {
        assert_eq!(idle_seconds(0xff_fff0, 0x10), 0x20);
        assert_eq!(lfu_decayed((0xffff << 8) | 9, 2, 1), 6);
        assert_eq!(lfu_decayed(9, 500, 0), 9);
    }

    #[test]
    fn counters_rise_slowly() {
        assert_eq!(lfu_incremented(LFU_INITIAL, 10), LFU_INITIAL + 1);
        assert_eq!(lfu_incremented(255, 10), 255);
        let rose = (0..10_000).filter(|_| lfu_incremented(105, 10) == 106).count();
        assert!((1..100).contains(&rose), "about one in a thousand, not {rose} in ten thousand");
    }
}
