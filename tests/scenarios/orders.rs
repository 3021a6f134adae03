//! Every order of what can happen: a run is repeated with other choices until all have been taken.
//!
//! Not here: what can happen.

/// The choices of one run, and which run comes next.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    taken: Vec<Choice>,
    at: usize,
}

#[derive(Debug)]
struct Choice {
    taken: usize,
    options: usize,
}

impl Orders {
    /// One of so many options; in the course of the runs each one, in each context.
    pub(crate) fn choose(&mut self, options: usize) -> usize {
        assert!(options > 0, "nothing to choose from");
        if self.at == self.taken.len() {
            self.taken.push(Choice { taken: 0, options });
        }
        let choice = &self.taken[self.at];
        assert_eq!(choice.options, options, "a run is not the same when repeated");
        self.at += 1;
        choice.taken
    }

    /// Go on to the next run. False: that was the last one.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some(last) = self.taken.last_mut() {
            last.taken += 1;
            if last.taken < last.options {
                return true;
            }
            self.taken.pop();
        }
        false
    }
}

/// Run with every sequence of choices, and say how many there were.
pub(crate) fn every_order(mut run: impl FnMut(&mut Orders)) -> u64 {
    let mut orders = Orders::default();
    let mut count = 0;
    loop {
        run(&mut orders);
        count += 1;
        assert!(count < ORDERS_MAX, "the scenario is too large to be tried in every order");
        if !orders.advance() {
            return count;
        }
    }
}

const ORDERS_MAX: u64 = 300_000;

#[test]
fn every_sequence_of_choices_is_taken_once() {
    let mut seen = Vec::new();
    let count = every_order(|orders| {
        let first = orders.choose(2);
        let second = if first == 1 { orders.choose(3) } else { 9 };
        seen.push((first, second));
    });
    assert_eq!((count, &seen[..]), (4, &[(0, 9), (1, 0), (1, 1), (1, 2)][..]));
}
