hodo_machine::codes! {
    /// The command of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Command: u8 {
        /// A server is there.
        Beacon = 0,
        /// The server's bounds and ways of authentication; the client's choice.
        Validation = 1,
        /// Bytes to be returned.
        Echo = 2,
        /// A client looks for channels by name.
        Search = 3,
        /// A server says which of them it has.
        SearchResponse = 4,
        /// A further step of authentication.
        Authentication = 5,
        /// The access rights of a channel have changed.
        AccessRights = 6,
        /// Opens channels by name.
        CreateChannel = 7,
        /// Closes a channel; also sent by a server.
        DestroyChannel = 8,
        /// The connection is accepted, or not.
        Validated = 9,
        /// Reads fields.
        Get = 10,
        /// Writes fields.
        Put = 11,
        /// Writes fields, processes, and reads fields.
        PutGet = 12,
        /// Subscribes to changes.
        Monitor = 13,
        /// Reads or writes a part of an array, or its length.
        Array = 14,
        /// Ends an operation and frees its number.
        DestroyRequest = 15,
        /// Processes a channel.
        Process = 16,
        /// Requests a type.
        GetField = 17,
        /// A text for people.
        Message = 18,
        /// Several values at once. Nobody is known to send it.
        MultipleData = 19,
        /// Calls a channel.
        Rpc = 20,
        /// Stops an operation, which keeps its number.
        CancelRequest = 21,
        /// The address that a forwarded datagram was sent to.
        OriginTag = 22,
    } else {
        /// A command that is not assigned: to be skipped.
        Other
    }
}
