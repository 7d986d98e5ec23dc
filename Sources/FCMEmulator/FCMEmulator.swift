package import Foundation
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle
import Synchronization

/// A fake FCM for tests: speaks the protocols, checks requests strictly, records them, and plays scripted faults.
///
///     request -> fault? -> endpoint -> AcceptedMessage -> Settlement -> answer, journal, deliveries
///                  |           +------ refused ----------------------> answer, journal
///                  +---------- reset, status, hang … ----------------> answer or none, journal
///
/// Add it to a `ServiceGroup` or call ``run()`` in a task. It is controlled over HTTP below `/_emulator/`, or in
/// process by the methods here. One lock guards its state. Decisions are made under the lock; held requests and
/// observers of the journal are resumed after its release.
package final class FCMEmulator: Service {
    private struct State {
        var journal: Journal
        var deliveries: RingBuffer<Delivery>
        var subscriptions = Subscriptions()
        var groups = GroupRegistry()
        var registrations = Registrations()
        var faults = FaultScript()
        var settings: EmulatorSettings
        var accounts: [String: ServiceAccount] = [:]
        var accessTokens = AccessTokens()
        var federation = Federation.State()
        /// Held requests and answers, by the number of the hold.
        var held: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastHold = 0
        /// Notifies the one task that sends GOAWAY regularly of a changed interval.
        var intervalObserver: AsyncStream<Void>.Continuation?
        var observers: [Int: AsyncStream<JournalEntry>.Continuation] = [:]
        var lastObserver = 0
        var isShutDown = false

        init(_ configuration: EmulatorConfiguration) {
            self.journal = Journal(maxEntries: configuration.maxJournalEntries, maxBytes: configuration.maxJournalBytes)
            self.deliveries = RingBuffer(capacity: configuration.maxDeliveries)
            self.settings = configuration.settings
        }

        mutating func hold() -> Hold {
            self.lastHold += 1
            let (end, release) = AsyncStream<Void>.makeStream()
            if self.isShutDown {
                release.finish()
            } else {
                self.held[self.lastHold] = release
            }
            return Hold(id: self.lastHold, end: end)
        }

        /// Writes a decision into the request's journal entry, or a new entry if it has none; `nil` if that entry was
        /// dropped.
        mutating func close(_ request: ReceivedRequest, id: Int?, decision: JournalDecision) -> JournalEntry? {
            guard let id else { return self.journal.record(request, fault: nil, decision: decision) }
            return self.journal.complete(id, decision: decision)
        }

        /// Removes and returns all holds; the caller releases them.
        mutating func takeHeld() -> [AsyncStream<Void>.Continuation] {
            defer { self.held = [:] }
            return Array(self.held.values)
        }
    }

    /// A request or an answer that is held until ``FCMEmulator/release(_:)``.
    struct Hold: Sendable {
        let id: Int
        let end: AsyncStream<Void>
    }

    /// The first step of handling a request.
    enum Admission {
        case handle
        /// A fault is played for the journal entry with this id.
        case fault(FaultAction, id: Int)
        /// A fault holds the request with the journal entry of this id.
        case hold(FaultAction, id: Int, Hold)
    }

    private let configuration: EmulatorConfiguration
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Date
    private let port = BoundPort()
    private let hasRun = Atomic(false)
    private let state: Mutex<State>
    let connections = Connections()

    /// Creates an emulator, which listens once it runs.
    ///
    /// The clock measures pauses; `now` is the time for assertions and the expiry of access tokens.
    package init(
        configuration: EmulatorConfiguration = EmulatorConfiguration(),
        logger: Logger,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.configuration = configuration
        self.logger = logger
        self.clock = clock
        self.now = now
        self.state = Mutex(State(configuration))
    }

    // MARK: Running

    /// Serves until graceful shutdown or cancellation; shutdown releases requests that a fault holds.
    ///
    /// - Throws: the reason why the port, the certificate or a service account can't be used;
    ///   ``EmulatorError/alreadyRun`` on a second call.
    package func run() async throws {
        guard !self.hasRun.exchange(true, ordering: .acquiringAndReleasing) else { throw EmulatorError.alreadyRun }
        do {
            for file in self.configuration.serviceAccounts { try self.addServiceAccount(file) }
            let tls = try self.configuration.certificate?.serverContext()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await self.sayGoAwayRegularly() }
                defer { group.cancelAll() }
                try await self.serve(tls: tls)
            }
        } catch {
            self.port.fail(error)
            throw error
        }
        self.port.fail(EmulatorError.neverBound)
    }

    private func serve(tls: NIOSSLContext?) async throws {
        let port = self.port
        let maxBodyBytes = self.configuration.maxBodyBytes
        let application = Application(
            responder: EmulatorResponder(
                emulator: self,
                legacy: LegacyEndpoint(serverKeys: self.configuration.serverKeys),
                maxBodyBytes: maxBodyBytes,
                scheme: self.scheme,
                clock: self.clock,
                now: self.now
            ),
            server: HTTPServerBuilder { responder in
                EmulatorChannel(responder: responder, emulator: self, tls: tls, maxBodyBytes: maxBodyBytes)
            },
            configuration: ApplicationConfiguration(
                address: .hostname(self.configuration.host, port: self.configuration.port)
            ),
            onServerRunning: { channel in
                port.succeed(channel.localAddress?.port ?? 0)
            },
            logger: self.logger
        )
        try await withGracefulShutdownHandler {
            try await application.run()
        } onGracefulShutdown: {
            self.shutDown()
        }
    }

    /// Releases every held request and holds no more, so that the server can drain.
    private func shutDown() {
        let waiting = self.state.withLock { state in
            state.isShutDown = true
            return state.takeHeld() + [state.intervalObserver].compactMap { $0 }
        }
        for release in waiting { release.finish() }
    }

    /// Sends GOAWAY on every HTTP/2 connection at the configured interval, until cancelled.
    private func sayGoAwayRegularly() async {
        while !Task.isCancelled, let (interval, change) = self.observeGoAwayInterval() {
            guard let interval else {
                for await _ in change {}
                continue
            }
            guard await self.clock.pause(for: interval, unless: change) else { continue }
            self.goAway()
        }
    }

    /// Returns the interval between rounds of GOAWAY, and a stream that ends when it changes or the emulator stops;
    /// `nil` once it has stopped.
    private func observeGoAwayInterval() -> (Duration?, AsyncStream<Void>)? {
        self.state.withLock { state in
            guard !state.isShutDown else { return nil }
            let (change, observer) = AsyncStream<Void>.makeStream()
            state.intervalObserver = observer
            return (state.settings.goAwayInterval, change)
        }
    }

    /// Waits until the port is bound; throws the reason if it can't be, or `CancellationError`.
    package func boundPort() async throws -> Int {
        try await self.port.value()
    }

    /// The emulator's URL on this machine, such as `http://127.0.0.1:8085`; waits until it listens.
    package func baseURL() async throws -> String {
        let isAnyAddress = ["0.0.0.0", "::", ""].contains(self.configuration.host)
        let host = isAnyAddress ? "127.0.0.1" : self.configuration.host
        return "\(self.scheme)://\(host.contains(":") ? "[\(host)]" : host):\(try await self.boundPort())"
    }

    private var scheme: String { self.configuration.certificate == nil ? "http" : "https" }

    // MARK: Settings and connections

    package var settings: EmulatorSettings { self.state.withLock { $0.settings } }

    /// Changes the settings; announces a new limit of streams on open HTTP/2 connections.
    package func updateSettings(_ change: (inout EmulatorSettings) -> Void) {
        let (before, after, observer) = self.state.withLock { state in
            let before = state.settings
            change(&state.settings)
            return (before, state.settings, state.intervalObserver)
        }
        if before.goAwayInterval != after.goAwayInterval {
            observer?.finish()
        }
        if before.maxConcurrentStreams != after.maxConcurrentStreams {
            self.connections.command(.allow(streams: after.maxConcurrentStreams))
        }
    }

    package var connectionReport: ConnectionReport { self.connections.report }

    /// Sends GOAWAY on every HTTP/2 connection; returns their number.
    ///
    /// Open streams are answered, then the connection closes.
    @discardableResult
    package func goAway() -> Int {
        self.connections.command(.goAway(refusing: nil))
    }

    /// Clears journal, deliveries, subscriptions, device groups and faults, and restores the first settings.
    ///
    /// Releases every held request. Service accounts and access tokens stay valid: they are credentials.
    package func reset() {
        let first = self.configuration.settings
        self.updateSettings { $0 = first }
        self.connections.forget()
        let held = self.state.withLock { state in
            state.journal.removeAll()
            state.deliveries = RingBuffer(capacity: self.configuration.maxDeliveries)
            state.subscriptions = Subscriptions()
            state.groups = GroupRegistry()
            state.registrations = Registrations()
            state.faults.removeAll()
            return state.takeHeld()
        }
        for release in held { release.finish() }
    }

    // MARK: Faults

    /// Adds a fault behind those still to be played.
    package func addFault(_ fault: Fault) {
        self.state.withLock { $0.faults.add(fault) }
    }

    /// Removes the faults, and releases the requests that they hold.
    package func deleteFaults() {
        let held = self.state.withLock { state in
            state.faults.removeAll()
            return state.takeHeld()
        }
        for release in held { release.finish() }
    }

    /// Finds a fault for a request; if there is one, the request enters the journal without a decision.
    func admit(_ request: ReceivedRequest) -> Admission {
        let (isEmpty, looksAtTokens) = self.state.withLock { ($0.faults.isEmpty, $0.faults.looksAtTokens) }
        guard !isEmpty else { return .handle }
        let tokens = looksAtTokens ? request.tokens : []
        let (admission, entry) = self.state.withLock { state -> (Admission, JournalEntry?) in
            guard let action = state.faults.take(path: request.path, tokens: tokens) else { return (.handle, nil) }
            let entry = state.journal.record(request, fault: action, decision: nil)
            switch action {
            case .reset, .status, .garbage, .truncate, .goAway, .refuse:
                return (.fault(action, id: entry.id), entry)
            case .delay, .hang:
                return (.hold(action, id: entry.id, state.hold()), entry)
            }
        }
        self.announce(entry)
        return admission
    }

    /// Holds an answer for the configured latency; `nil` without latency.
    func holdAnswer() -> (Duration, Hold)? {
        self.state.withLock { state in
            guard state.settings.latency > .zero else { return nil }
            return (state.settings.latency, state.hold())
        }
    }

    func release(_ hold: Hold) {
        self.state.withLock { $0.held.removeValue(forKey: hold.id) }?.finish()
    }

    // MARK: The journal

    /// The latest requests, newest first; those held by a fault have no decision.
    package func journal(limit: Int = .max) -> [JournalEntry] {
        self.state.withLock { $0.journal.newest(limit) }
    }

    /// Requests as they are recorded, from now on; a request held by a fault appears again with its decision.
    package func journalEntries() -> AsyncStream<JournalEntry> {
        let (stream, observer) = AsyncStream<JournalEntry>.makeStream(bufferingPolicy: .bufferingNewest(10_000))
        let id = self.state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
        observer.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
        }
        return stream
    }

    /// Deliveries, newest first, to a device and to a topic; nil for any.
    ///
    /// Messages to devices and conditions have no topic.
    package func deliveries(token: String? = nil, topic: String? = nil, limit: Int = .max) -> [Delivery] {
        self.state.withLock { state in
            state.deliveries.newest(limit) { delivery in
                (token == nil || delivery.token == token) && (topic == nil || delivery.topic == topic)
            }
        }
    }

    /// Records a decision; the id is that of the request's journal entry, if it has one.
    func record(_ request: ReceivedRequest, id: Int?, decision: JournalDecision) {
        self.announce(self.state.withLock { $0.close(request, id: id, decision: decision) })
    }

    private func announce(_ entry: JournalEntry?) {
        guard let entry else { return }
        for observer in self.state.withLock({ Array($0.observers.values) }) {
            observer.yield(entry)
        }
    }

    // MARK: Messages

    /// Determines the recipients of an accepted message, delivers it, and records it.
    func deliver(
        _ request: ReceivedRequest,
        id: Int?,
        settle: (Subscriptions, GroupRegistry, Registrations) -> Settlement
    ) -> Answer {
        let (answer, entry) = self.state.withLock { state -> (Answer, JournalEntry?) in
            var registrations = state.registrations
            registrations.unregisteredPercent = state.settings.unregisteredPercent
            let settlement = settle(state.subscriptions, state.groups, registrations)
            let requestID = id ?? state.journal.nextID
            for recipient in settlement.recipients {
                state.deliveries.append(
                    Delivery(to: recipient, settlement: settlement, requestID: requestID, time: request.time)
                )
            }
            let decision = JournalDecision(
                answer: settlement.answer,
                deliveredTo: settlement.recipients.map(\.token),
                reason: settlement.reason,
                notes: settlement.message.notes
            )
            return (settlement.answer, state.close(request, id: id, decision: decision))
        }
        self.announce(entry)
        return answer
    }

    // MARK: Registrations, subscriptions and groups

    /// Ends the registrations of tokens: messages to them are answered with `NotRegistered`, or `UNREGISTERED` in v1.
    package func unregister(_ tokens: [String]) {
        self.setRegistration(of: tokens, isEnded: true, canonical: nil)
    }

    /// Restores registrations; with a canonical token, the legacy protocol's answers name it.
    package func register(_ tokens: [String], canonical: String? = nil) {
        self.setRegistration(of: tokens, isEnded: false, canonical: canonical)
    }

    /// Changes registrations; returns the number of ended ones.
    @discardableResult
    func setRegistration(of tokens: [String], isEnded: Bool, canonical: String?) -> Int {
        self.state.withLock { state in
            state.registrations.set(tokens, isEnded: isEnded, canonical: canonical)
            return state.registrations.endedCount
        }
    }

    func forgetRegistrations() {
        self.state.withLock { $0.registrations = Registrations() }
    }

    /// Subscribes devices to a topic, named without `/topics/`; returns the number of its devices.
    @discardableResult
    package func subscribe(_ tokens: [String], to topic: String) throws(EmulatorError) -> Int {
        guard TopicName.isValid(topic.utf8) else { throw .badTopic(topic) }
        let time = self.now()
        return self.state.withLock { $0.subscriptions.subscribe(tokens, to: topic, at: time) }
    }

    /// The topics that a device is subscribed to, sorted and without `/topics/`.
    package func topics(of token: String) -> [String] {
        self.state.withLock { $0.subscriptions.topics(of: token).keys.sorted() }
    }

    /// Changes or reads the subscriptions for a request, and records the answer.
    func withSubscriptions(
        _ request: ReceivedRequest,
        id: Int?,
        _ body: (inout Subscriptions) -> (Answer, reason: String?)
    ) -> Answer {
        let (answer, reason) = self.state.withLock { body(&$0.subscriptions) }
        self.record(request, id: id, decision: JournalDecision(answer: answer, reason: reason))
        return answer
    }

    func perform(_ command: GroupCommand) throws(GroupFailure) -> String {
        try self.state.withLock { state throws(GroupFailure) in try state.groups.perform(command) }
    }

    var groups: [GroupRegistry.Group] { self.state.withLock { $0.groups.all } }

    /// The members of a device group in the order of joining; `nil` if there is no such group.
    package func members(ofGroup name: String, senderID: String) -> [String]? {
        self.state.withLock { $0.groups.group(named: name, sender: senderID)?.members }
    }

    /// The names of a sender id's device groups, sorted.
    package func groupNames(senderID: String) -> [String] {
        self.groups.filter { $0.sender == senderID }.map(\.name)
    }

    /// Deletes a device group with all members, so that its keys become invalid; returns true if there was one.
    @discardableResult
    package func deleteGroup(named name: String, senderID: String) -> Bool {
        self.state.withLock { $0.groups.delete(named: name, sender: senderID) }
    }

    /// Sets the tokens that no device group accepts, replacing the earlier ones.
    package func refuse(tokens: Set<String>) {
        self.state.withLock { $0.groups.invalidTokens = tokens }
    }

    // MARK: Credentials

    /// Creates a service account whose assertions are accepted; waits until the emulator listens.
    ///
    /// Returns the sender's file, with the emulator's `token_uri`, and an address made from the project unless one is
    /// given.
    package func makeServiceAccount(
        projectID: String,
        clientEmail: String? = nil
    ) async throws -> ServiceAccountFile {
        let tokenURI = try await self.baseURL() + TokenEndpoint.path
        let file = try ServiceAccountFile(making: projectID, clientEmail: clientEmail, tokenURI: tokenURI)
        try self.addServiceAccount(file)
        return file
    }

    /// Accepts the assertions of an account created elsewhere; replaces an account with the same address.
    package func addServiceAccount(_ file: ServiceAccountFile) throws(EmulatorError) {
        let account = try ServiceAccount(file)
        self.state.withLock { $0.accounts[account.email] = account }
    }

    /// Removes an account, whose assertions are refused from then on; returns true if it was known.
    ///
    /// Access tokens issued to it stay valid.
    @discardableResult
    package func removeServiceAccount(clientEmail: String) -> Bool {
        self.state.withLock { $0.accounts.removeValue(forKey: clientEmail) != nil }
    }

    func account(email: String) -> ServiceAccount? {
        self.state.withLock { $0.accounts[email] }
    }

    /// True if an account belongs to the project, or the machine does.
    func knows(project: String) -> Bool {
        self.state.withLock { state in
            state.federation.machineProjectID == project
                || state.accounts.values.contains { $0.projectID == project }
        }
    }

    /// Makes a token of another provider, which STS exchanges for access tokens to a project.
    package func makeSubjectToken(projectID: String, lifetimeSeconds: Int) -> String {
        let expiry = self.now().addingTimeInterval(TimeInterval(lifetimeSeconds))
        return self.state.withLock { $0.federation.makeSubjectToken(projectID: projectID, expiry: expiry) }
    }

    /// Gives the machine an account of a project, or none.
    package func setMachine(projectID: String?) { self.state.withLock { $0.federation.machineProjectID = projectID } }

    func federation<Value: Sendable>(_ read: (Federation.State) -> Value) -> Value {
        self.state.withLock { read($0.federation) }
    }

    /// Makes every access token issued so far invalid.
    package func revokeAccessTokens() {
        self.state.withLock { $0.accessTokens.revokeAll() }
    }

    /// Issues an access token; returns it with its lifetime in seconds.
    func issueToken(for grant: AccessGrant, now: Date) -> (String, Int) {
        self.state.withLock { state in
            let seconds = state.settings.tokenLifetimeSeconds
            let expiry = now.addingTimeInterval(TimeInterval(seconds))
            return (state.accessTokens.issue(grant, expiry: expiry), seconds)
        }
    }

    func access(with token: String) -> AccessTokens.Access {
        let now = self.now()
        return self.state.withLock { $0.accessTokens.access(with: token, now: now) }
    }
}
