//! Repository chores that are not part of the product: figures and generated docs.
fn main() {}
