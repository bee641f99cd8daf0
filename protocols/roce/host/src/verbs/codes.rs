//! The words of verbs for requests and completions, both ways.

use hodo_io::verbs::{Entry, Operation as Native, RemotePlace, Rights, WorkCompletion};
use hodo_roce::{Access, Completed, Completion, Operation, Remote, ScatterEntry, Status};

/// Returns a completion in the protocol's words. Verbs do not tell whether the far end asked for an event.
#[inline]
pub(super) fn completion(work: &WorkCompletion) -> Completion {
    let status = Status::from_code(work.status).unwrap_or(Status::General);
    let kind = Completed::from_code(work.opcode).unwrap_or(Completed::Send);
    let length = match kind {
        _ if status != Status::Success => 0,
        Completed::Send | Completed::Write => 0,
        Completed::CompareSwap | Completed::FetchAdd => 8,
        Completed::Read | Completed::Receive | Completed::ReceiveWrite => work.length,
    };
    Completion {
        id: work.id,
        queue_pair: work.queue_pair,
        status,
        kind,
        length,
        immediate: work.immediate,
        invalidated: work.invalidated,
        is_solicited: false,
    }
}

/// Returns an operation in the words of verbs.
#[inline]
pub(super) fn operation(operation: Operation) -> Native {
    let place = |remote: Remote| RemotePlace { address: remote.address, key: remote.key };
    match operation {
        Operation::Send => Native::Send,
        Operation::SendWithImmediate(immediate) => Native::SendWithImmediate(immediate),
        Operation::SendWithInvalidate(key) => Native::SendWithInvalidate(key),
        Operation::Write(remote) => Native::Write(place(remote)),
        Operation::WriteWithImmediate(remote, immediate) => Native::WriteWithImmediate(place(remote), immediate),
        Operation::Read(remote) => Native::Read(place(remote)),
        Operation::CompareSwap { remote, compare, swap } => Native::CompareSwap { place: place(remote), compare, swap },
        Operation::FetchAdd { remote, add } => Native::FetchAdd { place: place(remote), add },
    }
}

/// Returns an entry of a request in the words of verbs.
#[inline]
pub(super) fn entry(entry: &ScatterEntry) -> Entry {
    Entry { address: entry.address, length: entry.length, key: entry.key }
}

/// Returns the rights of a region in the words of verbs.
pub(super) fn rights(access: Access) -> Rights {
    Rights {
        local_write: access.local_write,
        remote_write: access.remote_write,
        remote_read: access.remote_read,
        remote_atomic: access.remote_atomic,
    }
}

#[cfg(test)]
mod tests {
    use super::{Completed, Status, WorkCompletion, completion};

    #[test]
    fn every_status_of_verbs_has_a_word() {
        let status = |code: u32| completion(&WorkCompletion { status: code, ..WorkCompletion::default() }).status;
        assert_eq!(status(0), Status::Success);
        assert_eq!(status(5), Status::Flushed);
        assert_eq!(status(10), Status::RemoteAccess);
        assert_eq!(status(12), Status::RetryExceeded);
        // IBV_WC_LOC_EEC_OP_ERR, IBV_WC_FATAL_ERR and one of the future.
        assert_eq!([3, 19, 99].map(status), [Status::General; 3]);
    }

    #[test]
    fn lengths_are_those_of_received_and_read_bytes() {
        let length = |opcode: u32| {
            let work = WorkCompletion { opcode, length: 64, ..WorkCompletion::default() };
            (completion(&work).kind, completion(&work).length)
        };
        assert_eq!(length(0), (Completed::Send, 0));
        assert_eq!(length(1), (Completed::Write, 0));
        assert_eq!(length(2), (Completed::Read, 64));
        assert_eq!(length(4), (Completed::FetchAdd, 8));
        assert_eq!(length(128), (Completed::Receive, 64));
        assert_eq!(length(129), (Completed::ReceiveWrite, 64));
    }
}
