//! What many entries take together, estimated from a few of them.

/// Sizes of entries that were drawn at random.
///
/// The plain average would not do: an entry of 60 MB among thousands of small ones, when it is
/// drawn, would seem to be one of very many, and the sum would exceed all memory. So the result is
/// what the draws show at least: their average, less its standard error. Where one entry outweighs
/// all others, that comes to no more than the entry itself and the others; where entries are alike,
/// the two are the same.
#[derive(Debug, Default)]
pub struct Sizes {
    drawn: usize,
    sum: f64,
    squares: f64,
}

impl Sizes {
    /// An entry of this many bytes was drawn.
    pub fn note(&mut self, bytes: usize) {
        self.drawn += 1;
        self.sum += bytes as f64;
        self.squares += (bytes as f64).powi(2);
    }

    /// The bytes of each, on average, if this many are all. 0 if none was drawn.
    pub fn average(&self, all: usize) -> usize {
        let (drawn, all) = (self.drawn as f64, all as f64);
        match self.drawn {
            0 => return 0,
            // One says nothing of the others.
            1 => return (self.sum / all.max(1.0)) as usize,
            _ => {}
        }
        let average = self.sum / drawn;
        let variance = (self.squares / drawn - average * average).max(0.0) * drawn / (drawn - 1.0);
        // When few remain that were not drawn, little is uncertain.
        let unknown = (1.0 - drawn / all.max(drawn)) / drawn;
        (average - (variance * unknown).sqrt()).max(0.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(drawn: impl IntoIterator<Item = usize>) -> Sizes {
        let mut sizes = Sizes::default();
        drawn.into_iter().for_each(|bytes| sizes.note(bytes));
        sizes
    }

    #[test]
    fn entries_that_are_alike_have_their_average() {
        assert_eq!(Sizes::default().average(10), 0);
        assert_eq!(sizes([70; 100]).average(1_000_000), 70);
        let average = sizes((0..1000).map(|n| 100 + n % 10)).average(1_000_000);
        assert!((104..=105).contains(&average), "{average}");
    }

    #[test]
    fn all_that_there_are_leave_nothing_uncertain() {
        assert_eq!(sizes([10, 10, 6_000_000]).average(3), 2_000_006);
        assert_eq!(sizes([10, 10, 6_000_000]).average(2), 2_000_006, "one was drawn twice");
    }

    #[test]
    fn one_that_outweighs_all_others_counts_once_at_most() {
        const LARGE: usize = 60_000_000;
        for (drawn, all) in
            [(1, 60), (2, 60), (100, 6000), (250, 6000), (4000, 6000), (250, 100_000_000)]
        {
            let sum = sizes(std::iter::repeat_n(70, drawn - 1).chain([LARGE])).average(all) * all;
            assert!(sum <= LARGE + 71 * all, "{drawn} of {all}: {sum} bytes");
        }
    }
}
