//! Two connected queue pairs, each with a region of memory.

#![allow(dead_code, reason = "each test uses a part of it")]

use hodo_machine::{Address, Instant};
use hodo_roce::{
    Access, AckTimeout, Adapter, AdapterConfig, Capacity, Completion, Connection, Counters, Mtu, Operation, Psn,
    ReceiveRequest, ScatterEntry, SendRequest,
};
use hodo_sim::{Network, Site, World};
use std::time::Duration;

/// Bytes of each region.
pub const REGION: usize = 1 << 18;

#[derive(Debug, Clone, Copy)]
pub struct Region {
    pub key: u32,
    pub address: u64,
}

pub struct Pair {
    pub world: World,
    pub sites: [Site<Adapter>; 2],
    pub numbers: [u32; 2],
    pub regions: [Region; 2],
}

/// Returns the attributes of either side, toward node `to`.
pub fn connection(to: u32, queue_pair: u32) -> Connection {
    Connection {
        address: Address::Node(to),
        queue_pair,
        receive_psn: Psn::new(0xFF_FFF0 + to),
        send_psn: Psn::new(0xFF_FFF0 + 1 - to),
        mtu: Mtu::new(1024).unwrap(),
        timeout: AckTimeout::Fixed(Duration::from_millis(1)),
        retries: 7,
        receiver_not_ready_retries: 7,
        receiver_not_ready_timer: 12,
        reads: 4,
        reads_served: 4,
    }
}

impl Pair {
    pub fn new(network: &Network) -> Pair {
        Self::with(network, &|_, connection| connection)
    }

    /// Connects two adapters; `change` may change the attributes of each side.
    pub fn with(network: &Network, change: &dyn Fn(usize, Connection) -> Connection) -> Pair {
        let mut world = World::new(network);
        let capacity =
            Capacity { send_depth: 64, receive_depth: 64, send_entries: 4, receive_entries: 4, inline_bytes: 64 };
        let sites = [1, 2].map(|seed| {
            let site = world.add(Adapter::new(AdapterConfig { seed: network.seed ^ seed, ..AdapterConfig::default() }));
            world.set_opening(site.node, hodo_machine::Transport::Datagram);
            site
        });
        let mut regions = [Region { key: 0, address: 0 }; 2];
        let mut numbers = [0; 2];
        for side in 0..2 {
            let adapter = world.machine_mut(sites[side]).unwrap();
            let (key, address) = adapter.register(vec![0; REGION], Access::ALL, None).unwrap();
            regions[side] = Region { key, address };
            numbers[side] = adapter.create(&capacity).unwrap();
        }
        for side in 0..2 {
            let other = 1 - side;
            let connection = change(side, connection(sites[other].node, numbers[other]));
            world.machine_mut(sites[side]).unwrap().connect(numbers[side], &connection).unwrap();
            world.continue_later(sites[side].node);
        }
        Pair { world, sites, numbers, regions }
    }

    pub fn adapter(&mut self, side: usize) -> &mut Adapter {
        self.world.machine_mut(self.sites[side]).unwrap()
    }

    pub fn counters(&self, side: usize) -> Counters {
        self.world.machine(self.sites[side]).unwrap().counters()
    }

    pub fn bytes(&self, side: usize) -> &[u8] {
        self.world.machine(self.sites[side]).unwrap().region(self.regions[side].key).unwrap()
    }

    pub fn fill(&mut self, side: usize, offset: usize, length: usize, byte: u8) {
        let key = self.regions[side].key;
        self.adapter(side).region_mut(key).unwrap()[offset..offset + length].fill(byte);
    }

    fn entry(&self, side: usize, offset: usize, length: usize) -> ScatterEntry {
        let Region { key, address } = self.regions[side];
        ScatterEntry { address: address + offset as u64, length: length as u32, key }
    }

    pub fn post_send(&mut self, side: usize, id: u64, operation: Operation, offset: usize, length: usize) {
        let (entries, number) = ([self.entry(side, offset, length)], self.numbers[side]);
        self.adapter(side).post_send(number, &SendRequest::new(id, operation, &entries)).unwrap();
        let node = self.sites[side].node;
        self.world.continue_later(node);
    }

    pub fn post_receive(&mut self, side: usize, id: u64, offset: usize, length: usize) {
        let (entries, number) = ([self.entry(side, offset, length)], self.numbers[side]);
        self.adapter(side).post_receive(number, &ReceiveRequest { id, entries: &entries }).unwrap();
    }

    pub fn take(&mut self, side: usize) -> Vec<Completion> {
        let site = self.sites[side];
        std::iter::from_fn(|| self.world.take_event(site)).collect()
    }

    /// Runs until each side has that many completions, for ten seconds at most.
    pub fn run_until(&mut self, first: usize, second: usize) -> [Vec<Completion>; 2] {
        let mut taken = [Vec::new(), Vec::new()];
        let end = self.now() + Duration::from_secs(10);
        while taken[0].len() < first || taken[1].len() < second {
            assert!(self.now() < end, "only {taken:?} came, of {first} and {second}");
            if self.world.turn(end).is_none() && self.now() < end {
                break;
            }
            for (side, taken) in taken.iter_mut().enumerate() {
                taken.extend(self.take(side));
            }
        }
        taken
    }

    pub fn run_for_millis(&mut self, millis: u64) {
        let end = self.now() + Duration::from_millis(millis);
        while self.world.turn(end).is_some() {}
    }

    pub fn now(&self) -> Instant {
        self.world.now()
    }
}
