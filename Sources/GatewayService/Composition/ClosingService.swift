import ServiceLifecycle

/// Does nothing until shutdown, then closes something that the services after it needed.
struct ClosingService: Service, CustomStringConvertible {
    let description: String
    private let close: @Sendable () async throws -> Void

    init(_ name: String, close: @escaping @Sendable () async throws -> Void) {
        self.description = name
        self.close = close
    }

    func run() async throws {
        try? await gracefulShutdown()
        try await self.close()
    }
}
