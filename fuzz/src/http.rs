use crate::{Accepts, drive};
use hodo_daemon::{Answer, Http, Reply, parse};
use hodo_machine::{Cursor, Peer, Transport};

/// Drives the far end of HTTP connections by a script, and parses the bytes as one request, which any longer input gives
/// too.
pub fn server(input: &[u8]) {
    if let Ok(Some((request, length))) = parse(input) {
        assert!(request.path.starts_with('/') && (1..=input.len()).contains(&length));
        assert_eq!(parse(&input[..length]), Ok(Some((request, length))));
        assert_eq!(parse(&input[..length - 1]), Ok(None), "a request is read when its last byte is there");
    }
    // It is told what is wrong without the application's part.
    let says = b"BREW / HTTP/1.1\r\n\r\n".to_vec();
    let accepts = Accepts::new(Transport::Stream, says, b"HTTP/1.1 405".len());
    drive(Http::default(), input, Some(&accepts), answer);
}

/// Returns an answer to whoever may have asked.
fn answer(bytes: &[u8]) -> Option<Answer> {
    let mut cursor = Cursor::new(bytes);
    let (tag, peer) = (u64::from(cursor.u8().ok()?), u32::from(cursor.u8().ok()?));
    let body = String::from_utf8_lossy(cursor.rest()).repeat(100);
    Some(Answer { tag, peer: Peer(Peer::FIRST_ACCEPTED + peer), reply: Reply::text(200, body) })
}
