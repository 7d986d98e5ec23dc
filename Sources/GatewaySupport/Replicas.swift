package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// One run of a process that serves a store: the replica's name and its start. Whatever it reserves in the store is
/// reserved under this id, so that what an earlier run left is never taken for its own.
package struct ReplicaID: Sendable, Hashable {
    package let text: String

    /// An id as it is stored.
    package init(text: String) {
        self.text = text
    }

    /// The id of a run that starts now; two replicas of one name have different ids all the same.
    package init(name: String, startedAt time: Timestamp) {
        self.text = "\(name)/\(UUIDv7.generate(at: time))"
    }
}

/// When the store heard last of a replica.
package struct ReplicaSighting: Sendable, Hashable {
    /// A replica that is silent for this long does not count as alive: five heartbeats.
    package static let aliveAge = Duration.seconds(10)
    /// From when on its chains are closed for it.
    package static let deadAge = Duration.seconds(60)

    package var id: ReplicaID
    /// The time since its last heartbeat, by the store's clock.
    package var age: Duration

    package init(id: ReplicaID, age: Duration) {
        (self.id, self.age) = (id, age)
    }
}

/// Knows which replicas serve a store; its calls throw `storeUnavailable`.
package protocol ReplicaStore: Sendable {
    /// Notes that a replica lives, and returns all that were noted and not removed, by id.
    func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [ReplicaSighting]

    /// Forgets a replica that has ended, unless a chain of its audit is open: then it is to be taken for dead, so that the
    /// chain is closed for it.
    func leave(_ id: ReplicaID) async throws(GatewayError)

    /// Forgets the replicas that have been silent for so long, by the store's clock, but for those with an open chain.
    func removeSilent(for age: Duration) async throws(GatewayError)
}

/// The replicas of a store, as one of them saw them with its latest heartbeat. Pure.
struct ReplicaRoster: Sendable, Hashable {
    private let own: ReplicaID
    private var sightings: [ReplicaSighting] = []
    /// The first and the latest of the heartbeats that followed each other without a long pause.
    private var beats: ClosedRange<ContinuousClock.Instant>?

    init(of own: ReplicaID) {
        self.own = own
    }

    /// Takes the store's answer. Without an answer the roster stays as it is: the others most likely live.
    mutating func update(_ sightings: [ReplicaSighting], at now: ContinuousClock.Instant) {
        self.sightings = sightings
        guard let beats = self.beats, now - beats.upperBound < ReplicaSighting.aliveAge else {
            self.beats = now...now
            return
        }
        self.beats = beats.lowerBound...max(now, beats.upperBound)
    }

    /// True if silent replicas can be taken for dead: this one was not paused, and its heartbeats have arrived for as long as
    /// the others need for theirs after an outage of the store.
    func isSteady(at now: ContinuousClock.Instant) -> Bool {
        guard let beats = self.beats else { return false }
        let age = ReplicaSighting.aliveAge
        return now - beats.upperBound < age && now - beats.lowerBound >= age
    }

    /// The number of live replicas, this one included.
    var aliveCount: Int { 1 + self.sightings.count { $0.id != self.own && $0.age < ReplicaSighting.aliveAge } }
}

/// This process among the replicas that serve a store: a heartbeat every two seconds, and who else lives.
package final class Replicas: Service {
    private static let interval = Duration.seconds(2)

    package let id: ReplicaID
    private let store: any ReplicaStore
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let count: Meter
    private let outage: OutageLog
    private let roster: Mutex<ReplicaRoster>

    package init(
        id: ReplicaID,
        store: any ReplicaStore,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.id, self.store, self.uptime) = (id, store, uptime)
        self.outage = OutageLog(
            "The store does not take this replica's heartbeats; the others will take it for dead",
            end: "The store takes this replica's heartbeats again",
            logger
        )
        self.roster = Mutex(ReplicaRoster(of: id))
        self.count = metrics.gauge(.replicas)
        self.count.set(1)
    }

    /// The number of live replicas, this one included: those whose heartbeat was at most ten seconds old when the store
    /// answered last.
    package var aliveCount: Int { self.roster.withLock { $0.aliveCount } }

    /// True if silent replicas can be taken for dead.
    package var isSteady: Bool {
        let now = self.uptime()
        return self.roster.withLock { $0.isSteady(at: now) }
    }

    /// Beats until shutdown, and takes leave of the others then.
    package func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            await self.beat()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
        }
        // Without this message the others find out by the silence.
        try? await self.store.leave(self.id)
    }

    /// Beats once; the first failure of several is logged, and so is their end.
    package func beat() async {
        do throws(GatewayError) {
            let sightings = try await self.store.heartbeat(of: self.id)
            let now = self.uptime()
            self.roster.withLock { $0.update(sightings, at: now) }
            self.count.set(self.aliveCount)
            self.outage.succeeded()
        } catch {
            self.outage.failed(error)
        }
    }

    /// Forgets the dead, of whom nothing is left to be done.
    package func forgetDead() async throws(GatewayError) {
        try await self.store.removeSilent(for: ReplicaSighting.deadAge)
    }
}
