import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
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
    private let state: EmulatorState
    private let port = BoundPort()
    private let hasRun = Atomic(false)

    /// Creates an emulator; it listens once it runs.
    ///
    /// - Parameters:
    ///   - configuration: where it listens, whom it lets in, how much it remembers.
    ///   - logger: where the server logs.
    ///   - clock: measures the pauses of the fault `delay`.
    package init(
        configuration: EmulatorConfiguration = EmulatorConfiguration(),
        logger: Logger,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.configuration = configuration
        self.logger = logger
        self.clock = clock
        self.state = EmulatorState(configuration: configuration)
    }

    /// Serves until graceful shutdown or cancellation.
    ///
    /// Requests held back by a fault are let go at shutdown.
    ///
    /// - Throws: what prevented binding the port; ``EmulatorError/alreadyRun`` on a second call.
    package func run() async throws {
        guard !self.hasRun.exchange(true, ordering: .acquiringAndReleasing) else { throw EmulatorError.alreadyRun }
        let port = self.port
        let state = self.state
        let application = Application(
            responder: self.responder,
            server: .http1(configuration: HTTP1Channel.Configuration(additionalChannelHandlers: [PeerWatch()])),
            configuration: ApplicationConfiguration(
                address: .hostname(self.configuration.host, port: self.configuration.port)
            ),
            onServerRunning: { channel in
                port.succeed(channel.localAddress?.port ?? 0)
            },
            logger: self.logger
        )
        do {
            try await withGracefulShutdownHandler {
                try await application.run()
            } onGracefulShutdown: {
                state.shutDown()
            }
        } catch {
            port.fail(error)
            throw error
        }
        port.fail(EmulatorError.neverBound)
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
        self.state.subscribe(tokens, to: topic)
    }

    /// Adds a fault behind those still to be played.
    package func addFault(_ fault: Fault) {
        self.state.addFault(fault)
    }

    /// Forgets the faults and lets every request go on that one of them holds back.
    package func deleteFaults() {
        self.state.deleteFaults()
    }

    /// Forgets journal, deliveries, subscriptions and faults.
    package func reset() {
        self.state.reset()
    }

    private var responder: EmulatorResponder {
        EmulatorResponder(
            state: self.state,
            legacy: LegacyEndpoint(serverKeys: self.configuration.serverKeys),
            maxBodyBytes: self.configuration.maxBodyBytes,
            clock: self.clock
        )
    }
}
