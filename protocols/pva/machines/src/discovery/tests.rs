use super::*;
use alloc::vec::Vec;

#[test]
fn a_datagram_is_read_up_to_what_is_no_message() {
    let message = |flags: u8, command: u8, body: &[u8]| {
        [&[0xCA, 2, flags, command][..], &[0, 0, 0, body.len() as u8], body].concat()
    };
    let (first, second) = (message(0x80, 22, &[1; 16]), message(0xC0, 3, b"xy"));
    let commands = |datagram: &[u8]| messages(datagram).map(|piece| piece.message.command).collect::<Vec<_>>();
    assert_eq!(commands(&[&first[..], &second].concat()), [22, 3]);
    assert_eq!(messages(&second).next().map(|piece| (piece.from, piece.bytes.len())), Some((Side::Server, 10)));
    for behind in [&second[..9], &message(0x81, 2, &[]), &message(0x90, 3, b"xy"), b"GET / HTTP/1.1", &[0xCA, 2]] {
        assert_eq!(commands(&[&first[..], behind].concat()), [22], "{behind:02x?}");
    }
    assert_eq!(commands(&message(0x80, 3, &[]).repeat(100)).len(), MESSAGES);
}
