//! The only place that names every protocol: from a URI to a link or a server.
