import Logging

/// Moves this replica's audit to a new chain after another replica has closed its old one.
///
/// The leader closes the chain of a replica that is silent for a minute. Should that come back, as a process that was
/// paused or as a new one that finds the spool, then what its closed chain lacks follows on a new one, in order and
/// once; the first record of that names the closed one. The stored records are looked up and not remembered, since a
/// commit may have arrived whose answer did not. A chain is closed first, so that it can't grow any more, and its
/// records are then compared with the spooled ones.
extension AuditLog {
    /// The most times that one batch moves to another chain before it is kept for later.
    static let maxMoves = 3
    /// The most attempts to close a chain that grows meanwhile.
    private static let maxAttempts = 10
    /// The records of one transaction at a start.
    private static let recordsPerMove = 2_000

    // MARK: While the log runs

    /// Continues on a new chain, since another record has taken a place in this one.
    ///
    /// Returns the number of waiting records, behind all spooled ones, that the store has already, or `nil` if it must
    /// be tried again later. A log that has its store to itself never moves: only an intruder could write to its chain.
    func move(_ writer: inout WriterState, before waiting: [AuditChain.Entry] = []) async -> Int? {
        guard self.sharing != nil else { return nil }
        do throws(GatewayError) {
            let former = AuditChain.Position(writer: writer.stored.writer, sequence: writer.stored.sequence)
            try await self.closeChain(of: former.writer)
            var stored = StoredEntries(self.store, behind: [former])
            let spooled = try await self.compareSpool(writer, &stored)
            var waitingCount = 0
            if !spooled.areLacking {
                for entry in waiting {
                    guard try await stored.pass(entry) else { break }
                    waitingCount += 1
                }
            }
            let chain = try await self.begin(continuing: former.writer)
            let tail = try await self.tail(of: chain, writer, spooled)
            writer.move(to: chain, tail, skipping: spooled.stored)
            self.logger.warning(
                "This replica's audit chain was closed meanwhile; the audit continues on a new one",
                metadata: [
                    "former_writer": .stringConvertible(former.writer), "writer": .stringConvertible(chain.writer),
                ]
            )
            return waitingCount
        } catch {
            self.logger.error("The audit can't go on on a new chain", metadata: ["cause": "\(error.message)"])
            return nil
        }
    }

    /// The stored ones among the records behind a writer's cursor.
    private struct SpooledRecords {
        /// The number of stored records; they precede those that the store lacks.
        var stored = 0
        /// The number of these that were not known to be stored.
        var found = 0
        /// True if the store lacks some, or some can't be read.
        var areLacking = false
    }

    private func compareSpool(
        _ writer: WriterState,
        _ stored: inout StoredEntries
    ) async throws(GatewayError) -> SpooledRecords {
        var records = SpooledRecords()
        guard let spool = self.spool, !writer.isDirect else { return records }
        let former = writer.stored
        var (cursor, toSkip) = (writer.cursor, writer.skipped)
        while cursor.offset < writer.end.offset, case .batch(let batch) = try await spool.next(from: &cursor) {
            var place = batch.base.sequence
            for entry in batch.entries {
                place += 1
                let isOwn = batch.base.writer == former.writer
                if !isOwn, toSkip > 0 {
                    toSkip -= 1
                } else if !isOwn || place > former.sequence {
                    guard try await stored.pass(entry) else {
                        records.areLacking = true
                        return records
                    }
                    records.found += 1
                }
                records.stored += 1
            }
        }
        // The replay finds and reports what can't be read.
        records.areLacking = cursor.offset < writer.end.offset
        return records
    }

    /// The end of a new chain with those records behind it that are spooled and that no chain has.
    private func tail(
        of chain: AuditChain,
        _ writer: WriterState,
        _ spooled: SpooledRecords
    ) async throws(GatewayError) -> AuditChain {
        guard let spool = self.spool, spooled.areLacking else { return chain }
        var (tail, cursor, toSkip) = (chain, writer.cursor, spooled.stored)
        while cursor.offset < writer.end.offset, case .batch(let batch) = try await spool.next(from: &cursor) {
            let count = min(toSkip, batch.entries.count)
            toSkip -= count
            for entry in batch.entries.dropFirst(count) { _ = tail.append(entry) }
        }
        guard cursor.offset < writer.end.offset else { return tail }
        // Behind damage everything is lost, so that its number counts and its hashes do not.
        let unread = max(1, writer.lag - spooled.found - (tail.sequence - chain.sequence))
        return AuditChain(writer: tail.writer, sequence: tail.sequence + unread, hash: tail.hash)
    }

    // MARK: At a start

    /// Opens a chain beside those of other replicas, which are theirs, or the leader's to close.
    ///
    /// The process that wrote the spool has ended: its chains are closed, and the records they lack follow on the new
    /// one.
    func openBesideOthers() async throws(GatewayError) -> AuditChain {
        var attemptsLeft = Self.maxAttempts
        while true {
            do throws(GatewayError) {
                return try await self.openWithSpool()
            } catch {
                // The leader closed a chain at the same moment, or an earlier process's commit was on its way.
                attemptsLeft -= 1
                guard error.code == .conflict, attemptsLeft > 0 else { throw error }
            }
        }
    }

