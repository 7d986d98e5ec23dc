/// What is kept of a send that carries a key, from before anything of it leaves.
package struct IdempotencyRecord: Sendable, Hashable {
    /// How far the send has come.
    package enum State: Sendable, Hashable {
        /// Something of it may have left: which recipients, and what became of them, sealed. Next: `finished`.
        case open(progress: [UInt8])
        /// It was answered; the answer, sealed.
        case finished(answer: [UInt8])
    }

    /// What tells requests apart that carry the same key.
    package var fingerprint: [UInt8]
    /// The message's id.
    package var messageID: String
    /// When the key was first used.
    package var createdAt: Timestamp
    /// When the key is as good as new.
    package var expiresAt: Timestamp
    /// How far the send has come.
    package var state: State

    /// A record.
    package init(
        fingerprint: [UInt8],
        messageID: String,
        createdAt: Timestamp,
        expiresAt: Timestamp,
        state: State
    ) {
        self.fingerprint = fingerprint
        self.messageID = messageID
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.state = state
    }
}

extension IdempotencyRecord.State {
    /// How many bytes of a store's bound a record in this state takes: what is sealed, and a little for all the rest.
    package var weight: Int {
        switch self {
        case .open(let bytes), .finished(let bytes): bytes.count + Self.ownWeight
        }
    }

    /// What a record takes beside what is sealed, indexes included.
    private static var ownWeight: Int { 300 }
}

/// A record with the number that the store knows it by.
package struct StoredIdempotencyRecord: Sendable, Hashable {
    /// The number; never given to another record.
    package var id: Int64
    /// The record.
    package var record: IdempotencyRecord

    /// A stored record.
    package init(id: Int64, record: IdempotencyRecord) {
        self.id = id
        self.record = record
    }
}
