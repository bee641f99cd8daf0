use hodo_machine::{Cursor, FramePiece, Frames, Truncated};

/// Checks that frames of a type byte and a 16-bit length are the same however the stream is cut. The first byte says how.
pub fn frames(input: &[u8]) {
    let Some((cut, stream)) = input.split_first() else { return };
    let whole = cut_into_frames(stream, stream.len().max(1));
    assert_eq!(cut_into_frames(stream, usize::from(*cut).max(1)), whole, "cut every {cut} bytes");
    let headers: usize = whole.len() * 3;
    let bodies: usize = whole.iter().map(|frame| frame.1.len()).sum();
    assert!(stream.len() - (headers + bodies) < 3, "only a partial header is kept");
}

fn cut_into_frames(stream: &[u8], cut: usize) -> Vec<([u8; 3], Vec<u8>)> {
    let mut frames = Frames::<3>::default();
    let mut found: Vec<([u8; 3], Vec<u8>)> = Vec::new();
    for mut chunk in stream.chunks(cut) {
        while let Some(piece) = frames.next(&mut chunk) {
            match piece {
                FramePiece::Header(header) => {
                    frames.expect_body(u64::from(u16::from_le_bytes([header[1], header[2]])));
                    found.push((header, Vec::new()));
                }
                FramePiece::Body(bytes, left) => {
                    assert_eq!(left, frames.body_left());
                    found.last_mut().expect("a body follows a header").1.extend_from_slice(bytes);
                }
            }
        }
        assert!(chunk.is_empty(), "a partial header is kept, not left");
    }
    found
}

/// Checks that the bytes read and the bytes left always add up. The first half says what to read from the second.
pub fn cursor(input: &[u8]) {
    let (script, bytes) = input.split_at(input.len() / 2);
    let mut cursor = Cursor::new(bytes);
    for step in script {
        let before = cursor.rest().len();
        let (need, read) = match step % 6 {
            0 => (1, cursor.u8().map(drop)),
            1 => (2, cursor.u16_le().map(drop)),
            2 => (4, cursor.u32_le().map(drop)),
            3 => (8, cursor.u64_le().map(drop)),
            4 => (5, cursor.array::<5>().map(drop)),
            _ => (usize::from(*step), cursor.bytes(usize::from(*step)).map(drop)),
        };
        let expected = if need <= before { Ok(()) } else { Err(Truncated { need, have: before }) };
        assert_eq!(read, expected);
        assert_eq!(cursor.rest().len(), if need <= before { before - need } else { before });
    }
}
