//! The state machine of a run: draft, plan, rounds, budget, promotion.
