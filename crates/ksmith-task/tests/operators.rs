//! The format holds for real operators: each contract parses, binds at its workloads and passes the static lint.

use ksmith_task::Task;

#[test]
fn softmax_binds_with_axes_in_the_order_of_the_file() {
    let task = Task::load(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/operators/softmax"))
        .unwrap_or_else(|error| panic!("{}", error.render()));
    let instances = task.instances();
    let ids: Vec<_> = instances.iter().map(|instance| instance.id()).collect();
    assert_eq!(ids, ["softmax[T=f32]", "softmax[T=bf16]"]);
    let bound = instances[1].bind(&task.contract().workloads[0].axes).unwrap();
    assert_eq!(bound.axes, [("rows".to_owned(), 256), ("cols".to_owned(), 2048)]);
    assert_eq!(bound.tensors[0].extent_bytes, 256 * 2048 * 2);
    assert_eq!(task.contract().hidden.distributions.len(), 5);
}
