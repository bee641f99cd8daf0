//! A network in virtual time: machines meet over delay, loss, reordering, rate and partition, all from one seed.
