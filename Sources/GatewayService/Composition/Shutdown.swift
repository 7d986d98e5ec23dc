import Foundation
import GatewayCore
import Logging
package import ServiceLifecycle
import Synchronization
import UnixSignals

/// Stops the gateway at SIGTERM and SIGINT. Ends the process if the gateway does not serve yet, and drains it
/// otherwise.
///
/// A container's first process gets no signal that it does not trap. A stop during the start would be lost, and the
/// container would be killed later, in the middle of its work. Before the gateway serves, there is nothing to drain.
/// The process may just end, because it has accepted nothing. The store applies each step of an upgrade completely or
/// not at all.
package final class StopSignals: Sendable {
    /// The time for the process to end if it is stopped before it serves.
    private static let limit = Duration.seconds(2)

    private let group = Mutex<ServiceGroup?>(nil)
    private let leave = Mutex<(@Sendable () async -> Void)?>(nil)
    private let firstSignal = Mutex<(name: String, time: Uptime)?>(nil)
    private let signals: UnixSignalsSequence
    private let logger: Logger

    init(logger: Logger) async {
        self.logger = logger
        self.signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    }

    /// The signal that stops the gateway, and its time.
    var first: (name: String, time: Uptime)? { self.firstSignal.withLock { $0 } }

    /// Runs a body. A signal before ``arm(_:)`` ends the process. A later signal shuts the group down.
    func watching<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        let watch = Task {
            for await signal in self.signals {
                guard let group = self.group.withLock({ $0 }) else {
                    self.logger.notice("Stopped before the start was complete.", metadata: ["signal": "\(signal)"])
                    await withDiscardingTaskGroup { group in
                        group.addTask {
                            await self.leave.withLock { $0 }?()
                            self.end()
                        }
                        // The start may be waiting for the store.
                        group.addTask {
                            try? await Task.sleep(for: Self.limit)
                            self.end()
                        }
                    }
                    return
                }
                let isFirst = self.firstSignal.withLock { first in
                    defer { first = first ?? ("\(signal)", .now) }
                    return first == nil
                }
                self.logger.info(isFirst ? "Stopping." : "Stopping at once.", metadata: ["signal": "\(signal)"])
                await group.triggerGracefulShutdown()
            }
        }
        defer { watch.cancel() }
        return try await body()
    }

    private func end() {
        self.logger.flush()
        exit(EXIT_SUCCESS)
    }

    /// Sets the work to be done before a stop ends the process.
    func beforeEnd(_ leave: @escaping @Sendable () async -> Void) { self.leave.withLock { $0 = leave } }

    /// Makes later signals stop a group. The group need not run yet.
    func arm(_ group: ServiceGroup) { self.group.withLock { $0 = group } }
}

/// True once a second SIGTERM or SIGINT has asked a draining gateway to end at once.
final class ForcedShutdown: Sendable {
    private struct State {
        var isRequested = false
        var listeners: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())

    func request() {
        let listeners = self.state.withLock { state in
            state.isRequested = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners {
            listener.yield()
            listener.finish()
        }
    }

    /// Waits for the request. Returns false if the task is cancelled first.
    func isRequested() async -> Bool {
        let (stream, listener) = AsyncStream.makeStream(of: Void.self)
        let isRequested = self.state.withLock { state in
            if !state.isRequested { state.listeners.append(listener) }
            return state.isRequested
        }
        if isRequested { return true }
        for await _ in stream { return true }
        return false
    }
}

/// Waits for the second signal.
struct ForcedShutdownService: Service {
    let forced: ForcedShutdown

    func run() async throws {
        var count = 0
        for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint).cancelOnGracefulShutdown() {
            count += 1
            if count == 2 { self.forced.request() }
        }
    }
}

/// A service with its name in the log.
///
/// Without one the log would describe a service by its stored properties, all the way down.
package struct NamedService: Service, CustomStringConvertible {
    package let description: String
    private let body: @Sendable () async throws -> Void

    package init(_ name: String, _ service: any Service) {
        self.description = name
        self.body = service.run
    }

    /// Creates a service that does nothing until shutdown, then closes something that later services needed.
    init(_ name: String, closing close: @escaping @Sendable () async throws -> Void) {
        self.description = name
        self.body = {
            try? await gracefulShutdown()
            try await close()
        }
    }

    package func run() async throws { try await self.body() }
}

/// Runs a service, cancels it if it does not end in time, and rethrows its error.
struct BoundedService: Service {
    /// The time that several services share. It begins when the first of these services is asked to end.
    final class Time: Sendable {
        private let limit: Duration
        private let deadline = Mutex<Uptime?>(nil)

        init(limit: Duration) { self.limit = limit }

        fileprivate func pass() async throws {
            let deadline = self.deadline.withLock { deadline in
                let end = deadline ?? .now + self.limit
                deadline = end
                return end
            }
            try await Task.sleep(until: deadline)
        }
    }

    let service: any Service
    let time: Time

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.service.run() }
            group.addTask {
                // Throws if the service has ended by itself.
                guard (try? await gracefulShutdown()) != nil else { return }
                try? await self.time.pass()
            }
            // The first task to end decides.
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
    }
}
