//! Raw links on a host: links for the tester, servers, options.
