//! Which processors the two sides run on.

use hodo_measure::units::cpus_text;

/// Processors of this side and of a far end that is started here; empty: wherever the kernel puts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// This side's.
    pub here: Vec<usize>,
    /// The far end's.
    pub far: Vec<usize>,
    /// Send and receive buffers of the streams on both sides; `None` leaves the system's.
    pub socket_buffer: Option<usize>,
}

impl Placement {
    /// Returns the placement by the rule: one channel has the first processor here and the last for the far end; many
    /// channels have a thread on each, on both sides. Without a list it is all that are online, but nothing is pinned
    /// for one processor alone, nor against a far end elsewhere.
    pub fn of(asked: Option<&[usize]>, online: &[usize], channels: u32, far_end_here: bool) -> Self {
        let cpus = match asked {
            Some(asked) => asked,
            None if far_end_here && online.len() >= 2 => online,
            None => &[],
        };
        let (here, far) = match (cpus, channels) {
            ([first, .., last], 1) => (vec![*first], vec![*last]),
            _ => (cpus.to_vec(), cpus.to_vec()),
        };
        Placement { here, far: if far_end_here { far } else { Vec::new() }, socket_buffer: None }
    }

    /// Returns this placement with these socket buffers.
    pub fn with_buffers(mut self, size: Option<usize>) -> Self {
        self.socket_buffer = size;
        self
    }

    /// Returns this placement with the far end on its last processor alone, if it has only one thread.
    pub fn with_far_on_one(mut self, one: bool) -> Self {
        if one && let Some(last) = self.far.last() {
            self.far = vec![*last];
        }
        self
    }

    /// Returns the first processor that both ends are bound to, or that is the only one of this machine, if there is any.
    pub fn shared(&self, online: &[usize]) -> Option<usize> {
        let both = self.here.iter().find(|cpu| self.far.contains(cpu));
        both.or(online.first().filter(|_| online.len() == 1)).copied()
    }

    /// Returns the placement in a few words, as `here cpu 0, far end cpu 1`.
    pub fn text(&self, far_end_here: bool) -> String {
        let far = if far_end_here { side_text(&self.far) } else { "unknown".to_owned() };
        let buffers = self.socket_buffer.map(|size| format!(", socket buffers {} KiB", size >> 10)).unwrap_or_default();
        format!("here {}, far end {far}{buffers}", side_text(&self.here))
    }
}

/// Returns the processors of one side in a few words, as `cpu 0,1`.
pub fn side_text(cpus: &[usize]) -> String {
    if cpus.is_empty() { "not pinned".to_owned() } else { format!("cpu {}", cpus_text(cpus)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: Option<&[usize]>, online: &[usize], channels: u32, here: bool) -> (Vec<usize>, Vec<usize>) {
        let placement = Placement::of(asked, online, channels, here);
        (placement.here, placement.far)
    }

    #[test]
    fn one_channel_has_a_processor_a_side() {
        assert_eq!(of(Some(&[2, 3]), &[0, 1, 2, 3], 1, true), (vec![2], vec![3]));
        assert_eq!(of(None, &[0, 1, 2, 3], 1, true), (vec![0], vec![3]));
        assert_eq!(of(Some(&[2]), &[0, 1, 2], 1, true), (vec![2], vec![2]));
    }

    #[test]
    fn many_channels_have_them_all() {
        assert_eq!(of(Some(&[0, 1]), &[0, 1, 2], 20, true), (vec![0, 1], vec![0, 1]));
        assert_eq!(of(None, &[0, 1, 2], 20, true), (vec![0, 1, 2], vec![0, 1, 2]));
    }

    #[test]
    fn a_far_end_of_one_thread_has_one() {
        let placed = |channels| Placement::of(None, &[0, 1, 2], channels, true).with_far_on_one(true);
        assert_eq!((placed(4).here, placed(4).far, placed(1).far), (vec![0, 1, 2], vec![2], vec![2]));
    }

    #[test]
    fn nothing_is_pinned_unasked_where_it_would_hurt() {
        assert_eq!(of(None, &[0], 1, true), (vec![], vec![]));
        assert_eq!(of(None, &[0, 1], 1, false), (vec![], vec![]));
        assert_eq!(of(Some(&[1, 0]), &[0, 1], 1, false), (vec![1], vec![]));
    }

    #[test]
    fn says_where() {
        let placement = Placement::of(None, &[0, 1], 1, true);
        assert_eq!(placement.text(true), "here cpu 0, far end cpu 1");
        assert_eq!(Placement::default().text(false), "here not pinned, far end unknown");
    }
}
