package import Foundation
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle
import Synchronization

/// A fake FCM for tests: it speaks the protocols, judges requests strictly, remembers them and plays scripted faults.
///
/// It is a service: add it to a `ServiceGroup` or call ``run()`` in a task. The same things can be asked over HTTP,
/// below `/_emulator/`, and in process with the methods here.
package final class FCMEmulator: Service {
    private let configuration: EmulatorConfiguration
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Date
    private let port = BoundPort()
    private let hasRun = Atomic(false)

    /// What it remembers.
    let state: EmulatorState

    /// Creates an emulator; it listens once it runs.
    ///
    /// - Parameters:
    ///   - configuration: where it listens, whom it lets in, how much it remembers.
    ///   - logger: where the server logs.
    ///   - clock: measures pauses: those of the fault `delay`, before answers, and between rounds of GOAWAY.
    ///   - now: tells the time, by which assertions are judged and access tokens expire.
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
        self.state = EmulatorState(configuration: configuration)
    }

    /// Serves until graceful shutdown or cancellation.
    ///
    /// Requests held back by a fault are let go at shutdown.
    ///
    /// - Throws: what prevented binding the port or using the certificate or a service account;
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
        let state = self.state
        let maxBodyBytes = self.configuration.maxBodyBytes
        let application = Application(
            responder: self.responder,
            server: HTTPServerBuilder { responder in
                EmulatorChannel(responder: responder, state: state, tls: tls, maxBodyBytes: maxBodyBytes)
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
            state.shutDown()
        }
    }

    /// Tells every HTTP/2 connection to go away, as often as the settings ask for; until cancelled.
    private func sayGoAwayRegularly() async {
        while !Task.isCancelled, let (interval, change) = self.state.observeGoAwayInterval() {
            guard let interval else {
                for await _ in change {}
                continue
            }
            guard await self.clock.pause(for: interval, unless: change) else { continue }
            self.state.connections.command(.goAway(refusing: nil))
        }
    }

    /// The port the emulator listens on; waits until it does.
    ///
    /// - Throws: what prevented binding, or `CancellationError`.
    package func boundPort() async throws -> Int {
        try await self.port.value()
    }

    /// The latest requests, newest first.
    ///
    /// - Parameter limit: how many at most; all that are remembered if left out.
    /// - Returns: the entries, those held back by a fault without a decision.
    package func journal(limit: Int = .max) -> [JournalEntry] {
        self.state.journal(limit: limit)
    }

    /// Requests as they are recorded, from now on; one held back by a fault comes again with its decision.
    package func journalEntries() -> AsyncStream<JournalEntry> {
        self.state.entries()
    }

    /// Deliveries, newest first.
    ///
    /// - Parameters:
    ///   - token: of the device; nil for any.
    ///   - topic: the message was sent to; nil for any, and for messages to devices and conditions.
    /// - Returns: the deliveries that match both.
    package func deliveries(token: String? = nil, topic: String? = nil) -> [Delivery] {
        self.state.deliveries(token: token, topic: topic, limit: .max)
    }

    /// Subscribes devices to a topic.
    ///
    /// - Parameters:
    ///   - tokens: of the devices.
    ///   - topic: the topic's name, without `/topics/`.
    /// - Throws: ``EmulatorError/badTopic(_:)``.
    package func subscribe(_ tokens: [String], to topic: String) throws(EmulatorError) {
        guard TopicName.isValid(topic.utf8) else { throw .badTopic(topic) }
        self.state.subscribe(tokens, to: topic, at: self.now())
    }

    /// The topics that a device is subscribed to, sorted.
    ///
    /// - Parameter token: of the device.
    /// - Returns: the names, without `/topics/`.
    package func topics(of token: String) -> [String] {
        self.state.contents.withLock { $0.subscriptions.topics(of: token).keys.sorted() }
    }

    /// Adds a fault behind those still to be played.
    package func addFault(_ fault: Fault) {
        self.state.addFault(fault)
    }

    /// Forgets the faults and lets every request go on that one of them holds back.
    package func deleteFaults() {
        self.state.deleteFaults()
    }

    /// Forgets journal, deliveries, subscriptions, device groups and faults, and returns to the first settings.
    ///
    /// Service accounts and access tokens stay valid: they are credentials.
    package func reset() {
        self.state.reset()
    }

    private var responder: EmulatorResponder {
        EmulatorResponder(
            state: self.state,
            legacy: LegacyEndpoint(serverKeys: self.configuration.serverKeys),
            maxBodyBytes: self.configuration.maxBodyBytes,
            scheme: self.scheme,
            clock: self.clock,
            now: self.now
        )
    }

    private var scheme: String { self.configuration.certificate == nil ? "http" : "https" }

    /// Where the emulator is reached from the same machine, such as `http://127.0.0.1:8085`; waits until it listens.
    ///
    /// - Throws: what prevented binding, or `CancellationError`.
    package func baseURL() async throws -> String {
        let isAnyAddress = ["0.0.0.0", "::", ""].contains(self.configuration.host)
        let host = isAnyAddress ? "127.0.0.1" : self.configuration.host
        return "\(self.scheme)://\(host.contains(":") ? "[\(host)]" : host):\(try await self.boundPort())"
    }
}