    private func openWithSpool() async throws(GatewayError) -> AuditChain {
        let heads = try await self.store.heads()
        let found = try await self.spool?.inspect() ?? AuditSpool.Finding()
        var cursor = AuditSpool.Cursor()
        guard let spool = self.spool, let head = heads.first(where: { $0.writer == found.writer }),
            head.state != .closed, self.sealer.isGenuine(head),
            case .batch(let oldest) = try await spool.next(from: &cursor)
        else {
            let hasChain = heads.contains { $0.writer == found.writer }
            var chain = try await self.begin()
            try await self.emptySpool(found, isReplayed: false, hasChain: hasChain, &chain)
            return chain
        }
        let family = try await self.continuations(of: head, among: heads)
        for chain in [head] + family { try await self.close(chain) }
        let oldestPlace = AuditChain.Position(writer: oldest.base.writer, sequence: oldest.base.sequence)
        let places = [oldestPlace] + family.map { AuditChain.Position(writer: $0.writer, sequence: 0) }
        var stored = StoredEntries(self.store, behind: places)
        let known = try await self.knownCount(of: spool, &stored)
        var chain = try await self.begin(continuing: known < found.records ? (family.last ?? head).writer : 0)
        try await self.append(spool, skipping: known, to: &chain)
        self.logger.warning(
            "An earlier process ended uncleanly; what its audit chain lacked is on this one's",
            metadata: [
                "writer": .stringConvertible(head.writer), "from_spool": .stringConvertible(found.records - known),
            ]
        )
        try await self.emptySpool(found, isReplayed: true, hasChain: true, &chain)
        return chain
    }

    /// The chains that continue a chain, directly or through others, by rising writer.
    private func continuations(
        of head: AuditHead,
        among heads: [AuditHead]
    ) async throws(GatewayError) -> [AuditHead] {
        var (family, writers) = ([AuditHead](), Set([head.writer]))
        for later in heads where later.writer > head.writer && self.sealer.isGenuine(later) {
            let records = try await self.store.records(of: later.writer, after: 0, limit: 1)
            guard let first = records.first, first.sequence == 1, writers.contains(first.record.continuesWriter)
            else { continue }
            family.append(later)
            writers.insert(later.writer)
        }
        return family
    }

    /// The number of a spool's records that are stored; they precede those that are not.
    private func knownCount(of spool: AuditSpool, _ stored: inout StoredEntries) async throws(GatewayError) -> Int {
        var (count, cursor) = (0, AuditSpool.Cursor())
        while case .batch(let batch) = try await spool.next(from: &cursor) {
            for entry in batch.entries {
                guard try await stored.pass(entry) else { return count }
                count += 1
            }
        }
        return count
    }

    private func append(
        _ spool: AuditSpool,
        skipping known: Int,
        to chain: inout AuditChain
    ) async throws(GatewayError) {
        var (cursor, toSkip) = (AuditSpool.Cursor(), known)
        var ready: [ChainedAuditRecord] = []
        while case .batch(let batch) = try await spool.next(from: &cursor) {
            let count = min(toSkip, batch.entries.count)
            toSkip -= count
            for entry in batch.entries.dropFirst(count) { ready.append(chain.append(entry)) }
            guard ready.count >= Self.recordsPerMove else { continue }
            try await self.store.append(ready, head: self.sealer.head(of: chain, state: .open))
            ready = []
        }
        guard !ready.isEmpty else { return }
        try await self.store.append(ready, head: self.sealer.head(of: chain, state: .open))
    }

    // MARK: Closing

    /// Closes a writer's chain unless that has happened.
    private func closeChain(of writer: Int) async throws(GatewayError) {
        var attemptsLeft = Self.maxAttempts
        while true {
            // Without a head, somebody has changed the store; a verifier tells more.
            guard let head = try await self.store.heads().first(where: { $0.writer == writer }) else { return }
            do throws(GatewayError) {
                return try await self.close(head)
            } catch {
                // The leader was first, or a commit that was on its way.
                attemptsLeft -= 1
                guard error.code == .conflict, attemptsLeft > 0 else { throw error }
            }
        }
    }

    /// Closes a chain that is open, if its seal is genuine; throws `conflict` if it has grown meanwhile.
    private func close(_ head: AuditHead) async throws(GatewayError) {
        guard head.state == .open else { return }
        guard self.sealer.isGenuine(head) else {
            self.logger.error(
                "The seal of this replica's audit chain is not genuine; the chain is left as it is",
                metadata: [
                    "writer": .stringConvertible(head.writer), "last_sequence": .stringConvertible(head.sequence),
                ]
            )
            return
        }
        var chain = head.chain
        let closing = chain.append(.recovered(at: self.clock.now()))
        try await self.store.append([closing], head: self.sealer.head(of: chain, state: .recovered))
    }

    /// Goes along what is stored behind some places, one chain after the other.
    private struct StoredEntries {
        private static let pageLength = 2_000

        private let store: any AuditChainReader
        private var places: ArraySlice<AuditChain.Position>
        private var page: ArraySlice<AuditChain.Entry> = []

        init(_ store: any AuditChainReader, behind places: [AuditChain.Position]) {
            (self.store, self.places) = (store, places[...])
        }

        /// Moves behind an entry, whatever stands before it; `false` where it is not there, and then nothing is left.
        mutating func pass(_ entry: AuditChain.Entry) async throws(GatewayError) -> Bool {
            repeat {
                guard let index = self.page.firstIndex(of: entry) else { continue }
                self.page = self.page[(index + 1)...]
                return true
            } while try await self.readPage()
            return false
        }

        private mutating func readPage() async throws(GatewayError) -> Bool {
            self.page = []
            while let place = self.places.first {
                let limit = Self.pageLength
                let records = try await self.store.records(of: place.writer, after: place.sequence, limit: limit)
                guard let last = records.last else {
                    self.places.removeFirst()
                    continue
                }
                self.places[self.places.startIndex].sequence = last.sequence
                self.page = records.map(\.entry)[...]
                return true
            }
            return false
        }
    }
}
