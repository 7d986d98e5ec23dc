import ArgumentParser
import EventLoopHTTP
import FCMModel
import Foundation
import GatewayService
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import StrictJSON

/// A listener's address: scheme, host, port, and an optional path before the API's own paths. It has no user, query or
/// fragment.
struct BaseURL: Sendable, Equatable {
    let origin: HTTPOrigin
    /// The path before the API's own paths: empty, or starts with a slash.
    private let prefix: String
    /// The address without a trailing slash.
    let text: String

    init?(_ text: String) {
        let text = text.hasSuffix("/") ? String(text.dropLast()) : text
        let start = text.range(of: "://")?.upperBound ?? text.startIndex
        let end = text[start...].firstIndex(of: "/") ?? text.endIndex
        let isPath = { (byte: UInt8) in
            (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
        }
        guard let origin = HTTPOrigin(String(text[..<end])), text[end...].utf8.allSatisfy(isPath) else { return nil }
        self.origin = origin
        self.prefix = String(text[end...])
        self.text = text
    }

    /// Returns the address in a variable, or the default if the variable is not set. Throws `ValidationError` for an
    /// invalid address.
    static func inVariable(_ name: String, default text: String, _ environment: [String: String]) throws -> BaseURL {
        guard let url = BaseURL(environment[name] ?? text) else {
            throw ValidationError("\(name) is not an address such as \(text).")
        }
        return url
    }

    func path(_ segments: [String], query: [(name: String, value: String)] = []) -> String {
        let path = self.prefix + segments.map { "/" + PercentEncoding.encoded($0) }.joined()
        let parameters = query.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }
        return (path.isEmpty ? "/" : path) + (parameters.isEmpty ? "" : "?\(parameters.joined(separator: "&"))")
    }
}

extension BaseURL: ExpressibleByArgument, CustomStringConvertible {
    init?(argument: String) { self.init(argument) }

    var description: String { self.text }
}

/// Calls one of the gateway's listeners, by HTTP/1.1 with a bearer token.
///
/// Follows no redirects, because a redirect would send the token to an address that the operator did not name. Tries to
/// connect only once, so that a gateway that is not running is reported immediately.
struct APIClient: Sendable {
    enum Method: String, Sendable {
        case get = "GET"
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"
        case delete = "DELETE"

        fileprivate var http: HTTPRequest.Method {
            switch self {
            case .get: .get
            case .put: .put
            case .post: .post
            case .patch: .patch
            case .delete: .delete
            }
        }
    }

    /// Texts that name the options and variables of a listener's address and token, for the message of a failed call.
    struct Directions: Sendable {
        let address: String
        let token: String

        static func admin(tokenFile file: String?) -> Directions {
            Directions(
                address: "Is the gateway running? Its admin listener's address is set by --admin-url or "
                    + "GATEWAY_ADMIN_URL.",
                token: "The admin token from \(file ?? "the environment") is not this gateway's; it is set by "
                    + "--admin-token-file, GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE."
            )
        }

        static func data(keyFile file: String?) -> Directions {
            Directions(
                address: "Is the gateway running? Its data listener's address is set by --url or GATEWAY_URL.",
                token: "The API key from \(file ?? "the environment") is not valid here; it is set by --key-file, "
                    + "GATEWAY_KEY or GATEWAY_KEY_FILE."
            )
        }
    }

    static let maxAnswerBytes = 64 << 20

    private static let requestID = HTTPFieldKey(HTTPField.Name(constant: "X-Request-ID"))

    let url: BaseURL
    private let pool: HTTPClientPool
    private let token: Redacted<String>?
    private let directions: Directions?

