//! Identity of an OMS on its lines.

use super::{TestLine, joined};

#[test]
fn all_lines_of_an_oms_send_the_same_identity() {
    let ([one, other], _scene, oms, _client) = joined::<2>(|_| {});
    let resume = |wire: &TestLine| wire.with_state(|state| state.resume).expect("the line has connected");
    let (one, other) = (resume(&one), resume(&other));
    assert_ne!(one.journal, other.journal, "each line has numbers of its own");
    assert_eq!(one.oms, other.oms, "an exchange keeps order ids apart by this");
    assert!(one.oms != 0 && one.oms != one.journal, "it is that of the journal, and not of a line");
    drop(oms);
}
