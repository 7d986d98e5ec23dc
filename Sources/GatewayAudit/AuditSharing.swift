package import Logging
import Metrics

/// Knows which replica writes which chain; its calls throw `storeUnavailable`.
package protocol AuditChainRegistry: Sendable {
    /// Begins a chain with its first record, and notes whose it is and that its replica lives, in one transaction.
    ///
    /// Throws `conflict` when the number is taken, and `storeUnavailable` also while the store does not know the
    /// replica, whose chain would count as abandoned.
    func begin(_ record: ChainedAuditRecord, head: AuditHead, by replica: ReplicaID) async throws(GatewayError)

    /// Returns the numbers of the open chains without a writer, rising: their replica has been silent for so long, is
    /// unknown, or none began them.
    func abandonedChains(silentFor age: Duration) async throws(GatewayError) -> [Int]
}

/// An audit log needs this if other replicas write to the same store.
package struct AuditSharing: Sendable {
    package let replica: ReplicaID
    package let registry: any AuditChainRegistry

    package init(replica: ReplicaID, registry: any AuditChainRegistry) {
        (self.replica, self.registry) = (replica, registry)
    }
}

/// The right to do what one replica does for all: checkpoints, retention, and closing the chains of dead replicas.
///
/// A paused leader does not know that it lost the lead. Therefore all its writes are conditional: on a conflict it
/// resigns.
package protocol Leadership: Sendable {
    /// Returns true if this replica leads now; it takes the lead if no replica has it.
    func isHeld() async -> Bool

    func resign() async
}

/// Closes the chains of replicas that are taken for dead, each with a `recovered` record.
///
/// It asks the store for the dead replicas and the open chains in one query, since this replica's own view of the
/// others is some seconds old. It needs no lease: a record in the place of the closing one means that the replica
/// lives, and is a conflict.
package struct AuditChainCloser: Sendable {
    private let store: any AuditAppender & AuditChainReader
    private let registry: any AuditChainRegistry
    private let replicas: Replicas
    private let sealer: AuditSealer
    private let clock: any WallClock
    private let closed: Counter
    private let logger: Logger

    package init(
        store: any AuditAppender & AuditChainReader,
        registry: any AuditChainRegistry,
        replicas: Replicas,
        sealer: AuditSealer,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.store, self.registry, self.replicas) = (store, registry, replicas)
        (self.sealer, self.clock, self.logger) = (sealer, clock, logger)
        self.closed = metrics.counter(.auditChainsClosed)
    }

    /// Closes what the dead have left, and forgets them. Throws `conflict` where one of them writes after all.
    ///
    /// After an outage of the store, or a pause of this process, all replicas seem to have been silent. None is taken
    /// for dead until each has had the time for another heartbeat.
    func closeDead() async throws(GatewayError) {
        guard self.replicas.isSteady else { return }
        let abandoned = Set(try await self.registry.abandonedChains(silentFor: Replicas.Sighting.deadAge))
        if !abandoned.isEmpty {
            for head in try await self.store.heads() where head.state == .open && abandoned.contains(head.writer) {
                try await self.close(head)
            }
        }
        try await self.replicas.forgetDead()
    }

    private func close(_ head: AuditHead) async throws(GatewayError) {
        let metadata: Logger.Metadata = [
            "writer": .stringConvertible(head.writer), "last_sequence": .stringConvertible(head.sequence),
        ]
        guard self.sealer.isGenuine(head) else {
            // Closing the chain would put a genuine seal on it and hide that somebody changed it.
            self.logger.error(
                "The seal of a dead replica's audit chain is not genuine; the chain stays open",
                metadata: metadata
            )
            return
        }
        var chain = head.chain
        let closing = chain.append(.recovered(byLeader: true, at: self.clock.now()))
        try await self.store.append([closing], head: self.sealer.head(of: chain, state: .recovered))
        self.closed.increment()
        self.logger.warning("A replica ended without a word; its audit chain was closed", metadata: metadata)
    }
}

extension AuditRecord {
    private static let leader = "leader"

    /// The last record of a chain whose writer did not close it; a leader that closes it for another replica is named,
    /// since that one may have more of the chain in its spool.
    static func recovered(byLeader: Bool = false, at time: Timestamp) -> AuditRecord {
        AuditRecord(.auditRecovered, by: byLeader ? Self.leader : "gateway", at: time)
    }

    /// True if a leader closed the chain that ends with this record.
    var isClosedByLeader: Bool {
        self.action == Action.auditRecovered.rawValue && self.principal == Self.leader
    }
}

/// The leader's work for the audit before each checkpoint.
package struct AuditLeader: Sendable {
    let leadership: any Leadership
    private let closer: AuditChainCloser
    private let logger: Logger

    package init(leadership: any Leadership, closer: AuditChainCloser, logger: Logger) {
        (self.leadership, self.closer, self.logger) = (leadership, closer, logger)
    }

    /// Returns true if this replica leads, after it has closed the chains of dead replicas as far as the store allows.
    func leads() async -> Bool {
        guard await self.leadership.isHeld() else { return false }
        do throws(GatewayError) {
            try await self.closer.closeDead()
            return true
        } catch {
            self.logger.error("Dead replicas' audit chains can't be closed", metadata: ["cause": "\(error.message)"])
            guard error.code == .conflict else { return true }
            await self.leadership.resign()
            return false
        }
    }
}
