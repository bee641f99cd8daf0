//! Raw streams and datagrams: the netperf tests, and the floor that the other protocols stand on.
