package import FCMModel
import Metrics
import Synchronization

/// One process's try at a send that carries a key: nothing leaves before the key is taken, and no call leaves before a
/// mark says durably that it is about to (decision 0018).
///
/// The calls of a list are marked some at a time, in their order, so that a long list costs few transactions. After a
/// crash those that were marked and have no outcome are unknown.
///
/// Where replicas share the store, the key is had under a lease: each mark needs it, and so does each call at its very
/// beginning, for as long as the call may take. Who is paused beyond it sends nothing more, since another replica may have
/// settled the send meanwhile.
package final class SendReservation: Sendable {
    typealias Writer = GroupCommitWriter<IdempotencyChange, IdempotencyChange.Outcome>

    /// What a call does that wants to leave.
    private enum Decision {
        case pass, stop, wait
        /// Marks these calls of the list.
        case mark(Range<Int>)
    }

    private struct State {
        /// The record that holds the key, once it is taken.
        var recordID: Int64?
        var progress: SendProgress
        /// Why the key could not be taken, or a mark not be written.
        var refusal: Refusal?
        /// Where the calls' recipients stand in the whole send.
        var places: [Int] = []
        var marked = 0
        var isMarking = false
        /// `nil` where no other replica can take the key.
        var lease: Lease?
        /// Whether the store has said that another replica has it now.
        var isLost = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The message's id, the same however often the send is tried.
    let messageID: String
    private let identity: IdempotencyIdentity
    private let draft: IdempotencyRecord
    private let sealer: IdempotencySealer
    private let writer: Writer
    private let counters: [IdempotencyEvent: Counter]
    /// How many calls are marked at once.
    private let startsPerMark: Int
    private let leases: LeaseTerms?
    private let leaseCounters: LeaseCounters?
    private let target: Target
    /// What an earlier process had got to.
    private let earlier: SendProgress
    private let state: Mutex<State>

    init(
        _ identity: IdempotencyIdentity,
        to target: Target,
        draft: IdempotencyRecord,
        recordID: Int64? = nil,
        earlier: SendProgress,
        sealer: IdempotencySealer,
        writer: Writer,
        counters: [IdempotencyEvent: Counter],
        startsPerMark: Int,
        leases: LeaseTerms? = nil,
        leaseCounters: LeaseCounters? = nil
    ) {
        (self.messageID, self.identity, self.target) = (draft.messageID, identity, target)
        (self.draft, self.earlier, self.sealer) = (draft, earlier, sealer)
        (self.writer, self.counters, self.startsPerMark) = (writer, counters, startsPerMark)
        (self.leases, self.leaseCounters) = (leases, leaseCounters)
        let lease = leases.map { Lease(duration: $0.duration) }
        self.state = Mutex(State(recordID: recordID, progress: earlier, lease: lease))
    }

    /// The record that holds the key; `nil` while nothing can have left.
    var recordID: Int64? { self.state.withLock { $0.recordID } }

    /// Why nothing more may leave.
    var refusal: Refusal? { self.state.withLock { $0.refusal } }

    // MARK: Leaving

    /// Makes the calls that some of the send's recipients become, none before it is durable that it is about to leave.
    ///
    /// A list that becomes a call for each recipient passes here call by call; anything else is marked as a whole.
    func send(_ call: UpstreamCall, by upstream: any UpstreamSender) async -> SendResult {
        self.begin(call.target)
        if call.profile.tenant.upstream.sendsEach(of: call.target) {
            let result = await upstream.send(call)
            // Without the key, no call has left; one answer says so better than one for each.
            return self.recordID == nil ? self.notStarted ?? result : self.qualified(result)
        }
        guard await self.pass(call.target.recipientCount - 1) else {
            return self.notStarted ?? SendResult(refused: .overloaded, upstreamCode: "not_started")
        }
        return await upstream.send(call)
    }

    /// Prepares for the calls that some of the send's recipients become.
    func begin(_ target: Target) {
        let places = self.places(of: target)
        self.state.withLock { state in
            state.places = places
            state.marked = 0
        }
    }

    private var notStarted: SendResult? {
        self.refusal.map { SendResult(refused: $0.code, retryAfter: $0.retryAfter, upstreamCode: "not_started") }
    }

    /// Where recipients stand in the whole send: limits and retired tokens leave some out, and change no order.
    private func places(of target: Target) -> [Int] {
        let remaining = self.earlier.remaining
        guard let texts = target.listed, let all = self.target.listed else { return Array(remaining.prefix(1)) }
        var places: [Int] = []
        places.reserveCapacity(texts.count)
        var candidates = remaining.makeIterator()
        for text in texts {
            while let place = candidates.next() {
                guard all[place].utf8.elementsEqual(text.utf8) else { continue }
                places.append(place)
                break
            }
        }
        return places
    }

    /// Whether a call may begin now that takes so long at most; asked immediately before it leaves.
    package func mayCall(within timeout: Duration) -> Bool {
        guard let leases = self.leases else { return true }
        let now = leases.uptime()
        return self.state.withLock { $0.lease?.covers(timeout, at: now) ?? true }
    }

    /// Returns when a call, named by its place among those of the list, may leave; `false` where it must not.
    package func pass(_ index: Int) async -> Bool {
        while true {
            switch self.decide(on: index) {
            case .pass: return true
            case .stop: return false
            case .wait: await self.waitForMark()
            case .mark(let range): await self.mark(range)
            }
        }
    }

    /// The result of a list's calls. Beyond the lease another replica may have sent to those that were not marked here, so
    /// they are neither done nor free to be repeated under another key.
    private func qualified(_ result: SendResult) -> SendResult {
        guard !self.mayCall(within: .zero) else { return result }
        let unmarked = self.state.withLock { $0.marked..<$0.places.count }
        let rejection = Rejection(code: .idempotencyInProgress, retryAfter: 1)
        var qualified = result
        switch result.answer {
        case .recipients(var outcomes):
            for index in outcomes.indices where unmarked.contains(index) { outcomes[index] = .rejected(rejection) }
            qualified.answer = .recipients(outcomes)
        case .refused where unmarked.lowerBound == 0:
            qualified.answer = .refused(Refusal(rejection))
        case .refused, .group:
            break
        }
        return qualified
    }

    /// Notes what became of a call; it becomes durable with the next mark.
    package func finish(_ index: Int, _ outcome: RecipientOutcome) {
        self.state.withLock { $0.progress.finish($0.places[index], outcome) }
    }

    private func decide(on index: Int) -> Decision {
        self.state.withLock { state in
            if index < state.marked { return .pass }
            if state.refusal != nil || index >= state.places.count { return .stop }
            if state.isMarking { return .wait }
            state.isMarking = true
            return .mark(state.marked..<min(max(state.marked + self.startsPerMark, index + 1), state.places.count))
        }
    }

    private func waitForMark() async {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                guard state.isMarking else { return true }
                state.waiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    private func mark(_ range: Range<Int>) async {
        let (recordID, places, progress) = self.state.withLock { state in
            let places = Array(state.places[range])
            state.progress.start(places)
            return (state.recordID, places, state.progress)
        }
        let asked = self.leases?.uptime()
        let result = await self.save(progress, in: recordID)
        let waiters = self.state.withLock { state in
            switch result {
            case .success(let id):
                (state.recordID, state.marked) = (id, range.upperBound)
                if let asked { state.lease?.grant(askedAt: asked) }
            case .failure(let refusal):
                state.progress.takeBack(places)
                state.refusal = refusal
            }
            state.isMarking = false
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Makes progress durable, the first time by taking the key; the number of its record.
    private func save(_ progress: SendProgress, in recordID: Int64?) async -> Result<Int64, Refusal> {
        do throws(GatewayError) {
            let state = IdempotencyRecord.State.open(progress: try self.sealer.seal(progress.bytes, as: .progress))
            if let recordID {
                if case .lost = try await self.writer.commit(.update(id: recordID, state)) {
                    self.lose()
                    return .failure(Refusal(.idempotencyInProgress, retryAfter: 1))
                }
                return .success(recordID)
            }
            var record = self.draft
            record.state = state
            switch try await self.writer.commit(.reserve(self.identity, record)) {
            case .reserved(let id, let evicted):
                self.counters[.evicted]?.increment(by: evicted)
                return .success(id)
            case .full:
                return .failure(Refusal(.overloaded, "As many idempotency keys are kept as may be; repeat later"))
            case .tenantGone:
                return .failure(Refusal(.notFound, "There is no such tenant any more"))
            case .taken, .lost, .done:
                return .failure(Refusal(.idempotencyInProgress, retryAfter: 1))
            }
        } catch {
            self.counters[.failed]?.increment()
            // Beyond its lease another replica may have the key, and be sending what is left.
            let isOver = recordID != nil && !self.mayCall(within: .zero)
            return .failure(isOver ? Refusal(.idempotencyInProgress, retryAfter: 1) : .unkeepable)
        }
    }

    // MARK: Leases

    /// Renews the lease after a third of it; where another replica has taken the key, nothing more leaves.
    func renewLease() async {
        guard let leases = self.leases else { return }
        let asked = leases.uptime()
        let due = self.state.withLock { $0.lease?.isDue(at: asked) == true ? $0.recordID : nil }
        guard let due else { return }
        // A store that does not answer leaves the lease to end.
        guard let outcome = try? await self.writer.commit(.renew(id: due)) else { return }
        guard case .lost = outcome else { return self.state.withLock { $0.lease?.grant(askedAt: asked) ?? () } }
        self.lose()
    }

    /// Lets nothing more leave, since another replica has the key.
    private func lose() {
        let isNews = self.state.withLock { state in
            state.lease?.lose()
            state.refusal = state.refusal ?? Refusal(.idempotencyInProgress, retryAfter: 1)
            defer { state.isLost = true }
            return !state.isLost
        }
        if isNews { self.leaseCounters?.losses.increment() }
    }

    /// Takes what another replica left; `false` where that or a third one is at it.
    func takeOver() async throws(GatewayError) -> Bool {
        guard let leases = self.leases, let recordID = self.recordID else { return true }
        guard case .open(let progress) = self.draft.state else { return false }
        let asked = leases.uptime()
        let change = IdempotencyChange.takeOver(id: recordID, progress: progress)
        guard case .done = try await self.writer.commit(change) else { return false }
        self.state.withLock { $0.lease?.grant(askedAt: asked) ?? () }
        self.leaseCounters?.takeovers.increment()
        return true
    }

    // MARK: Ending

    /// Keeps the answer; nothing is kept where the key was not taken.
    func complete(_ answer: [UInt8]) async throws(GatewayError) {
        guard let recordID = self.recordID else { return }
        let state = IdempotencyRecord.State.finished(answer: try self.sealer.seal(answer, as: .answer))
        if case .lost = try await self.writer.commit(.update(id: recordID, state)) { self.lose() }
    }

    /// Frees the key, since nothing has left for anybody; what an earlier process had started stays as it was.
    func release() async throws(GatewayError) {
        guard let recordID = self.recordID else { return }
        guard !self.earlier.started.isEmpty else {
            _ = try await self.writer.commit(.release(id: recordID))
            return
        }
        let state = IdempotencyRecord.State.open(progress: try self.sealer.seal(self.earlier.bytes, as: .progress))
        _ = try await self.writer.commit(.update(id: recordID, state))
    }
}

extension Refusal {
    /// Why nothing is sent while the store refuses.
    static let unkeepable = Refusal(.overloaded, "The idempotency key can't be kept, so nothing is sent")
}

/// Which recipients of a send may have been sent to, and what became of them.
struct SendProgress: Sendable, Hashable {
    let count: Int
    /// The places of those to whom the message may have left.
    private(set) var started: Set<Int> = []
    /// What became of them, as far as it is known.
    private(set) var outcomes: [Int: RecipientOutcome] = [:]

    init(count: Int) {
        self.count = count
    }

    /// The places of those to whom nothing has left.
    var remaining: [Int] { (0..<self.count).filter { !self.started.contains($0) } }

    mutating func start(_ places: some Sequence<Int>) {
        self.started.formUnion(places)
    }

    mutating func takeBack(_ places: some Sequence<Int>) {
        self.started.subtract(places)
    }

    mutating func finish(_ place: Int, _ outcome: RecipientOutcome) {
        self.outcomes[place] = outcome
    }

    /// One outcome for each recipient: what is known of those that were started, or else `outcome_unknown`, and of the
    /// others, in their order, what came later.
    func results(with later: [RecipientOutcome] = []) -> [RecipientOutcome] {
        var later = later.makeIterator()
        return (0..<self.count)
            .map { place in
                guard !self.started.contains(place) else { return self.outcomes[place] ?? .rejected(.outcomeUnknown) }
                return later.next() ?? .rejected(.upstreamUnavailable)
            }
    }
}

extension SendProgress {
    /// Rises when the layout changes.
    private static let version = 1

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.write(number: Self.version)
        writer.write(number: self.started.count)
        for place in self.started.sorted() { writer.write(number: place) }
        writer.write(number: self.outcomes.count)
        for (place, outcome) in self.outcomes.sorted(by: { $0.key < $1.key }) {
            writer.write(number: place)
            switch outcome {
            case .accepted(let acceptance):
                writer.write(text: nil)
                writer.write(text: acceptance.messageID)
                writer.write(text: acceptance.replacementToken)
            case .rejected(let rejection):
                writer.write(text: rejection.code.rawValue)
                writer.write(number: rejection.retryAfter ?? ByteReader.absent)
                writer.write(text: rejection.limitedBy?.rawValue)
                writer.write(text: rejection.legacyName?.rawValue)
            }
        }
        return writer.bytes
    }

    /// Progress of a send to so many recipients, without places that none of them has; `nil` for bytes that no progress
    /// has.
    init?(_ bytes: [UInt8], count: Int) {
        self.init(count: count)
        var reader = ByteReader(bytes)
        guard reader.number() == Self.version, let startedCount = reader.number() else { return nil }
        for _ in 0..<startedCount {
            guard let place = reader.number() else { return nil }
            if place < count { self.started.insert(place) }
        }
        guard let outcomeCount = reader.number() else { return nil }
        for _ in 0..<outcomeCount {
            guard let place = reader.number(), let outcome = RecipientOutcome(from: &reader) else { return nil }
            if place < count { self.outcomes[place] = outcome }
        }
        guard reader.rest.isEmpty else { return nil }
    }
}

extension RecipientOutcome {
    fileprivate init?(from reader: inout ByteReader) {
        guard let name = reader.optionalText() else { return nil }
        if let name {
            guard let code = OutcomeCode(rawValue: name), let retryAfter = reader.number(),
                let limitedBy = reader.optionalText(), let legacyName = reader.optionalText()
            else { return nil }
            let rejection = Rejection(
                code: code,
                retryAfter: retryAfter == ByteReader.absent ? nil : retryAfter,
                limitedBy: limitedBy.flatMap(Rejection.LimitSource.init(rawValue:)),
                legacyName: legacyName.flatMap(LegacyErrorName.init(rawValue:))
            )
            self = .rejected(rejection)
        } else {
            guard let messageID = reader.text(), let replacement = reader.optionalText() else { return nil }
            self = .accepted(Acceptance(messageID: messageID, replacementToken: replacement))
        }
    }
}
