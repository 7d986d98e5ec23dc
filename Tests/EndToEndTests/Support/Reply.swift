import AsyncHTTPClient
import Foundation
import GatewayTestKit
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOSSL

/// A whole HTTP answer.
struct Reply: Sendable {
    let status: Int
    /// The header's fields, names in lower case.
    let headers: [String: String]
    let body: Data

    /// Doesn't retry, because tests check if something listens.
    private static let client: HTTPClient = {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        // Fake FCMs have self-signed certificates; tests of the gateway's client cover verification.
        configuration.tlsConfiguration = .clientDefault
        configuration.tlsConfiguration?.certificateVerification = .none
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    /// Calls a URL and reads the answer.
    static func to(
        _ method: String,
        _ url: String,
        headers: [String: String] = [:],
        body: String? = nil,
        by client: HTTPClient? = nil
    ) async throws -> Reply {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(string: body)) }
        let response = try await (client ?? self.client).execute(request, timeout: .minutes(10))
        return Reply(
            status: Int(response.status.code),
            headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first },
            body: Data(buffer: try await response.body.collect(upTo: 64 << 20))
        )
    }

    var text: String { String(decoding: self.body, as: UTF8.self) }

    /// The body as JSON; `null` if it isn't JSON.
    var json: JSON { (try? JSON(parsing: self.body)) ?? .null }

    /// The `code` of a problem.
    var code: String? { self.json["code"]?.text }
}

/// A client with its own connection, with or without a certificate.
struct CertifiedClient {
    /// Runs a body with a client that trusts any server.
    static func with<Result>(
        _ identity: TestIdentity?,
        _ body: (HTTPClient) async throws -> Result
    ) async throws -> Result {
        var tls = TLSConfiguration.clientDefault
        tls.certificateVerification = .none
        if let identity {
            tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(identity.certificate.utf8))
                .map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(identity.privateKey.utf8), format: .pem))
        }
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.httpVersion = .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            let result = try await body(client)
            try await client.shutdown()
            return result
        } catch {
            try? await client.shutdown()
            throw error
        }
    }
}
