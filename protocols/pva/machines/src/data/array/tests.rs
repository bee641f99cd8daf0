use super::*;
use crate::wire::Side;
use alloc::vec;

fn encoded(array: &Array, order: Order) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, order);
    array.encode(None, &mut writer);
    writer.to_vec()
}

fn decoded(scalar: Scalar, bytes: &[u8], order: Order) -> Result<Array, Error> {
    let limits = Limits::default();
    let mut array = Array::empty(scalar);
    array.decode(None, &mut Reader::new(bytes, order, &limits))?;
    Ok(array)
}

#[test]
fn literal_arrays_decode_and_encode() {
    let (little, big) = (b"\x02\x01\0\0\0\xFE\xFF\xFF\xFF", b"\x02\0\0\0\x01\xFF\xFF\xFF\xFE");
    for (bytes, order) in [(little, Order::Little), (big, Order::Big)] {
        let array = decoded(Scalar::I32, bytes, order).expect("it is whole");
        assert_eq!(array, Array::from(vec![1i32, -2]));
        assert_eq!(array.iter::<i32>().expect("its type").collect::<Vec<_>>(), [1, -2]);
        for other in Order::BOTH {
            assert_eq!(decoded(Scalar::I32, &encoded(&array, other), other), Ok(array.clone()));
        }
        assert_eq!(encoded(&array, order), bytes);
    }
    assert_eq!(encoded(&Array::bools([true, false]), Order::Big), [2, 1, 0]);
}

#[test]
fn texts_of_any_length_change_their_byte_order() {
    let long = "x".repeat(300);
    let array = Array::texts(["a", "", &long]);
    for order in Order::BOTH {
        let found = decoded(Scalar::Text, &encoded(&array, order), order).expect("it is whole");
        assert_eq!(found, array);
        assert_eq!(found.iter_texts().expect("texts").map(<[u8]>::len).collect::<Vec<_>>(), [1, 0, 300]);
    }
    assert_eq!(array.first(2), Array::texts(["a", ""]));
}

#[test]
fn elements_are_taken_over_and_lent_without_a_copy() {
    let elements: Vec<f64> = (0..1000).map(f64::from).collect();
    let place = elements.as_ptr();
    let array = Array::from(elements);
    assert_eq!(array.as_slice::<f64>().map(<[f64]>::as_ptr), Some(place));
    let mut writer = Writer::new(Side::Server, Order::NATIVE);
    array.encode(None, &mut writer);
    let mut out = hodo_machine::Outbox::new();
    writer.flush(&mut out);
    let sent = out.pieces().iter().any(|piece| out.bytes(piece).as_ptr() == place.cast());
    assert!(sent, "the bytes that are sent are the vector's");
}

#[test]
fn another_type_has_no_elements() {
    let array = Array::from(vec![1u16]);
    assert!(array.as_slice::<i16>().is_none() && array.iter::<u8>().is_none() && array.iter_texts().is_none());
}

#[test]
fn elements_that_are_not_aligned_or_swapped_are_copied() {
    let bytes = Bytes::from(vec![0, 0, 0, 1, 0, 0, 0, 2, 9]);
    let array = Array::from_bytes(Scalar::U32, Order::Big, bytes.slice(..8)).expect("two elements");
    assert_eq!(array.to_slice::<u32>().expect("its type").as_ref(), [1, 2]);
    assert!(Array::from_bytes(Scalar::U32, Order::Big, bytes).is_none());
}

#[test]
fn memory_is_used_again_where_nobody_shares_it() {
    let limits = Limits::default();
    let bytes = encoded(&Array::from(vec![7u8; 100]), Order::Little);
    let mut array = decoded(Scalar::U8, &bytes, Order::Little).expect("it is whole");
    let place = array.bytes.as_ptr();
    array.decode(None, &mut Reader::new(&bytes, Order::Little, &limits)).expect("it is whole");
    assert_eq!(array.bytes.as_ptr(), place);
    let shared = array.clone();
    array.decode(None, &mut Reader::new(&bytes, Order::Little, &limits)).expect("it is whole");
    assert_ne!(array.bytes.as_ptr(), place);
    assert_eq!(shared, array);
}

#[test]
fn a_fixed_array_has_its_number_of_elements() {
    let limits = Limits::default();
    for (elements, sent) in [(vec![1u16, 2, 3], [1, 0, 2, 0]), (vec![1], [1, 0, 0, 0])] {
        let mut writer = Writer::new(Side::Client, Order::Little);
        Array::from(elements).encode(Some(2), &mut writer);
        assert_eq!(writer.to_vec(), sent);
        let mut array = Array::empty(Scalar::U16);
        array.decode(Some(2), &mut Reader::new(&sent, Order::Little, &limits)).expect("it is whole");
        assert_eq!(array.len(), 2);
    }
    let over = Array::empty(Scalar::U16).decode(Some(u64::MAX), &mut Reader::new(&[1, 2], Order::Little, &limits));
    assert!(matches!(over, Err(Error::Truncated { .. })));
}
