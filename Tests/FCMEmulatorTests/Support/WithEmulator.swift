import FCMEmulator
import Logging
import ServiceLifecycle

/// Runs an emulator on a port of its own for as long as the closure takes.
func withEmulator<Result: Sendable>(
    _ configuration: EmulatorConfiguration = EmulatorConfiguration(port: 0),
    clock: any Clock<Duration> = ContinuousClock(),
    _ body: (FCMEmulator, RawClient) async throws -> Result
) async throws -> Result {
    let logger = Logger(label: "emulator") { _ in SwiftLogNoOpLogHandler() }
    let emulator = FCMEmulator(configuration: configuration, logger: logger, clock: clock)
    let services = ServiceGroup(configuration: ServiceGroupConfiguration(services: [emulator], logger: logger))
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await services.run() }
        let result = try await body(emulator, RawClient(port: try await emulator.boundPort()))
        await services.triggerGracefulShutdown()
        try await group.waitForAll()
        return result
    }
}