    /// Runs a body with a client, and always closes its connections afterwards.
    static func with<Result>(
        _ url: BaseURL,
        token: Redacted<String>? = nil,
        directions: Directions? = nil,
        tls: TLSConfiguration = .makeClientConfiguration(),
        _ body: (APIClient) async throws -> Result
    ) async throws -> Result {
        var configuration = HTTPClientConfiguration(tls: tls)
        configuration.protocols = [.http1]
        configuration.connectTimeout = .seconds(5)
        configuration.maxResponseBodyBytes = self.maxAnswerBytes
        // One origin may use half of this budget.
        configuration.collecting = HTTPBodyBudget(limit: 4 * self.maxAnswerBytes)
        let pool = try HTTPClientPool(
            origin: url.origin,
            configuration: configuration,
            // A single loop, so that consecutive calls share a connection.
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "fcm-gateway") { _ in SwiftLogNoOpLogHandler() }
        )
        do {
            let result = try await body(APIClient(url: url, pool: pool, token: token, directions: directions))
            await pool.shutdown()
            return result
        } catch {
            await pool.shutdown()
            throw error
        }
    }

    /// Makes one call and returns the answer's JSON, or `nil` if the answer has no content.
    ///
    /// The body is JSON text, sent unchanged. Throws `APIError` for a status outside 200–299, and `CommandFailure` if
    /// there is no readable answer.
    func call(
        _ method: Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        headers further: HTTPHeaderLines = [:],
        body: ByteBuffer? = nil
    ) async throws -> JSONValue? {
        try await self.taggedCall(method, path, query: query, headers: further, body: body).json
    }

    /// Makes one call like ``call(_:_:query:headers:body:)``. Also returns the answer's `ETag`.
    func taggedCall(
        _ method: Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        headers further: HTTPHeaderLines = [:],
        body: ByteBuffer? = nil
    ) async throws -> (json: JSONValue?, tag: String?) {
        var headers = further
        headers.append(HTTPFieldKey(.accept), "application/json, application/problem+json")
        let response = try await self.send(method, path, query: query, headers: headers, body: body)
        let answer = try? JSONDocument(parsing: response.body, limits: .trusted).root
        guard (200...299).contains(response.status.code) else {
            throw APIError(
                status: response.status.code,
                requestID: response.fields[Self.requestID],
                problem: answer,
                hint: response.status == .unauthorized ? self.directions?.token : nil
            )
        }
        guard answer != nil || response.body.readableBytes == 0 else {
            throw CommandFailure("\(self.url) answered HTTP \(response.status.code) with something other than JSON")
        }
        return (answer, response.fields[HTTPFieldKey(.eTag)])
    }

    func send(
        _ method: Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        headers: HTTPHeaderLines = [:],
        body: ByteBuffer? = nil,
        timeout: TimeAmount = .seconds(60)
    ) async throws(CommandFailure) -> HTTPClientResponse {
        var headers = headers
        headers.append(HTTPFieldKey(.userAgent), "fcm-gateway/\(GatewayVersion.current)")
        if let token = self.token { headers.append(HTTPFieldKey(.authorization), "Bearer \(token.revealed)") }
        if body != nil { headers.append(HTTPFieldKey(.contentType), "application/json") }
        var request = HTTPClientRequest(
            method: method.http,
            path: self.url.path(path, query: query),
            headers: headers,
            body: body ?? ByteBuffer()
        )
        request.maxResponseBodyBytes = Self.maxAnswerBytes
        do {
            return try await self.pool.execute(request, deadline: .now() + timeout)
        } catch {
            let reason = TransportFault(error)
            let hint = reason.isOfTLS ? nil : self.directions.map { "\n\($0.address)" }
            throw CommandFailure("no answer from \(self.url): \(reason)\(hint ?? "")")
        }
    }
}

extension APIClient {
    /// The reason that a call got no answer, in words for people.
    struct TransportFault: CustomStringConvertible {
        let description: String
        /// True if the TLS handshake failed, which means that the listener runs.
        let isOfTLS: Bool

