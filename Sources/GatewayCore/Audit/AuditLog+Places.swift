import Synchronization

extension AuditLog {
    /// Takes a place for a record to come; `nil` when the queue is full, the store refuses, or shutdown has begun.
    package func reserve() -> AuditReservation? {
        let (isTaken, isPressed) = self.state.withLock { state in
            let waiting = state.records.count + state.reserved + state.writing
            let (capacity, bytes) = (self.configuration.queueCapacity, self.configuration.queueBytes)
            let isPressed = waiting >= capacity / 2 || state.heldBytes >= bytes / 2
            guard state.phase == .open, !state.isFailing, waiting < capacity, state.heldBytes < bytes
            else { return (false, isPressed) }
            state.reserved += 1
            return (true, isPressed)
        }
        // A store that is slow now would soon cost sends.
        if isPressed { self.errands.hurry() }
        return isTaken ? AuditReservation(log: self) : nil
    }

    /// Takes a place for the outcome of an operator's change; `nil` when shutdown has begun.
    ///
    /// It does not count against the queue's bounds: what fills the queue is most likely what the operator is about to end,
    /// and there are few of them.
    func reserveForChange() -> AuditReservation? {
        let isTaken = self.state.withLock { state in
            guard state.phase == .open else { return false }
            state.reserved += 1
            return true
        }
        return isTaken ? AuditReservation(log: self) : nil
    }
}
