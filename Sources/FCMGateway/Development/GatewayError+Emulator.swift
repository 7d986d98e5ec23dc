import GatewayCore
import NIOCore

extension GatewayError {
    /// Runs a fake FCM, alone or among others, and says where it could not listen.
    ///
    /// The gateway's own listeners name their addresses themselves.
    ///
    /// - Throws: `conflict` when the system refuses the address, else what the body throws.
    static func namingEmulator(_ host: String, _ port: Int, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as IOError {
            throw GatewayError(.conflict, "Listening on \(host):\(port) is not possible", cause: error)
        }
    }
}
