package import Logging
import Metrics
import Synchronization

/// A second place that the audit is written to, which others than the store's owner may keep.
package protocol AuditSink: Sendable {
    /// Makes ready for writing, again after something failed; throws `storeUnavailable` when the sink can't be reached.
    func resume() async throws(GatewayError) -> AuditSinkPlace

    /// Writes lines in order; with a whole checkpoint they are made durable. Throws `storeUnavailable` when not all was
    /// written; ``resume()`` tells what was.
    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError)
}

/// The last place that a sink has reached.
package enum AuditSinkPlace: Sendable, Hashable {
    /// It can't tell, or holds no whole line.
    case unknown
    /// It holds lines, and no checkpoint.
    case begun
    /// It holds a checkpoint with all before it, and nothing behind it where it is whole.
    case checkpoint(SignedCheckpoint, isWhole: Bool)
}

/// Brings the audit from the store to the second sink, checkpoint by checkpoint: the records up to it, then itself.
///
/// The sink is written from what is stored, so what it missed while it could not be written comes later, and nothing is
/// lost. After an interruption it writes the last checkpoint that the sink holds again, and the lines behind that: readers drop
/// duplicates by chain and place. No send waits for it.
package final class AuditSinkFeeder: Sendable {
    private struct State {
        /// The last checkpoint that the sink holds whole, and what it says.
        var position: (signed: SignedCheckpoint, content: AuditCheckpoint)?
        /// The checkpoint that the store knows the sink to hold, as far as this process noted it.
        var noted = 0
        /// True if the sink could be asked since the start; until then ``position`` says nothing.
        var isKnown = false
        var isResumed = false
        var isStopping = false
        var isFailing = false
    }

    /// The store's state at a moment after some checkpoints; the ends are read after the truncation markers, so that none lies
    /// before its marker.
    private typealias Snapshot = (truncations: [Int: AuditTruncation], heads: [AuditHead])

    /// Records of one write.
    private static let chunk = 500
    /// Checkpoints of one read.
    private static let checkpoints = 100

    private let sink: any AuditSink
    private let name: String
    private let store: any AuditStore
    private let publicKey: AuditPublicKey
    private let clock: any WallClock
    private let deliveredTime: Meter
    private let failures: Counter
    private let logger: Logger
    private let state = Mutex(State())

    /// A feeder of a sink, by whose name the store knows how far it has come; the public key tells whether the sink holds the
    /// gateway's own records.
    package init(
        sink: any AuditSink,
        name: String,
        store: any AuditStore,
        publicKey: AuditPublicKey,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.sink, self.name, self.store) = (sink, name, store)
        (self.publicKey, self.clock) = (publicKey, clock)
        self.deliveredTime = metrics.gauge(.auditSinkDelivered)
        self.failures = metrics.counter(.auditSinkFailures)
        self.logger = logger
    }

    /// The latest checkpoint that the sink is known to hold: 0 for none, `nil` before the sink could be asked.
    package var delivered: Int? {
        self.state.withLock { $0.isKnown ? $0.position?.signed.number ?? 0 : nil }
    }

    func stop() {
        self.state.withLock { $0.isStopping = true }
    }

    /// Delivers all checkpoints that the sink lacks; what fails is logged, counted, and tried again next time.
    ///
    /// One caller at a time. When the time is up, the piece that is under way is finished.
    package func deliver(within limit: Duration? = nil) async {
        let deadline = limit.map { Uptime.now + $0 }
        if limit != nil { self.state.withLock { $0.isStopping = false } }
        do throws(GatewayError) {
            let now = self.clock.now()
            try await self.resume()
            var after = self.delivered ?? 0
            // Without a place to continue from, it begins with the first checkpoint whose records are still there.
            while true {
                let pending = try await self.store.checkpoints(after: after, limit: Self.checkpoints)
                let snapshot = try await self.snapshot()
                if let next = pending.first?.number, after > 0, next > after + 1 {
                    self.logger.error(
                        "The audit's second sink could not be written for so long that checkpoints were removed; begin a new file",
                        metadata: ["sink": .stringConvertible(after), "store": .stringConvertible(next)]
                    )
                }
                for signed in pending {
                    after = signed.number
                    if self.delivered == 0, Self.isBelow(snapshot.truncations, signed) { continue }
                    guard try await self.deliver(signed, snapshot, until: deadline) else { return }
                }
                if pending.count < Self.checkpoints { break }
            }
            try await self.noteDelivered()
            self.deliveredTime.set(now)
            let hadFailed = self.state.withLock { state in
                defer { state.isFailing = false }
                return state.isFailing
            }
            if hadFailed { self.logger.notice("The audit's second sink has all again") }
        } catch {
            self.failures.increment()
            self.state.withLock { ($0.isResumed, $0.isFailing) = (false, true) }
            self.logger.error(
                "The audit's second sink can't be written; the records stay in the store and follow later",
                metadata: ["cause": "\(error.message)"]
            )
        }
    }

    /// Learns the place to continue from, from the sink or from the store.
    private func resume() async throws(GatewayError) {
        guard !self.state.withLock({ $0.isResumed }) else { return }
        let latest = try await self.store.signatures().latest
        let position: SignedCheckpoint?
        var isRepeated = true
        switch try await self.sink.resume() {
        case .unknown: position = try await self.known()
        case .begun: position = nil
        case .checkpoint(let held, let isWhole):
            position = try await self.position(held, latest)
            isRepeated = !isWhole
        }
        if isRepeated, let position {
            // A reader that begins here needs the ends of the chains.
            try await self.sink.write([.checkpoint(position, sink: self.name)], isWhole: true)
        }
        self.state.withLock { state in
            state.position = position.flatMap { signed in signed.content.map { (signed, $0) } }
            (state.isKnown, state.isResumed) = (true, true)
        }
    }

    private func position(
        _ held: SignedCheckpoint,
        _ latest: SignedCheckpoint?
    ) async throws(GatewayError) -> SignedCheckpoint? {
        guard held.content != nil, self.publicKey.isGenuine(held.signature, of: held.text) else {
            self.logger.error("The last checkpoint in the audit's second sink is not genuine")
            return try await self.known()
        }
        guard held.number <= latest?.number ?? 0 else {
            self.logger.error(
                "The audit's second sink is ahead of the store: an older copy of the store was put back",
                metadata: ["sink": .stringConvertible(held.number), "store": .stringConvertible(latest?.number ?? 0)]
            )
            return latest
        }
        return held
    }

    /// Returns a lower bound for what the sink holds; a sink with a new name begins where the furthest other one is.
    private func known() async throws(GatewayError) -> SignedCheckpoint? {
        if let position = self.state.withLock({ $0.position }) { return position.signed }
        let sinks = try await self.store.sinks()
        guard let delivered = sinks[self.name] ?? sinks.values.max(), delivered > 0 else { return nil }
        let checkpoint = try await self.store.checkpoints(after: delivered - 1, limit: 1).first
        return checkpoint?.number == delivered && checkpoint?.content != nil ? checkpoint : nil
    }

    /// Tells the store how far the sink has come, where that is news.
    private func noteDelivered() async throws(GatewayError) {
        let (delivered, noted) = self.state.withLock { ($0.position?.signed.number ?? 0, $0.noted) }
        guard delivered != noted else { return }
        try await self.store.note(delivered: delivered, to: self.name)
        self.state.withLock { $0.noted = delivered }
    }

    private func snapshot() async throws(GatewayError) -> Snapshot {
        let truncations = try await self.store.truncations().keyed(by: \.writer)
        return (truncations, try await self.store.heads())
    }

    /// True if a chain was removed beyond the place that it has in a checkpoint.
    private static func isBelow(_ truncations: [Int: AuditTruncation], _ signed: SignedCheckpoint) -> Bool {
        guard !truncations.isEmpty, let content = signed.content else { return false }
        return content.heads.contains { truncations[$0.writer]?.sequence ?? 0 > $0.sequence }
    }

    /// Delivers what the sink lacks up to a checkpoint; whether there is time for more.
    private func deliver(
        _ signed: SignedCheckpoint,
        _ snapshot: Snapshot,
        until deadline: Uptime?
    ) async throws(GatewayError) -> Bool {
        guard let content = signed.content else {
            self.logger.error(
                "A stored checkpoint can't be read",
                metadata: ["checkpoint": .stringConvertible(signed.number)]
            )
            return true
        }
        let position = self.state.withLock { $0.position }
        for range in Self.ranges(from: position?.content, to: content, snapshot.heads) {
            guard try await self.deliver(range, snapshot, until: deadline) else { return false }
        }
        try await self.sink.write([.checkpoint(signed, sink: self.name)], isWhole: true)
        self.state.withLock { $0.position = (signed, content) }
        self.deliveredTime.set(content.time)
        return !self.isOver(deadline)
    }

    private func deliver(
        _ range: (writer: Int, after: Int, last: Int),
        _ snapshot: Snapshot,
        until deadline: Uptime?
    ) async throws(GatewayError) -> Bool {
        var snapshot = snapshot
        var after = range.after
        while true {
            if let truncation = snapshot.truncations[range.writer], truncation.sequence > after {
                try await self.sink.write([Self.line(truncation, snapshot.heads)], isWhole: false)
                after = truncation.sequence
            }
            guard after < range.last else { return true }
            let limit = min(Self.chunk, range.last - after)
            let records = try await self.store.records(of: range.writer, after: after, limit: limit)
            if records.first?.sequence != after + 1 {
                snapshot = try await self.snapshot()
                // Retention removed them since the truncations were read.
                if snapshot.truncations[range.writer]?.sequence ?? 0 > after { continue }
                self.logger.error(
                    "Audit records are missing in the store; audit verify tells more",
                    metadata: ["writer": .stringConvertible(range.writer), "after": .stringConvertible(after)]
                )
            }
            guard let last = records.last, last.sequence > after else { return true }
            try await self.sink.write(records.map { .record($0) }, isWhole: false)
            after = last.sequence
            // The next delivery continues at the checkpoint before.
            if self.isOver(deadline) {
                self.state.withLock { $0.isResumed = false }
                return false
            }
        }
    }

    private static func line(_ truncation: AuditTruncation, _ heads: [AuditHead]) -> AuditLine {
        let head = heads.first { $0.writer == truncation.writer }
        let hasEnded = head.map { $0.sequence == truncation.sequence && $0.state != .open } ?? false
        return .truncation(truncation, ended: hasEnded ? head?.state : nil)
    }

    private func isOver(_ deadline: Uptime?) -> Bool {
        if Task.isCancelled || self.state.withLock({ $0.isStopping }) { return true }
        return deadline.map { Uptime.now >= $0 } ?? false
    }

    /// The records between two checkpoints: after which place of each writer, and up to which.
    private static func ranges(
        from position: AuditCheckpoint?,
        to checkpoint: AuditCheckpoint,
        _ heads: [AuditHead]
    ) -> [(writer: Int, after: Int, last: Int)] {
        let known = (position?.heads ?? []).keyed(by: \.writer)
        let settled = position?.settledWriter ?? 0
        let ended = heads.filter { $0.writer > settled && $0.writer <= checkpoint.settledWriter }
        return (checkpoint.heads + ended).filter { $0.writer > settled }
            .sorted { $0.writer < $1.writer }
            .map { (writer: $0.writer, after: known[$0.writer]?.sequence ?? 0, last: $0.sequence) }
            .filter { $0.after < $0.last }
    }
}
