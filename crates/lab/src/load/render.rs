//! Makes batches of requests from templates: chooses, fills in the numbers, and copies only the
//! parts that differ from one request to the next.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use base::crc::key_slot;
use base::rng::Rng;

use super::choose::{KeyChooser, Weighted};
use super::template::{DIGITS, Template, Templates};
use super::{Plan, Work};

/// Requests of one kind in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The operation's place in the plan.
    pub(crate) operation: usize,
    /// How many there are.
    pub(crate) count: usize,
    /// How many bytes they take together.
    pub(crate) bytes: usize,
}

/// One request to the node of a cluster that has its key, which may have to be sent to another one.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The operation's place in the plan.
    pub(crate) operation: usize,
    size: usize,
    numbers: Box<[u64]>,
    /// How often it was sent on.
    pub(crate) hops: u8,
}

/// Makes the requests of one thread.
#[derive(Debug)]
pub(crate) struct Renderer {
    operations: Weighted,
    sizes: Weighted,
    templates: Vec<Templates>,
    keys: KeyChooser,
    random: Rng,
    /// The requests as they are sent. With a single template, as many copies of it as fit into the
    /// largest batch; else the last batch.
    batch: Vec<u8>,
    /// The requests in `batch`.
    rendered: Vec<Rendered>,
}

