//! Sockets, threads, clocks and processor placement: the endpoint that runs a machine on a real transport.
