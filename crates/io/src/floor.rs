//! The floor: what bare sockets do for the same exchange, without any machine or endpoint.
