import Foundation
import Logging
import ServiceLifecycle

@testable import FCMEmulator

/// Runs an emulator on a free port while the closure runs.
func withEmulator<Result: Sendable>(
    _ configuration: EmulatorConfiguration = EmulatorConfiguration(port: 0),
    clock: any Clock<Duration> = ContinuousClock(),
    time: ManualTime? = nil,
    _ body: (FCMEmulator, RawClient) async throws -> Result
) async throws -> Result {
    let logger = Logger(label: "emulator") { _ in SwiftLogNoOpLogHandler() }
    let emulator = FCMEmulator(configuration: configuration, logger: logger, clock: clock) { time?.now ?? Date() }
    let services = ServiceGroup(configuration: ServiceGroupConfiguration(services: [emulator], logger: logger))
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await services.run() }
        let client = RawClient(port: try await emulator.boundPort(), certificate: configuration.certificate)
        let result = try await body(emulator, client)
        await services.triggerGracefulShutdown()
        try await group.waitForAll()
        return result
    }
}

/// Runs an emulator with a manual time and the account of ``TestAccount``, and requests an access token.
func withSender<Result: Sendable>(
    settings: EmulatorSettings = EmulatorSettings(),
    certificate: EmulatorCertificate? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    time: ManualTime = ManualTime(),
    _ body: (FCMEmulator, RawClient, String) async throws -> Result
) async throws -> Result {
    var configuration = EmulatorConfiguration(port: 0, certificate: certificate)
    configuration.serviceAccounts = [try TestAccount.file()]
    configuration.settings = settings
    return try await withEmulator(configuration, clock: clock, time: time) { emulator, client in
        // The latency applies to the test's own requests only.
        emulator.updateSettings { $0.latency = .zero }
        let reply = try await client.token(form: TestAccount.form(try await TestAccount.assertion()))
        emulator.updateSettings { $0.latency = settings.latency }
        let token = try reply.json()["access_token"] as? String ?? ""
        return try await body(emulator, client, token)
    }
}