impl Renderer {
    /// The renderer of the thread `thread` of a plan's threads; `templates` and the `sequence` of
    /// keys are the plan's.
    pub(crate) fn new(
        plan: &Plan,
        templates: Vec<Templates>,
        sequence: &Arc<AtomicU64>,
        thread: usize,
    ) -> Self {
        let (operations, keys, sizes) = match &plan.work {
            Work::Resp(work) => (
                Weighted::new(work.operations.iter().map(|operation| operation.weight)),
                &work.keys,
                &work.sizes,
            ),
            Work::Http(work) => (
                Weighted::new(work.requests.iter().map(|request| request.weight)),
                &work.keys,
                &work.sizes,
            ),
        };
        let batch = match &templates[..] {
            [single] if single.len() == 1 => single[0].bytes.repeat(plan.pipeline),
            _ => Vec::new(),
        };
        let spread = (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Renderer {
            operations,
            sizes: Weighted::new(sizes.iter().map(|size| size.weight)),
            templates,
            keys: KeyChooser::new(keys, sequence),
            random: Rng::from_seed(plan.seed.wrapping_add(spread)),
            batch,
            rendered: Vec::new(),
        }
    }

    /// The bytes of the next `count` requests, at most as many as a pipeline of the plan has, and
    /// their operations.
    #[inline]
    pub(crate) fn render(&mut self, count: usize) -> (&[u8], &[Rendered]) {
        self.rendered.clear();
        if let [single] = &self.templates[..]
            && let [template] = &single[..]
        {
            let length = template.bytes.len();
            if !template.holes.is_empty() {
                for copy in self.batch.chunks_exact_mut(length).take(count) {
                    fill(copy, &template.holes, &mut self.keys, &mut self.random);
                }
            }
            let bytes = length * count;
            self.rendered.push(Rendered { operation: 0, count, bytes });
            return (&self.batch[..bytes], &self.rendered);
        }
        if count == 1 {
            let (operation, size) = self.choose();
            let bytes = &self.templates[operation][size].bytes;
            self.rendered.push(Rendered { operation, count, bytes: bytes.len() });
            return (bytes, &self.rendered);
        }
        self.batch.clear();
        for _ in 0..count {
            let (operation, size) = self.choose();
            let bytes = &self.templates[operation][size].bytes;
            self.batch.extend_from_slice(bytes);
            match self.rendered.last_mut() {
                Some(last) if last.operation == operation => {
                    last.count += 1;
                    last.bytes += bytes.len();
                }
                _ => self.rendered.push(Rendered { operation, count: 1, bytes: bytes.len() }),
            }
        }
        (&self.batch, &self.rendered)
    }

    /// Draws a request for a cluster.
    pub(crate) fn draw(&mut self) -> Request {
        let operation = self.operations.choose(&mut self.random);
        let templates = &self.templates[operation];
        let size = if templates.len() == 1 { 0 } else { self.sizes.choose(&mut self.random) };
        let holes = templates[size].holes.iter();
        let numbers = holes.map(|_| self.keys.choose(&mut self.random)).collect();
        Request { operation, size, numbers, hops: 0 }
    }

    /// The bytes of a request, and the slot of its key.
    pub(crate) fn lay_out(&mut self, request: &Request) -> (&[u8], Option<u16>) {
        let Template { bytes, holes, key } = &mut self.templates[request.operation][request.size];
        for (hole, number) in holes.iter().zip(&request.numbers) {
            if let Some(digits) = bytes[*hole..].first_chunk_mut::<DIGITS>() {
                write_digits(digits, *number);
            }
        }
        (bytes, key.clone().map(|key| key_slot(&bytes[key])))
    }

    /// Chooses an operation and a size, and fills in the numbers of that template.
    #[inline]
    fn choose(&mut self) -> (usize, usize) {
        let operation = self.operations.choose(&mut self.random);
        let templates = &mut self.templates[operation];
        let size = if templates.len() == 1 { 0 } else { self.sizes.choose(&mut self.random) };
        let Template { bytes, holes, .. } = &mut templates[size];
        fill(bytes, holes, &mut self.keys, &mut self.random);
        (operation, size)
    }
}

/// Writes the numbers of a request into it.
#[inline]
fn fill(bytes: &mut [u8], holes: &[usize], keys: &mut KeyChooser, random: &mut Rng) {
    for hole in holes {
        if let Some(digits) = bytes[*hole..].first_chunk_mut::<DIGITS>() {
            write_digits(digits, keys.choose(random));
        }
    }
}

/// The last twelve decimal digits of a number.
#[inline]
pub(crate) fn write_digits(digits: &mut [u8; DIGITS], number: u64) {
    let mut rest = number % 1_000_000_000_000;
    for pair in digits.as_chunks_mut::<2>().0.iter_mut().rev() {
        let two = (rest % 100) as u8;
        rest /= 100;
        *pair = [b'0' + two / 10, b'0' + two % 10];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::template;
    use crate::load::{Keys, Operation, RespWork, Size};

    fn renderer(operations: &[(&str, f64)], keys: Keys, sizes: &[(usize, f64)]) -> Renderer {
        let operations = operations
            .iter()
            .map(|(text, weight)| Operation {
                name: (*text).to_owned(),
                weight: *weight,
                arguments: text.split(' ').map(str::to_owned).collect(),
            })
            .collect();
        let sizes = sizes.iter().map(|(bytes, weight)| Size { bytes: *bytes, weight: *weight });
        let sizes: Vec<Size> = sizes.collect();
        let work = RespWork { operations, keys, sizes, ..RespWork::default() };
        let templates = template::of_commands(&work, 1);
        let plan = Plan { pipeline: 16, work: Work::Resp(work), ..Plan::default() };
        Renderer::new(&plan, templates, &Arc::default(), 0)
    }

    #[test]
    fn each_request_of_a_batch_has_its_own_number() {
        let keys = Keys::Sequential { count: 1000 };
        let mut renderer = renderer(&[("GET __rand_int__", 1.0)], keys, &[(3, 1.0)]);
        let (bytes, rendered) = renderer.render(3);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let numbers: Vec<&str> = text.lines().filter(|line| line.len() == 12).collect();
        assert_eq!(numbers, ["000000000000", "000000000001", "000000000002"]);
        assert_eq!(rendered, [Rendered { operation: 0, count: 3, bytes: text.len() }]);
    }

    #[test]
    fn mixes_are_put_together_in_runs() {
        let mix = [("SET __key__ __data__", 1.0), ("GET __key__", 1.0)];
        let keys = Keys::Uniform { count: 5 };
        let mut renderer = renderer(&mix, keys, &[(3, 1.0), (300, 1.0)]);
        for _ in 0..50 {
            let (bytes, rendered) = renderer.render(16);
            assert_eq!(rendered.iter().map(|run| run.count).sum::<usize>(), 16);
            assert_eq!(rendered.iter().map(|run| run.bytes).sum::<usize>(), bytes.len());
            assert!(rendered.windows(2).all(|pair| pair[0].operation != pair[1].operation));
        }
        let (bytes, rendered) = renderer.render(1);
        assert_eq!(rendered[0].bytes, bytes.len());
    }

    #[test]
    fn digits_are_those_of_the_number() {
        let mut digits = [0; DIGITS];
        for number in [0, 7, 1_234_567_890, 999_999_999_999, 1_000_000_000_001] {
            write_digits(&mut digits, number);
            let expected = format!("{:012}", number % 1_000_000_000_000);
            assert_eq!(digits, expected.as_bytes());
        }
    }
}
