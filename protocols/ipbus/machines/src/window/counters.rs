use core::ops::AddAssign;

/// The counters of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowCounters {
    /// Packets sent, each counted once.
    pub packets: u64,
    /// Packets sent again, because the device had not seen them.
    pub requests_lost: u64,
    /// Replies asked for again.
    pub replies_lost: u64,
    /// Status requests.
    pub statuses: u64,
    /// Times that an answer was late.
    pub late: u64,
    /// Replies to nothing that was outstanding. Late statuses do not count: several are asked for while none comes.
    pub strays: u64,
    /// Times that the device had forgotten the ids.
    pub restarts: u64,
    /// Packets that went alone, and after a pause, because another host sent packets too.
    pub alone: u64,
    /// Packets that were not done, because another host's packet had taken their number.
    pub taken: u64,
    /// Packets that were given up alone, because the device did not take them, or never sent their replies, while others waited.
    pub isolated: u64,
}

impl AddAssign for WindowCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.requests_lost += other.requests_lost;
        self.replies_lost += other.replies_lost;
        self.statuses += other.statuses;
        self.late += other.late;
        self.strays += other.strays;
        self.restarts += other.restarts;
        self.alone += other.alone;
        self.taken += other.taken;
        self.isolated += other.isolated;
    }
}