        /// Parts of the library's texts of TLS errors, with their meanings.
        private static let meanings = [
            (
                "CERTIFICATE_VERIFY_FAILED",
                """
                its certificate is expired, or not signed by an authority that is trusted here: name the authority with \
                --ca-file or GATEWAY_CA_FILE
                """
            ),
            ("failedToValidateHostname", "its certificate does not name the host of the address"),
            ("CERTIFICATE_REQUIRED", Self.needsCertificate),
            ("HANDSHAKE_FAILURE", Self.needsCertificate),
            ("UNKNOWN_CA", "it does not accept the client certificate: it trusts other authorities"),
            ("CERTIFICATE_EXPIRED", "it does not accept the client certificate, which is expired"),
            ("BAD_CERTIFICATE", "it does not accept the client certificate"),
            ("WRONG_VERSION_NUMBER", "it speaks HTTP without TLS there: try http://"),
        ]
        private static let needsCertificate = """
            it asks for a client certificate: give --client-certificate and --client-key, or set \
            GATEWAY_CLIENT_CERTIFICATE_FILE and GATEWAY_CLIENT_KEY_FILE
            """

        init(_ error: HTTPClientError) {
            let connecting = error.cause as? NIOConnectionError
            let cause = connecting?.connectionErrors.first?.error ?? error.cause
            let text = cause.map { "\($0)" } ?? ""
            let meaning = Self.meanings.first { text.contains($0.0) }?.1
            self.isOfTLS = meaning != nil || error.code == .tlsFailed
            self.description = meaning ?? Self.reason(error.code, cause)
        }

        private static func reason(_ code: HTTPClientError.Code, _ cause: (any Error)?) -> String {
            if let system = cause as? IOError {
                switch system.errnoCode {
                case ECONNREFUSED: return "the connection was refused"
                case ECONNRESET, EPIPE: return "the connection was closed"
                case ENETUNREACH, EHOSTUNREACH: return "the host can't be reached"
                default: break
                }
            }
            return switch code {
            case .connectFailed: "no connection could be made; is the host's name right?"
            case .connectTimeout: "no connection could be made in time"
            case .tlsFailed: "no TLS connection could be made: does the listener speak TLS?"
            case .deadlineExceeded: "it took too long"
            case .connectionClosed: "the connection was closed: does the listener want https://?"
            case .responseTooLarge: "the answer is larger than \(APIClient.maxAnswerBytes) bytes"
            case .invalidResponse, .refused, .poolExhausted, .cancelled, .shutDown, .proxyFailed, .proxyUnauthorized:
                code.rawValue
            }
        }
    }
}

/// An answer that reports a failure, with problem details if the gateway sent them.
struct APIError: Error, Sendable {
    let status: Int
    let requestID: String?
    /// The problem details; `nil` if another server answered.
    let problem: JSONValue?
    /// Advice for the operator; `nil` if the gateway's own words are enough.
    var hint: String?

    var code: String? { self.problem?.text("code") }

    /// True if the gateway's answer says that nothing was done.
    private var meansUndone: Bool {
        guard let code = self.code else { return false }
        return (400...499).contains(self.status) || code == OutcomeCode.auditUnavailable.rawValue
    }

    /// Returns a failure with advice in case the work was done nevertheless.
    static func doubting(_ error: any Error, _ advice: String) -> any Error {
        switch error {
        case var refusal as APIError:
            guard !refusal.meansUndone else { return refusal }
            refusal.hint = [refusal.hint, advice].compactMap(\.self).joined(separator: "\n")
            return refusal
        case let failure as CommandFailure: return CommandFailure("\(failure.message)\n\(advice)")
        default: return error
        }
    }
}

