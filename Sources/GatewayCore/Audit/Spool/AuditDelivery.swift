/// What came of handing records to the store.
struct AuditDelivery: Sendable {
    /// What became of the records.
    enum Result: Sendable {
        /// The store has everything up to this end.
        case stored(AuditChain)
        /// The store refused.
        case refused(GatewayError)
        /// The spool holds something that the gateway did not write.
        case damaged
    }

    /// What became of the records.
    var result: Result
    /// How many there were.
    var count: Int
    /// How long the store took.
    var duration: Duration
    /// Behind what was read of the spool, if it was.
    var cursor: AuditSpoolCursor?
}
