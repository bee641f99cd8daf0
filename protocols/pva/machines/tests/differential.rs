//! Values at random are decoded by pvDataCPP, and encoded by it to the bytes that we encode, in both byte orders.

use crate::any;
use crate::golden;

use golden::{hex, lines};
use hodo_pva::wire::Side;
use hodo_pva::{Limits, Order, Reader, TypeCache, Value, Writer};

#[test]
fn random_values_are_encoded_as_the_peer_encodes_them() {
    let mut count = 0;
    for line in lines(include_str!("golden/random.txt")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [seed, little, big] = words[..] else { panic!("no case: {line}") };
        let value = any::of_seed(seed.parse().expect("a seed"));
        for (order, digits) in Order::BOTH.into_iter().zip([little, big]) {
            let bytes = hex(digits);
            let mut writer = Writer::new(Side::Client, order);
            Value::encode_any(Some(&value), &mut writer);
            assert_eq!(writer.to_vec(), bytes, "seed {seed}, {order:?}");
            let limits = Limits::default();
            let found = Value::decode_any(&mut Reader::new(&bytes, order, &limits), &mut TypeCache::new());
            assert_eq!(found, Ok(Some(value.clone())), "seed {seed}, {order:?}");
        }
        count += 1;
    }
    assert_eq!(count, any::SEEDS);
}
