//! IPbus on a host: links for the tester, sessions for applications, the hub's daemon.
