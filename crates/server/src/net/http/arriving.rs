//! How long a request may take to arrive.

use base::limits;

/// A request that has not arrived in full. Times are in milliseconds of the monotonic clock.
pub(super) struct Arriving {
    /// The client is late from then on.
    late_at: u64,
    /// Bytes of the body that have put that off.
    counted: u64,
}

impl Arriving {
    /// One that begins now.
    pub(super) fn begin(now: u64) -> Arriving {
        Arriving { late_at: now + limits::HTTP_PATIENCE_MS, counted: 0 }
    }

    /// What has come is not looked at for now: the client is not late meanwhile.
    pub(super) fn wait(&mut self, now: u64) {
        self.late_at = self.late_at.max(now + limits::HTTP_PATIENCE_MS);
    }

    /// Whether the client is late, of whose body so many bytes have come. Each byte puts that off,
    /// but not for longer than a client may stand still. To be asked now and then.
    pub(super) fn is_late(&mut self, received: u64, now: u64) -> bool {
        let new = received.saturating_sub(self.counted);
        self.counted = received;
        let put_off = self.late_at + new * 1000 / limits::HTTP_LEAST_RATE;
        self.late_at = put_off.min(now + limits::PATIENCE_OF_SENDING_MS);
        now > self.late_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_steadily_however_fast_it_has_begun() {
        let mut arriving = Arriving::begin(1000);
        assert!(!arriving.is_late(0, 11_000), "the head may take ten seconds");
        let mut late = Arriving::begin(1000);
        assert!(late.is_late(0, 11_001));
        assert!(!arriving.is_late(2048, 13_000), "a kilobyte a second");
        assert!(arriving.is_late(2048, 13_001));
        let mut stands_still = Arriving::begin(1000);
        assert!(!stands_still.is_late(1 << 30, 2000));
        assert!(!stands_still.is_late(1 << 30, 62_000));
        assert!(stands_still.is_late(1 << 30, 62_001));
        let mut waits = Arriving::begin(1000);
        waits.wait(50_000);
        assert!(!waits.is_late(0, 60_000));
        assert!(waits.is_late(0, 60_001));
    }
}
