import Synchronization

extension AuditLog {
    /// Takes a place for a record to come; `nil` when the queue is full, the store refuses, or shutdown has begun.
    package func reserve() -> AuditReservation? {
        let (isTaken, isPressed) = self.state.withLock { state in
            let waiting = state.records.count + state.reserved + state.writing
            let (capacity, bytes) = (self.configuration.queueRecords, self.configuration.queueBytes)
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

    /// Whether something has waited for two seconds, or for as long as a commit may take where that is longer, and nothing
    /// was recorded meanwhile: neither by the store nor by the spool, or in strict mode not by the store.
    ///
    /// The writer goes on trying, with what waits or with nothing where that is given up; the first success ends it.
    package func isStalled(at now: ContinuousClock.Instant) -> Bool {
        guard let since = self.state.withLock({ $0.waitingSince }) else { return false }
        return now - since >= max(.seconds(2), self.configuration.commitTimeout)
    }

    /// Notes that the store, or the spool where that will do, took what it was given.
    func noteTaken() {
        self.state.withLock { state in
            let isWaiting = !state.records.isEmpty || self.isStrict && !state.strict.isEmpty
            state.waitingSince = isWaiting ? .now : nil
        }
    }

    static var unavailable: GatewayError {
        GatewayError(.auditUnavailable, "The audit log can't be written, so nothing is done")
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

extension AuditLog.State {
    /// Notes that something waits to be recorded.
    mutating func beginWaiting() {
        if self.waitingSince == nil { self.waitingSince = .now }
    }
}
