//! The order of starts, lanes and cases: drawn from the caller's seed, one stream for each stage.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use super::{OrderSeed, Stage};

/// Draws orders.
pub(crate) struct Order(ChaCha20Rng);

impl Order {
    /// The order of one stage.
    pub(crate) fn new(seed: OrderSeed, stage: Stage) -> Self {
        let mut generator = ChaCha20Rng::from_seed(seed.0);
        generator.set_stream(match stage {
            Stage::Decision => 1,
            Stage::Confirmation => 2,
        });
        Self(generator)
    }

    /// A number below `limit`. The bias of the remainder is below 2^-32 for the few dozen places drawn here.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.next_u64() % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// Fisher and Yates: each order is equally likely, so that equal arms are exchangeable.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_order_and_stages_differ() {
        let draw = |stage| {
            let mut items: Vec<u32> = (0..20).collect();
            Order::new(OrderSeed([7; 32]), stage).shuffle(&mut items);
            items
        };
        assert_eq!(draw(Stage::Decision), draw(Stage::Decision));
        assert_ne!(draw(Stage::Decision), draw(Stage::Confirmation));
    }

    #[test]
    fn each_of_two_arms_goes_first_in_half_of_the_rounds() {
        let mut order = Order::new(OrderSeed([1; 32]), Stage::Decision);
        let first = (0..10_000)
            .filter(|_| {
                let mut arms = [0, 1, 2];
                order.shuffle(&mut arms);
                arms.iter().position(|arm| *arm == 0) < arms.iter().position(|arm| *arm == 1)
            })
            .count();
        // Six standard deviations of a fair coin are 300.
        assert!((4700..5300).contains(&first), "{first}");
    }
}
