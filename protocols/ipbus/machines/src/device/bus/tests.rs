use super::*;
use alloc::vec;

fn bus(registers: impl IntoIterator<Item = Register>) -> Bus {
    Bus::new(Registers::new(registers).expect("they do not overlap"), vec![0; 4], 1 << 20)
}

fn read(bus: &mut Bus, mode: Mode, address: u32, words: u16) -> (Vec<u32>, Carried) {
    let mut out = Vec::new();
    let operation = Operation::Read { mode, address, words };
    let carried = bus.carry_out(&operation, Version::V2_0, Order::Little, &mut out);
    (Words::new(&out, Order::Little).iter().collect(), carried)
}

fn write(bus: &mut Bus, mode: Mode, address: u32, words: &[u32]) -> Carried {
    let mut bytes = Vec::new();
    Order::Big.append(words, &mut bytes);
    let operation = Operation::Write { mode, address, data: Words::new(&bytes, Order::Big) };
    bus.carry_out(&operation, Version::V2_0, Order::Big, &mut Vec::new())
}

#[test]
fn a_fifo_gives_what_was_put_in_and_has_bounds() {
    let mut bus = bus([Register::fifo(5, 3)]);
    assert_eq!(write(&mut bus, Mode::Fifo, 5, &[1, 2, 3, 4]), Carried::only(3, Access::Write, Failure::Error));
    assert_eq!((bus.peek(5), bus.fifo(5).collect::<Vec<_>>()), (1, vec![1, 2, 3]));
    assert_eq!(read(&mut bus, Mode::Fifo, 5, 2), (vec![1, 2], Carried::all(2)));
    assert_eq!(read(&mut bus, Mode::Fifo, 5, 2), (vec![3], Carried::only(1, Access::Read, Failure::Error)));
    bus.poke(5, 9);
    assert_eq!(read(&mut bus, Mode::Incrementing, 4, 3), (vec![0, 9, 0], Carried::all(3)), "one word of a block");
    assert_eq!(bus.fifo(6).count(), 0, "memory is none");
}

#[test]
fn a_counter_counts_its_reads() {
    let mut bus = bus([Register::word(5).counting().holding(u32::MAX - 1)]);
    assert_eq!(read(&mut bus, Mode::Fifo, 5, 3).0, [u32::MAX - 1, u32::MAX, 0]);
    assert_eq!(bus.peek(5), 1);
    assert_eq!(write(&mut bus, Mode::Incrementing, 5, &[7]), Carried::all(1));
    assert_eq!(read(&mut bus, Mode::Incrementing, 5, 1).0, [7]);
}

#[test]
fn masks_say_which_bits_are_seen_and_changed() {
    let mut bus = bus([Register::block(8, 2).readable(0xFFFF).writable(0x00FF_00FF).holding(0x1234_5678)]);
    assert_eq!(write(&mut bus, Mode::Incrementing, 8, &[u32::MAX, 0]), Carried::all(2));
    assert_eq!((bus.peek(8), bus.peek(9)), (0x12FF_56FF, 0x1200_5600));
    assert_eq!(read(&mut bus, Mode::Incrementing, 8, 2).0, [0x56FF, 0x5600]);
}

#[test]
fn permissions_are_kept_by_the_bus() {
    let mut bus = bus([Register::word(1).read_only().holding(5), Register::word(3).write_only()]);
    assert_eq!(
        read(&mut bus, Mode::Incrementing, 0, 5),
        (vec![0, 5, 0], Carried::only(3, Access::Read, Failure::Error))
    );
    assert_eq!(write(&mut bus, Mode::Incrementing, 0, &[9; 5]), Carried::only(1, Access::Write, Failure::Error));
    assert_eq!(write(&mut bus, Mode::Fifo, 3, &[1, 2]), Carried::all(2));
    assert_eq!((bus.peek(0), bus.peek(1), bus.peek(3)), (9, 5, 2));
}

#[test]
fn a_reset_brings_back_what_registers_hold() {
    let mut bus = bus([Register::block(1, 2).holding(7), Register::fifo(9, 2), Register::word(4)]);
    write(&mut bus, Mode::Incrementing, 0, &[1; 6]);
    write(&mut bus, Mode::Fifo, 9, &[1]);
    write(&mut bus, Mode::Configuration, 0, &[1]);
    bus.reset();
    assert_eq!(read(&mut bus, Mode::Incrementing, 0, 6).0, [0, 7, 7, 0, 0, 0]);
    assert_eq!(read(&mut bus, Mode::Configuration, 0, 1).0, [0]);
    assert_eq!(bus.fifo(9).count(), 0);
}

#[test]
fn memory_has_an_end_and_the_space_goes_round() {
    let mut bus = Bus::new(Registers::default(), vec![], 0);
    assert_eq!(write(&mut bus, Mode::Incrementing, 0, &[1]), Carried::only(0, Access::Write, Failure::Error));
    assert_eq!(write(&mut bus, Mode::Fifo, 0, &[1]), Carried::only(0, Access::Write, Failure::Error));
    assert_eq!(read(&mut bus, Mode::Incrementing, 0, 2).0, [0, 0]);
    let mut bus = Bus::new(Registers::new([Register::fifo(5, u32::MAX)]).expect("it is one"), vec![], 2 * WORD);
    let over = Carried::only(2, Access::Write, Failure::Error);
    assert_eq!(write(&mut bus, Mode::Fifo, 5, &[1, 2, 3]), over, "FIFOs count too");
    assert_eq!(read(&mut bus, Mode::Fifo, 5, 1).0, [1]);
    assert_eq!(write(&mut bus, Mode::Fifo, 5, &[3]), Carried::all(1));
    let mut bus = super::tests::bus([Register::word(0).read_only()]);
    let over = write(&mut bus, Mode::Incrementing, u32::MAX, &[1, 2]);
    assert_eq!(over, Carried::only(1, Access::Write, Failure::Error), "address 0 follows the last one");
    assert_eq!(bus.peek(u32::MAX), 1);
}

/// Registers that are memory in all but name give the same words as memory, wherever they lie in a block.
#[test]
fn blocks_over_registers_are_the_words_of_each() {
    let mut random = hodo_machine::Random::new(4);
    for _ in 0..300 {
        let places = (0..8).map(|place| (place * 64 + random.below(40) as u32, 1 + random.below(24) as u32));
        let places: Vec<_> = places.collect();
        let plain = places.iter().map(|(at, words)| match at % 3 {
            0 => Register::block(*at, *words),
            1 => Register::block(*at, *words).counting(),
            _ => Register::block(*at, *words).readable(u32::MAX - 1).writable(u32::MAX),
        });
        let mut with = bus(plain);
        let mut without = bus([]);
        let (address, count) = (random.below(300) as u32, random.below(255) as usize);
        let words: Vec<u32> = (0..count).map(|_| (random.bits() as u32) << 1).collect();
        assert_eq!(write(&mut with, Mode::Incrementing, address, &words), Carried::all(count));
        assert_eq!(write(&mut without, Mode::Incrementing, address, &words), Carried::all(count));
        let both = [&mut with, &mut without].map(|bus| read(bus, Mode::Incrementing, 0, 512).0);
        assert_eq!(both[0], both[1]);
    }
}
