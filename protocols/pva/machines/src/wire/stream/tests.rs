use super::*;
use crate::Writer;
use crate::wire::Control;
use alloc::vec;
use alloc::vec::Vec;

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    nesting: 20,
    fields: 1000,
    cached_fields: 1000,
    value_bytes: 1 << 20,
    recycled_bytes: 1 << 20,
};

/// A message as it was found: its command, and its payload.
type Found = (u8, Vec<u8>);

fn note(incoming: &Incoming<'_>, found: &mut Vec<Found>) {
    found.push(match incoming {
        Incoming::Control(header) => (header.command | 0x80, header.size.to_le_bytes().to_vec()),
        Incoming::Message(message) => (message.command, message.payload().to_vec()),
    });
}

/// Returns the messages of a stream that comes in chunks of so many bytes, landing where the reader offers it.
fn read(stream: &[u8], chunk: usize, lands: bool) -> Result<Vec<Found>, Error> {
    let mut inbound = Inbound::new(Side::Server);
    let mut found = Vec::new();
    for mut bytes in stream.chunks(chunk) {
        if lands && let Some(place) = inbound.landing() {
            let count = place.len().min(bytes.len());
            place[..count].copy_from_slice(&bytes[..count]);
            if let Some(incoming) = inbound.landed(count) {
                note(&incoming, &mut found);
            }
            bytes = &bytes[count..];
        }
        while let Some(incoming) = inbound.next(&mut bytes, &LIMITS)? {
            note(&incoming, &mut found);
        }
    }
    Ok(found)
}

/// Returns a stream with a control message inside a segmented one, and what it holds.
fn stream() -> (Vec<u8>, Vec<Found>) {
    let long: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    let mut segmented = Writer::new(Side::Server, Order::Little).with_segments_of(6000);
    segmented.begin(10);
    segmented.bytes(&long);
    segmented.end();
    let mut segments = segmented.to_vec();
    let mut control = Writer::new(Side::Server, Order::Big);
    control.control(Control::EchoRequest, 7);
    segments.splice(6000 + HEADER..6000 + HEADER, control.to_vec());
    let mut whole = Writer::new(Side::Server, Order::Big);
    whole.begin(2);
    whole.bytes(b"short");
    whole.end();
    whole.begin(15);
    whole.end();
    whole.begin(13);
    whole.bytes(&long[..9000]);
    whole.end();
    let found = vec![
        (2, b"short".to_vec()),
        (15, Vec::new()),
        (13, long[..9000].to_vec()),
        (0x83, 7u32.to_le_bytes().to_vec()),
        (10, long),
        (2, b"short".to_vec()),
        (15, Vec::new()),
    ];
    let mut all = whole.to_vec();
    all.extend_from_slice(&segments);
    all.extend_from_slice(&whole.to_vec()[..2 * HEADER + 5]);
    (all, found)
}

#[test]
fn the_same_messages_are_found_however_the_stream_is_cut() {
    let (stream, all) = stream();
    for chunk in (1..70).chain([999, 4096, 8191, 29_000, stream.len()]) {
        for lands in [false, true] {
            assert_eq!(read(&stream, chunk, lands), Ok(all.clone()), "chunks of {chunk}, lands: {lands}");
        }
    }
}

#[test]
fn segments_out_of_order_are_refused() {
    let segment = |flags: u8, command: u8| [0xCA, 2, 0x40 | flags, command, 0, 0, 0, 0];
    for (pieces, is_allowed) in [
        (vec![segment(0x10, 10), segment(0x30, 10), segment(0x20, 10), segment(0, 11)], true),
        (vec![segment(0x10, 10), segment(0x30, 11)], false),
        (vec![segment(0x10, 10), segment(0x10, 10)], false),
        (vec![segment(0x10, 10), segment(0, 10)], false),
        (vec![segment(0x30, 10)], false),
        (vec![segment(0x20, 10)], false),
    ] {
        let found = read(&pieces.concat(), 8, false);
        assert_eq!(found.is_ok(), is_allowed, "{pieces:02X?}: {found:?}");
    }
}

#[test]
fn a_message_over_the_limit_is_refused_by_its_header_or_by_the_sum_of_its_segments() {
    let over = [0xCA, 2, 0x40, 10, 1, 0, 0x10, 0];
    assert!(matches!(read(&over, 8, true), Err(Error::OverLimit { count: 0x10_0001, .. })));
    let mut writer = Writer::new(Side::Server, Order::Little).with_segments_of(1 << 19);
    writer.begin(10);
    writer.bytes(&vec![0; (1 << 20) + 1]);
    writer.end();
    assert!(matches!(read(&writer.to_vec(), 1 << 16, true), Err(Error::OverLimit { .. })));
}

#[test]
fn a_size_that_is_only_claimed_takes_little_memory() {
    let claims = [0xCA, 2, 0x40, 10, 0, 0, 0x0F, 0];
    let mut inbound = Inbound::new(Side::Server);
    let mut bytes = &claims[..];
    assert!(inbound.next(&mut bytes, &LIMITS).is_ok_and(|found| found.is_none()));
    assert!(inbound.landing().is_some_and(|place| place.len() <= ROOM));
}

#[test]
fn who_plays_the_same_part_is_refused() {
    assert_eq!(read(&[0xCA, 2, 0, 10, 0, 0, 0, 0], 8, false), Err(Error::SameSide));
}

/// Sends the same long message again and again to a reader whose application keeps the value of the last one only.
#[test]
fn buffers_are_used_again_and_arrays_become_aligned() {
    let mut writer = Writer::new(Side::Server, Order::Little);
    writer.begin(10);
    writer.bytes(&[1; 13]);
    writer.bytes(&vec![2; 80_000]);
    writer.end();
    let stream = writer.to_vec();
    let mut inbound = Inbound::new(Side::Server);
    let mut kept = Bytes::new();
    let mut places = Vec::new();
    for _ in 0..8 {
        let mut rest = &stream[..];
        let mut left_over = loop {
            let mut chunk = &rest[..rest.len().min(1000)];
            let landed = inbound.landing().map(|place| {
                let count = place.len().min(rest.len());
                place[..count].copy_from_slice(&rest[..count]);
                count
            });
            rest = &rest[landed.unwrap_or(chunk.len())..];
            let found = match landed {
                Some(count) => inbound.landed(count),
                None => inbound.next(&mut chunk, &LIMITS).expect("it is a message"),
            };
            if let Some(Incoming::Message(message)) = found {
                let mut reader = message.reader(&LIMITS);
                reader.bytes(13).expect("it is there");
                let array = reader.share(80_000).expect("it is there").expect("it is long");
                reader.give_back(core::mem::replace(&mut kept, array));
                let mut left_over = LeftOver::default();
                reader.leave(&mut left_over);
                break left_over;
            }
        };
        inbound.recycle(&mut left_over, &LIMITS);
        places.push(kept.as_ptr() as usize);
    }
    assert!(places[1..].iter().all(|place| place % 8 == 0), "{places:X?}");
    places.sort_unstable();
    let buffers = 1 + places.windows(2).filter(|pair| pair[1] - pair[0] > SHARE_FROM).count();
    assert!(buffers <= SPENT + 1, "{places:X?}");
    assert_eq!(kept.len(), 80_000);
}
