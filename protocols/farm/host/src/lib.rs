//! The event farm on a host: links for the tester, daemons, users' programs that decide.
