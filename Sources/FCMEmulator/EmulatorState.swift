import Foundation
import Synchronization

/// Everything the emulator remembers, behind one lock.
///
/// Decisions are made under the lock; requests held back and observers of the journal are resumed after it was released.
final class EmulatorState: Sendable {
    private let configuration: EmulatorConfiguration
    let contents: Mutex<EmulatorContents>

    /// The connections that are open.
    let connections = Connections()

    init(configuration: EmulatorConfiguration) {
        self.configuration = configuration
        self.contents = Mutex(EmulatorContents(configuration: configuration))
    }

    // MARK: Requests

    /// Looks whether a fault is to be played for a request; if so, the request enters the journal without a decision.
    func admit(_ request: ReceivedRequest) -> Admission {
        let (isEmpty, looksAtTokens) = self.contents.withLock { ($0.faults.isEmpty, $0.faults.looksAtTokens) }
        guard !isEmpty else { return .handle }
        let tokens = looksAtTokens ? request.tokens : []
        let (admission, entry) = self.contents.withLock { contents -> (Admission, JournalEntry?) in
            guard let action = contents.faults.take(path: request.path, tokens: tokens) else { return (.handle, nil) }
            let entry = contents.journal.record(request, fault: action, decision: nil)
            switch action {
            case .reset, .status, .garbage, .truncate, .goAway, .refuse:
                return (.fault(action, id: entry.id), entry)
            case .delay, .hang:
                return (.hold(action, id: entry.id, contents.hold()), entry)
            }
        }
        self.announce(entry)
        return admission
    }

    /// Records an answer that needs no recipients; the id is that of the request's journal entry, if it has one.
    func conclude(_ request: ReceivedRequest, id: Int?, decision: JournalDecision) {
        self.announce(self.contents.withLock { $0.close(request, id: id, decision: decision) })
    }

    /// Settles an accepted message with its recipients, delivers and records it.
    ///
    /// - Parameters:
    ///   - request: the request the message came by.
    ///   - id: of the request's journal entry, if it has one.
    ///   - settle: finds the recipients among subscribers and members of groups, and the answer.
    /// - Returns: the answer.
    func conclude(_ request: ReceivedRequest, id: Int?, settle: (Subscriptions, GroupRegistry) -> Settlement) -> Answer
    {
        let (answer, entry) = self.contents.withLock { contents -> (Answer, JournalEntry?) in
            let settlement = settle(contents.subscriptions, contents.groups)
            let requestID = id ?? contents.journal.nextID
            for recipient in settlement.recipients {
                contents.deliveries.append(
                    Delivery(to: recipient, settlement: settlement, requestID: requestID, time: request.time)
                )
            }
            let decision = JournalDecision(
                answer: settlement.answer,
                deliveredTo: settlement.recipients.map(\.token),
                reason: settlement.reason,
                notes: settlement.notes
            )
            return (settlement.answer, contents.close(request, id: id, decision: decision))
        }
        self.announce(entry)
        return answer
    }

    /// Holds an answer back for the latency that is set.
    ///
    /// - Returns: how long and until when at the latest; nil for not at all.
    func holdAnswer() -> (Duration, Hold)? {
        self.contents.withLock { contents in
            guard contents.settings.latency > .zero else { return nil }
            return (contents.settings.latency, contents.hold())
        }
    }

    /// Ends one hold.
    func release(_ id: Int) {
        self.contents.withLock { $0.held.removeValue(forKey: id) }?.finish()
    }

    // MARK: Control

    func journal(limit: Int) -> [JournalEntry] {
        self.contents.withLock { $0.journal.newest(limit) }
    }

    func deliveries(token: String?, topic: String?, limit: Int) -> [Delivery] {
        self.contents.withLock { contents in
            contents.deliveries.newest(limit) { delivery in
                (token == nil || delivery.token == token) && (topic == nil || delivery.topic == topic)
            }
        }
    }

    @discardableResult
    func subscribe(_ tokens: [String], to topic: String, at time: Date) -> Int {
        self.contents.withLock { $0.subscriptions.subscribe(tokens, to: topic, at: time) }
    }

    /// Changes or reads the subscriptions for a request, and records what came of it.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - id: of its journal entry, if it has one.
    ///   - body: what it does, and the answer.
    /// - Returns: the answer.
    func keepSubscriptions(
        _ request: ReceivedRequest,
        id: Int?,
        _ body: (inout Subscriptions) -> (Answer, reason: String?)
    ) -> Answer {
        let (answer, reason) = self.contents.withLock { body(&$0.subscriptions) }
        self.conclude(request, id: id, decision: JournalDecision(answer: answer, reason: reason))
        return answer
    }

    func addFault(_ fault: Fault) {
        self.contents.withLock { $0.faults.add(fault) }
    }

    /// Forgets the faults and lets every held request go on.
    func deleteFaults() {
        let held = self.contents.withLock { contents in
            contents.faults.removeAll()
            return contents.takeHeld()
        }
        for release in held { release.finish() }
    }

    /// Forgets journal, deliveries, subscriptions, device groups and faults, and returns to the first settings.
    ///
    /// Every held request goes on. Service accounts and access tokens stay valid: they are credentials.
    func reset() {
        let first = self.configuration.settings
        self.update { $0 = first }
        self.connections.forget()
        let held = self.contents.withLock { contents in
            contents.journal.removeAll()
            contents.deliveries = RingBuffer(capacity: self.configuration.maxDeliveries)
            contents.subscriptions = Subscriptions()
            contents.groups = GroupRegistry()
            contents.registrations = Registrations()
            contents.faults.removeAll()
            return contents.takeHeld()
        }
        for release in held { release.finish() }
    }

    /// Lets every held request go on and holds none from now on, so that the server can drain.
    func shutDown() {
        let waiting = self.contents.withLock { contents in
            contents.isShutDown = true
            return contents.takeHeld() + [contents.intervalObserver].compactMap { $0 }
        }
        for release in waiting { release.finish() }
    }

    // MARK: Observers

    /// Journal entries as they are recorded, and again when a held one gets its decision.
    func entries() -> AsyncStream<JournalEntry> {
        let (stream, observer) = AsyncStream<JournalEntry>.makeStream(bufferingPolicy: .bufferingNewest(10_000))
        let id = self.contents.withLock { contents in
            contents.lastObserver += 1
            contents.observers[contents.lastObserver] = observer
            return contents.lastObserver
        }
        observer.onTermination = { [weak self] _ in
            _ = self?.contents.withLock { $0.observers.removeValue(forKey: id) }
        }
        return stream
    }

    func announce(_ entry: JournalEntry?) {
        guard let entry else { return }
        for observer in self.contents.withLock({ Array($0.observers.values) }) {
            observer.yield(entry)
        }
    }
}