extension APIError: LocalizedError, CustomStringConvertible {
    /// The code, the detail, each field's error, and the request's id.
    var description: String {
        var lines: [String] = []
        if let problem = self.problem, let code = problem.text("code") {
            let detail = problem.text("detail") ?? problem.text("title") ?? "no detail"
            lines.append("\(code.printable): \(detail.printable) (HTTP \(self.status))")
            if let offset = problem.integer("offset") {
                let place = problem.text("pointer").map { ", in \($0.printable)" } ?? ""
                lines.append("  at byte \(offset) of the body\(place)")
            }
            for error in problem.list("errors") {
                let text = error.text("detail")?.printable ?? error.cell
                // Without a pointer, the error is about the whole body.
                if let pointer = error.text("pointer"), !pointer.isEmpty {
                    lines.append("  \(pointer.printable): \(text)")
                } else if text != detail.printable {
                    lines.append("  \(text)")
                }
            }
            if let seconds = problem.integer("retry_after") { lines.append("retry after: \(seconds) s") }
        } else {
            lines.append("HTTP \(self.status) without problem details; is this the gateway's address?")
        }
        if let hint = self.hint { lines.append(hint) }
        if let requestID = self.requestID { lines.append("request id: \(requestID.printable)") }
        return lines.joined(separator: "\n")
    }

    var errorDescription: String? { self.description }
}

/// A client of the admin API.
struct AdminClient: Sendable {
    static let maxPageElements = 500

    private let api: APIClient

    init(_ api: APIClient) {
        self.api = api
    }

    /// Makes one call below `/admin/v1`; returns `nil` if the answer has no content.
    func call(
        _ method: APIClient.Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        ifMatch tag: String? = nil,
        body: ByteBuffer? = nil
    ) async throws -> JSONValue? {
        let headers: HTTPHeaderLines = tag.map { [.ifMatch: $0] } ?? [:]
        return try await self.api.call(method, ["admin", "v1"] + path, query: query, headers: headers, body: body)
    }

    /// Reads an object with its `ETag`; `nil` if the object does not exist.
    func find(_ path: [String]) async throws -> (json: JSONValue, tag: String?)? {
        do {
            let (json, tag) = try await self.api.taggedCall(.get, ["admin", "v1"] + path)
            return json.map { ($0, tag) }
        } catch let refusal as APIError where refusal.status == 404 {
            return nil
        }
    }

    func get(_ path: [String]) async throws -> JSONValue {
        let answer = try await self.call(.get, path)
        guard let answer else { throw CommandFailure("the gateway's answer is empty") }
        return answer
    }

    /// Reads the list in a member of the answers, page by page, to the end or up to a number of elements.
    func list(
        _ path: [String],
        member: String,
        query: [(name: String, value: String)] = [],
        limit: Int? = nil
    ) async throws -> [JSONValue] {
        var elements: [JSONValue] = []
        try await self.forEachPage(path, member: member, query: query, limit: limit) { elements += $0 }
        return elements
    }

    /// Calls a body with each page of a list, to the end or up to a number of elements. Returns true if more elements
    /// follow.
    @discardableResult
    func forEachPage(
        _ path: [String],
        member: String,
        query: [(name: String, value: String)] = [],
        limit: Int? = nil,
        _ body: ([JSONValue]) throws -> Void
    ) async throws -> Bool {
        var wanted = limit ?? .max
        var cursor: String?
        while true {
            let page = try await self.page(
                path,
                member: member,
                query: query,
                limit: min(wanted, Self.maxPageElements),
                cursor: cursor
            )
            try body(Array(page.elements.prefix(wanted)))
            guard let next = page.nextCursor else { return page.elements.count > wanted }
            wanted -= page.elements.count
            guard wanted > 0 else { return true }
            guard next != cursor else { throw CommandFailure("the gateway repeated a page's cursor") }
            cursor = next
        }
    }

    func page(
        _ path: [String],
        member: String,
        query: [(name: String, value: String)],
        limit: Int,
        cursor: String?
    ) async throws -> (elements: [JSONValue], nextCursor: String?) {
        let place = [(name: "limit", value: String(limit))] + (cursor.map { [(name: "cursor", value: $0)] } ?? [])
        guard let answer = try await self.call(.get, path, query: query + place),
            let elements = answer[member]?.elements
        else { throw CommandFailure("the gateway's answer has no list \"\(member)\"") }
        return (Array(elements), answer.text("next_cursor"))
    }
}
