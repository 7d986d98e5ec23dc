package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// One run of a process that serves a store: the replica's name and its start. Its reservations in the store carry this
/// id, so that it never takes an earlier run's for its own.
package struct ReplicaID: Sendable, Hashable {
    package let text: String

    /// A stored id.
    package init(text: String) {
        self.text = text
    }

    /// The id of a run that starts now. Two replicas with one name still have different ids.
    package init(name: String, startedAt time: Timestamp) {
        self.text = "\(name)/\(UUIDv7.generate(at: time))"
    }
}

/// The replicas that serve a store. Calls throw `storeUnavailable`.
package protocol ReplicaStore: Sendable {
    /// Records that a replica is alive. Returns all replicas that were recorded and not removed, by id.
    func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [Replicas.Sighting]

    /// Removes a replica that has ended, unless a chain of its audit is open: it must then count as dead, so that
    /// others close the chain.
    func leave(_ id: ReplicaID) async throws(GatewayError)

    /// Removes the replicas that have been silent for `age` by the store's clock, except those with an open chain.
    func removeSilent(for age: Duration) async throws(GatewayError)
}

extension Replicas {
    /// One replica's view of all replicas of a store, from its latest heartbeat. Pure.
    struct Roster: Sendable, Hashable {
        private let own: ReplicaID
        private var sightings: [Replicas.Sighting] = []
        /// The first and the latest of its consecutive heartbeats without a long pause.
        private var beats: ClosedRange<Uptime>?

        init(of own: ReplicaID) {
            self.own = own
        }

        /// Applies the store's answer. Without an answer the roster stays as it is: the others are most likely alive.
        mutating func update(_ sightings: [Replicas.Sighting], at now: Uptime) {
            self.sightings = sightings
            guard let beats = self.beats, now - beats.upperBound < Replicas.Sighting.aliveAge else {
                self.beats = now...now
                return
            }
            self.beats = beats.lowerBound...max(now, beats.upperBound)
        }

        /// True if silent replicas can be taken for dead. This replica was not paused, and its heartbeats have arrived
        /// for as long as the others need to resume theirs after an outage of the store.
        ///
        /// Example: the store returns after an outage at 0 s. At 2 s another replica's heartbeat may still be missing;
        /// from 10 s on a silent replica is dead if its last one is 60 s old.
        func isSteady(at now: Uptime) -> Bool {
            guard let beats = self.beats else { return false }
            let age = Replicas.Sighting.aliveAge
            return now - beats.upperBound < age && now - beats.lowerBound >= age
        }

        /// The number of live replicas, this one included.
        var aliveCount: Int { 1 + self.sightings.count { $0.id != self.own && $0.age < Replicas.Sighting.aliveAge } }
    }
}

/// This process as one of the replicas that serve a store. It sends a heartbeat every two seconds, and counts the live
/// ones.
package final class Replicas: Service {
    /// The store's last heartbeat of a replica.
    package struct Sighting: Sendable, Hashable {
        /// A replica that is silent for this long does not count as alive: five heartbeats.
        package static let aliveAge = Duration.seconds(10)
        /// A replica that is silent for this long counts as dead, and others close its chains.
        package static let deadAge = Duration.seconds(60)

        package var id: ReplicaID
        /// The time since its last heartbeat, by the store's clock.
        package var age: Duration

        package init(id: ReplicaID, age: Duration) {
            (self.id, self.age) = (id, age)
        }
    }

    private static let interval = Duration.seconds(2)

    package let id: ReplicaID
    private let store: any ReplicaStore
    private let uptime: @Sendable () -> Uptime
    private let count: Meter
    private let outage: OutageLog
    private let roster: Mutex<Roster>

    package init(
        id: ReplicaID,
        store: any ReplicaStore,
        uptime: @escaping @Sendable () -> Uptime = { .now },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.id, self.store, self.uptime) = (id, store, uptime)
        self.outage = OutageLog(
            "The store does not accept this replica's heartbeats; the other replicas will take it for dead",
            end: "The store accepts this replica's heartbeats again",
            logger
        )
        self.roster = Mutex(Roster(of: id))
        self.count = metrics.gauge(.replicas)
        self.count.set(1)
    }

    /// The number of live replicas, this one included: those whose heartbeat was at most ten seconds old at the store's
    /// last answer.
    package var aliveCount: Int { self.roster.withLock { $0.aliveCount } }

    /// True if silent replicas can be taken for dead.
    package var isSteady: Bool {
        let now = self.uptime()
        return self.roster.withLock { $0.isSteady(at: now) }
    }

    /// Sends heartbeats until shutdown, and then leaves.
    package func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            await self.beat()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
        }
        // Without this call, the others notice only the silence.
        try? await self.store.leave(self.id)
    }

    /// Sends one heartbeat. Logs the first failure of several, and their end.
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

    /// Removes dead replicas that have left nothing to do.
    package func forgetDead() async throws(GatewayError) {
        try await self.store.removeSilent(for: Sighting.deadAge)
    }
}
