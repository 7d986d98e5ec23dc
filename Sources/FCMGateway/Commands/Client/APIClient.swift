import AsyncHTTPClient
import Foundation
import GatewayService
import NIOCore
import NIOFoundationCompat
import NIOHTTP1

/// Calls one of the gateway's listeners with a bearer token.
struct APIClient: Sendable {
    /// The HTTP methods the APIs use.
    enum Method: String, Sendable {
        /// Reads.
        case get = "GET"
        /// Creates or replaces.
        case put = "PUT"
        /// Creates or acts.
        case post = "POST"
        /// Removes.
        case delete = "DELETE"
    }

    /// The largest answer read.
    static let maxAnswerBytes = 64 << 20

    /// How long one call may take.
    static let callTimeout = TimeAmount.seconds(60)

    private let http: HTTPClient
    private let baseURL: BaseURL
    private let token: Redacted<String>
    private let directions: ClientDirections?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - http: Makes the calls.
    ///   - baseURL: The listener's address.
    ///   - token: The bearer token.
    ///   - directions: How to set the two, for failures that come of them.
    init(http: HTTPClient, baseURL: BaseURL, token: Redacted<String>, directions: ClientDirections? = nil) {
        self.http = http
        self.baseURL = baseURL
        self.token = token
        self.directions = directions
    }

    /// Runs a body with an HTTP client that is shut down afterwards, whatever happens.
    static func withHTTPClient<Result>(_ body: (HTTPClient) async throws -> Result) async throws -> Result {
        var configuration = HTTPClient.Configuration(
            // A redirect would carry the token's bearer to an address the operator did not name.
            redirectConfiguration: .disallow,
            timeout: .init(connect: .seconds(5), read: .seconds(60))
        )
        configuration.httpVersion = .http1Only
        // A gateway that is not running is reported at once instead of after five seconds of further attempts.
        configuration.connectionPool.retryConnectionEstablishment = false
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

    /// Makes one call.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - path: The path's segments, not yet encoded.
    ///   - query: The query's parameters, not yet encoded.
    ///   - headers: Further fields.
    ///   - body: JSON text, sent as it is.
    /// - Returns: The answer, `.null` when it has no content.
    /// - Throws: `APIError` for any status outside of 200–299, `CommandFailure` when nothing readable came back.
    func call(
        _ method: Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = [],
        body: Data? = nil
    ) async throws -> JSONValue {
        var request = HTTPClientRequest(url: self.baseURL.appending(path, query: query))
        request.method = HTTPMethod(rawValue: method.rawValue)
        request.headers.add(name: "Authorization", value: "Bearer \(self.token.revealed)")
        request.headers.add(name: "Accept", value: "application/json, application/problem+json")
        request.headers.add(name: "User-Agent", value: "fcm-gateway/\(GatewayVersion.current)")
        for header in headers { request.headers.add(name: header.name, value: header.value) }
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(data: body))
        }
        let response: HTTPClientResponse
        let content: Data
        do {
            response = try await self.http.execute(request, timeout: Self.callTimeout)
            content = Data(buffer: try await response.body.collect(upTo: Self.maxAnswerBytes))
        } catch {
            let hint = self.directions.map { "\n\($0.address)" } ?? ""
            throw CommandFailure("no answer from \(self.baseURL): \(Self.reason(error))\(hint)")
        }
        let answer = try? JSONValue(parsing: content)
        guard (200...299).contains(response.status.code) else {
            throw APIError(
                status: Int(response.status.code),
                requestID: response.headers.first(name: "X-Request-ID"),
                problem: answer,
                hint: response.status == .unauthorized ? self.directions?.token : nil
            )
        }
        if content.isEmpty { return .null }
        guard let answer else {
            throw CommandFailure("\(self.baseURL) answered HTTP \(response.status.code) with something other than JSON")
        }
        return answer
    }

    /// Why no answer came, in a few words.
    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as HTTPClientError: error.shortDescription
        case let error as IOError where error.errnoCode == ECONNREFUSED: "the connection was refused"
        case is NIOTooManyBytesError: "the answer is larger than \(Self.maxAnswerBytes) bytes"
        default: String(describing: error)
        }
    }
}
