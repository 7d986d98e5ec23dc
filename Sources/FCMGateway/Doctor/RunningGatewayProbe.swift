import AsyncHTTPClient
import Foundation
import GatewayService
import NIOCore
import NIOFoundationCompat
import NIOSSL

/// What a gateway that runs says of itself without being shown a token.
struct RunningGatewayProbe: Sendable {
    private static let timeout = TimeAmount.seconds(3)
    private static let maxAnswerBytes = 4 << 20

    /// Whether it wants traffic.
    var isReady: Bool
    /// Its version; nil where its metrics don't tell.
    var version: String?

    /// Asks an admin listener.
    ///
    /// - Returns: What it says; nil when no gateway answers.
    static func examine(_ url: BaseURL?) async -> RunningGatewayProbe? {
        guard let url else { return nil }
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        // Nothing secret is said and nothing heard is relied on, so it need not be known whose certificate it is.
        configuration.tlsConfiguration = .makeClientConfiguration()
        configuration.tlsConfiguration?.certificateVerification = .none
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let probe = try? await self.examine(url, client)
        try? await client.shutdown()
        return probe ?? nil
    }

    private static func examine(_ url: BaseURL, _ client: HTTPClient) async throws -> RunningGatewayProbe? {
        let health = try await self.get(url.appending(["readyz"], query: []), client)
        guard let status = (try? JSONValue(parsing: health))?["status"]?.text, ["pass", "fail"].contains(status) else {
            return nil
        }
        let metrics = try? await self.get(url.appending(["metrics"], query: []), client)
        let version = metrics.flatMap { data in
            String(decoding: data, as: UTF8.self)
                .firstMatch(of: #/fcmgw_build_info\{[^}]*version="([^"]+)"/#)
                .map { String($0.1) }
        }
        return RunningGatewayProbe(isReady: status == "pass", version: version)
    }

    private static func get(_ url: String, _ client: HTTPClient) async throws -> Data {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: self.timeout)
        return Data(buffer: try await response.body.collect(upTo: self.maxAnswerBytes))
    }

    /// How the gateway is.
    func finding(_ url: BaseURL) -> Finding {
        let version = self.version ?? "of an unknown version"
        guard self.isReady else {
            return .problem(
                .listeners,
                url.text,
                "the gateway (\(version)) runs, and is not ready",
                "It starts, stops, or waits for something: see its log"
            )
        }
        guard self.version == nil || self.version == GatewayVersion.current else {
            return .warning(
                .listeners,
                url.text,
                "the gateway \(version) is ready; this program is \(GatewayVersion.current)",
                "Run doctor of the gateway's own version, or restart the gateway with the new one"
            )
        }
        return .ok(.listeners, url.text, "the gateway (\(version)) is ready")
    }
}
