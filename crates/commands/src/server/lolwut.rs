//! LOLWUT: a murmuration of dunlins over mudflats, another one each time.
//!
//! The flock is a bent band: birds lie at random along a curve of the third degree and scatter
//! around it, less towards its ends. The character of a cell depends on how many birds are in it.

use base::rng;

use engine::command::args::Args;
use engine::command::error::CommandResult;
use engine::engine::Context;

const COLUMNS: usize = 66;
const ROWS: usize = 14;
const BIRDS: usize = 700;
/// Characters by the number of birds in the cell.
const SHADES: &[u8] = b" .':vwW";

/// LOLWUT [VERSION version]
pub(super) fn lolwut(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    // There is one drawing. VERSION is accepted and ignored, so another version is drawn alike.
    if args.len() >= 2 && args.word("version") {
        args.i64()?;
    }
    let mut text = murmuration();
    text.push_str(&format!("\nDunlin ver. {}\n\n", engine::VERSION));
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// The flock above the waterline.
fn murmuration() -> String {
    let mut cells = [[0u8; COLUMNS]; ROWS];
    let between = |low: f64, high: f64| low + (high - low) * rng::with(|rng| rng.f64());
    // The curve's four points, from left to right.
    let heights = [(); 4].map(|()| between(-0.3, 1.3));
    let width = between(0.06, 0.14);
    for _ in 0..BIRDS {
        let along = between(0.0, 1.0);
        let scatter = (between(-1.0, 1.0) + between(-1.0, 1.0)) * width * (1.3 - along);
        let x = 0.08 + 0.84 * along + between(-0.03, 0.03);
        let y = bezier(heights, along) + scatter;
        let (column, row) = ((x * COLUMNS as f64) as usize, (y * ROWS as f64).floor());
        if (0.0..ROWS as f64).contains(&row) && column < COLUMNS {
            let cell = &mut cells[row as usize][column];
            *cell = cell.saturating_add(1);
        }
    }
    let mut text = String::new();
    for row in cells {
        let shade = |birds: &u8| char::from(SHADES[usize::from(*birds).min(SHADES.len() - 1)]);
        let line: String = row.iter().map(shade).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let water = (0..COLUMNS).map(|_| if rng::below(5) == 0 { '_' } else { '~' });
    text.extend(water);
    text.push('\n');
    text
}

/// A curve of the third degree between its first and its last point.
fn bezier([a, b, c, d]: [f64; 4], t: f64) -> f64 {
    let s = 1.0 - t;
    s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_keeps_to_its_frame() {
        for _ in 0..50 {
            let text = murmuration();
            assert_eq!(text.lines().count(), ROWS + 1);
            assert!(text.lines().all(|line| line.len() <= COLUMNS && line.is_ascii()));
        }
    }
}
