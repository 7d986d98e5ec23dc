import AsyncHTTPClient
import EventLoopHTTP
import Foundation
import GatewayService
import NIOCore
import NIOHTTP1
import NIOSSL

/// Asks an admin listener how its gateway is.
struct HealthProbe: Sendable, Equatable {
    /// How long one question may take; shorter than the intervals at which service managers ask.
    var timeout = TimeAmount.seconds(4)

    /// The listener's address.
    let url: BaseURL

    /// Whether the listener has to prove that it owns the name in the address.
    let verifiesCertificate: Bool

    /// Asks at an address that somebody named.
    init(url: BaseURL) {
        self.url = url
        self.verifiesCertificate = true
    }

    /// Asks the gateway of this machine that a configuration describes.
    ///
    /// Its certificate is not verified: it names the host as others see it, and nothing secret is sent or learnt.
    ///
    /// - Parameter listener: The admin listener's configuration.
    /// - Throws: `CommandFailure` when nobody can know its port, or when it wants a client's certificate.
    init(_ listener: GatewayConfiguration.AdminListener) throws(CommandFailure) {
        guard listener.server.port != 0 else {
            throw CommandFailure("admin.port is 0, so only the gateway itself knows its port; give --admin-url")
        }
        guard listener.tls.clientCAFile == nil else {
            throw CommandFailure("admin.tls.clientCaFile asks for client certificates, and this verb has none")
        }
        let address = BaseURL.address(
            ofListener: listener.server.host,
            port: listener.server.port,
            isEncrypted: !listener.tls.isPlain
        )
        guard let url = BaseURL(address) else {
            throw CommandFailure("admin.host makes no address: \(address)")
        }
        self.url = url
        self.verifiesCertificate = false
    }

    /// Runs a body with an HTTP client that is shut down afterwards, whatever happens.
    func withClient(_ body: (HTTPClient) async throws -> Void) async throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        if !self.verifiesCertificate {
            tls.certificateVerification = .none
        }
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls, redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            try await body(client)
            try await client.shutdown()
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    /// Asks once.
    ///
    /// - Parameters:
    ///   - path: `readyz` or `livez`.
    ///   - http: Makes the call.
    /// - Throws: `CommandFailure` for every answer but 200, and when there is none.
    func ask(_ path: String, http: HTTPClient) async throws {
        var request = HTTPClientRequest(url: self.url.appending([path], query: []))
        // Each question stands for itself: a kept connection would hold up a listener that closes.
        request.headers.add(name: "Connection", value: "close")
        request.headers.add(name: "User-Agent", value: "fcm-gateway/\(GatewayVersion.current)")
        let status: UInt
        do {
            status = try await http.execute(request, timeout: self.timeout).status.code
        } catch {
            throw CommandFailure("no answer from \(self.url): \(APIClient.reason(error))")
        }
        guard status == 200 else {
            let meaning = status == 503 ? ", it starts, drains or can't record what it does" : ""
            throw CommandFailure("\(self.url)/\(path) answered HTTP \(status)\(meaning)")
        }
    }
}
