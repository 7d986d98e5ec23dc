/// One change of what is kept of keys.
package enum IdempotencyChange: Sendable, Hashable {
    /// Takes a key that is free or expired.
    case reserve(IdempotencyIdentity, IdempotencyRecord)
    /// Moves a record on.
    case update(id: Int64, IdempotencyRecord.State)
    /// Frees a key.
    case release(id: Int64)

    /// What a change came to.
    package enum Outcome: Sendable, Hashable {
        /// The key is taken by the record of this number.
        case reserved(id: Int64, evicted: Int)
        /// Done, or there is no such record any more.
        case done
        /// Somebody else has the key.
        case taken
        /// There is no room for a further key.
        case full
        /// The tenant is gone.
        case tenantGone
    }
}
