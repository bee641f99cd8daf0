//! The example of a controller that a program runs.

#[allow(dead_code)]
#[path = "../examples/controller.rs"]
mod controller;

#[test]
fn a_program_runs_a_controller_with_a_store() {
    let directory = std::env::temp_dir().join(format!("hodo-example-{}", std::process::id()));
    let status = controller::run(&directory).expect("the farm runs");
    let verified = hodo_store::verify(&directory).expect("there is a store");
    std::fs::remove_dir_all(&directory).expect("it is ours");
    assert_eq!((status.events.taken_in, status.events.accepted, status.events.rejected), (1000, 100, 900));
    assert_eq!((status.store.events, verified.events), (100, 100));
    assert!(verified.is_good());
}
