use crate::cost::Allowance;
use crate::{Death, Network, Site, Transport, World};
use hodo_machine::{Instant, Machine};
use std::time::Duration;

/// Clients that keep the rules.
const CLIENTS: usize = 4;
/// Operations of each of them, one after the other.
const OPERATIONS: u64 = 20;
/// Clients that do not.
const WICKED: usize = 3;
/// Operations that each of those has asked for at any time.
const AT_ONCE: u64 = 100;
/// The time that a client which does not read, or goes, has had for asking.
const ASKING: Duration = Duration::from_micros(50);
/// The time within which every client has been served once, before any does wrong.
const GREETING: Duration = Duration::from_secs(10);

/// A vice of a client that has asked for as much at once as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vice {
    /// It asks again for each operation that is done.
    Greedy,
    /// It reads nothing.
    Stopped,
    /// The host has gone without a word.
    Gone,
}

/// Clients of one server, some of which are greedy, do not read, or are gone: the others wait no longer than their patience.
pub struct Crowd<'a, C: Machine> {
    /// The transport of the clients.
    pub transport: Transport,
    /// Adds the server, and what it needs, to the world; returns its node.
    pub server: &'a dyn Fn(&mut World) -> u32,
    /// Makes the client with this number, of the server at this node.
    pub client: &'a dyn Fn(u32, u64) -> C,
    /// The commands for an operation of a client that keeps the rules: by the client's number, and the operation's.
    pub operation: &'a dyn Fn(u64, u64) -> Vec<C::Command>,
    /// The commands for an operation of a client that does not.
    pub greedy: &'a dyn Fn(u64, u64) -> Vec<C::Command>,
    /// Whether an event says that an operation was done.
    pub is_done: fn(&C::Event) -> bool,
    /// The time within which an operation of a client that keeps the rules is done, whatever others do.
    pub patience: Duration,
    /// The cost of each machine.
    pub cost: Allowance,
}

/// A client, and its operations.
struct Member<C> {
    site: Site<C>,
    number: u64,
    is_wicked: bool,
    asked: u64,
    asked_at: Instant,
    done: u64,
    /// Operations after which it asks for no more.
    enough: u64,
}

impl<C: Machine + Send + 'static> Crowd<'_, C>
where
    C::Event: Send,
{
    /// Runs the crowd with each vice.
    ///
    /// # Panics
    /// With the vice, where a client that keeps the rules is not served within its patience, or a machine costs too much.
    pub fn is_fair(&self) {
        for vice in [Vice::Greedy, Vice::Stopped, Vice::Gone] {
            if let Err(what) = self.run(vice) {
                panic!("beside {WICKED} clients that are {vice:?}: {what}");
            }
        }
    }

    fn run(&self, vice: Vice) -> Result<(), String> {
        let (mut world, mut members) = self.gathered();
        members.iter_mut().for_each(|member| self.ask(&mut world, member));
        self.serve(&mut world, &mut members, |_| true, GREETING)?;
        for member in &mut members {
            member.enough = if member.is_wicked { u64::MAX } else { 1 + OPERATIONS };
            (0..if member.is_wicked { AT_ONCE } else { 1 }).for_each(|_| self.ask(&mut world, member));
        }
        if vice != Vice::Greedy {
            let end = world.now() + ASKING;
            while world.turn(end).is_some() {
                self.hear(&mut world, &mut members);
            }
            for member in members.extract_if(.., |member| member.is_wicked) {
                match vice {
                    Vice::Gone => world.kill(member.site.node, Death::Silent),
                    _ => world.stop(member.site.node),
                }
            }
        }
        self.serve(&mut world, &mut members, |member| !member.is_wicked, self.patience)
    }

    /// Returns the server and its clients, each of which is to do one operation.
    fn gathered(&self) -> (World, Vec<Member<C>>) {
        let (delay, cost) = (Duration::from_micros(20), Duration::from_micros(1));
        let mut world = World::new(&Network { delay, cost, ..Network::default() });
        let server = (self.server)(&mut world);
        let mut members = Vec::new();
        for number in 0..CLIENTS + WICKED {
            let site = world.add_site();
            world.set_opening(site.node, self.transport);
            world.set_listening(site.node, false);
            let (number, is_wicked) = (number as u64, number >= CLIENTS);
            world.start(site, (self.client)(server, number));
            members.push(Member { site, number, is_wicked, asked: 0, asked_at: Instant::ZERO, done: 0, enough: 1 });
        }
        (0..world.nodes()).for_each(|node| world.set_allowance(node, self.cost));
        (world, members)
    }

    /// Goes on until each of these members has had enough.
    fn serve(
        &self,
        world: &mut World,
        members: &mut [Member<C>],
        which: fn(&Member<C>) -> bool,
        patience: Duration,
    ) -> Result<(), String> {
        loop {
            let waiting = members.iter().filter(|member| which(member) && member.done < member.enough);
            let Some(first) = waiting.min_by_key(|member| member.asked_at) else { return Ok(()) };
            let (until, number, done) = (first.asked_at + patience, first.number, first.done);
            if world.now() > until || world.turn(until).is_none() {
                return Err(format!("client {number} waits for more than {patience:?}, with {done} operations done"));
            }
            self.hear(world, members);
        }
    }

    /// Takes the events of all members, and lets those that are done with an operation go on.
    fn hear(&self, world: &mut World, members: &mut [Member<C>]) {
        for member in members {
            while let Some(event) = world.take_event(member.site) {
                if (self.is_done)(&event) {
                    member.done += 1;
                    if member.asked < member.enough {
                        self.ask(world, member);
                    }
                }
            }
        }
    }

    fn ask(&self, world: &mut World, member: &mut Member<C>) {
        let operation = if member.is_wicked && member.enough > 1 { self.greedy } else { self.operation };
        for command in operation(member.number, member.asked) {
            world.command(member.site, command);
        }
        member.asked += 1;
        member.asked_at = world.now();
    }
}
