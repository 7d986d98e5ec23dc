import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// The fixed properties of an endpoint: its address, its callers, its limits and its dialect.
struct Route: Sendable {
    /// How a path has to be spelled to be a template's.
    enum Spelling: Sendable {
        /// Repeated and trailing slashes are forgiven.
        case anySlashes
        /// As the template has it.
        case exact
        /// As the template has it, once escapes are undone; a parameter may be empty, and is refused as such.
        case escaped
    }

    /// The most that a body may have where it lists recipients or carries a message, in bytes.
    static let largeBody = 1024 * 1024
    /// The most that any other body may have, in bytes.
    static let smallBody = 64 * 1024

    let method: HTTPRequest.Method
    /// The path, with `{name}` for a segment that varies: the route's name in metrics, logs and traces.
    let template: String
    /// The form of the credential; `nil` for an endpoint without one.
    var credential: Credential? = .bearer
    /// What is asked for; a tenant's key needs its scope.
    var action: AuditAction?
    var dialect = Dialect.rest
    /// Known before the first byte of the body is read.
    var bodyLimit = Route.smallBody
    /// Whether it is a send: only sends take `Idempotency-Key`.
    var isSend = false
    var spelling = Spelling.anySlashes
    /// True for what balancers and Prometheus ask every few seconds; the access log has it at `debug`.
    var isProbe = false

    init(_ method: HTTPRequest.Method, _ template: String) {
        self.method = method
        self.template = template
    }

    func with<Value>(_ property: WritableKeyPath<Route, Value>, _ value: Value) -> Route {
        var route = self
        route[keyPath: property] = value
        return route
    }
}

/// One thing that can be asked of a listener: reads a request, calls the core, writes the answer.
///
/// Everything around that is ``RequestPipeline``, which is specialised for each endpoint. What is thrown is rendered by
/// the route's ``Dialect``.
protocol Endpoint: Sendable {
    associatedtype Work: Sendable

    var route: Route { get }

    func read(_ exchange: Exchange) throws -> Work
    /// The work's weight among the calls in flight.
    func load(of work: Work) -> RequestLoad
    func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse

    /// Takes a request through the pipeline: a requirement, so that a call by way of a table finds the specialised code.
    func respond(
        to request: HTTPServerRequest,
        _ parameters: PathParameters,
        through pipeline: RequestPipeline
    ) async -> HTTPServerResponse
}

extension Endpoint {
    func load(of work: Work) -> RequestLoad { .call }

    func respond(
        to request: HTTPServerRequest,
        _ parameters: PathParameters,
        through pipeline: RequestPipeline
    ) async -> HTTPServerResponse {
        await pipeline.respond(to: request, parameters, by: self)
    }
}

/// An endpoint whose request is read and answered by one function.
struct Handler: Endpoint {
    let route: Route
    private let handle: @Sendable (Exchange) async throws -> HTTPServerResponse

    init(
        _ method: HTTPRequest.Method,
        _ template: String,
        action: AuditAction? = nil,
        bodyLimit: Int = Route.smallBody,
        _ handle: @escaping @Sendable (Exchange) async throws -> HTTPServerResponse
    ) {
        self.route = Route(method, template).with(\.action, action).with(\.bodyLimit, bodyLimit)
        self.handle = handle
    }

    /// An endpoint that anybody may ask.
    init(open route: Route, _ handle: @escaping @Sendable (Exchange) async throws -> HTTPServerResponse) {
        self.route = route.with(\.credential, nil)
        self.handle = handle
    }

    func read(_ exchange: Exchange) {}

    func perform(_ work: Void, for exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.handle(exchange)
    }
}

/// Thrown by an endpoint that answers a request itself as soon as it is read.
struct Answered: Error {
    let response: HTTPServerResponse

    init(_ response: HTTPServerResponse) {
        self.response = response
    }
}

/// A request on its way through the pipeline, with what is known of it so far.
struct Exchange: Sendable {
    let request: HTTPServerRequest
    let parameters: PathParameters
    let arrival: ContinuousClock.Instant
    let time: Timestamp
    /// The caller's own id where it is sane, else a new one.
    let requestID: String
    let trace: RequestTrace?
    /// The tenant's key that it carries, once that is known.
    var principal: Principal?
    /// When the caller stops waiting.
    var deadline: ContinuousClock.Instant
    /// The key under which a send may be repeated.
    var idempotencyKey: IdempotencyKey?

    var fields: HTTPFieldLines { self.request.head.fields }
    var contentType: String? { self.fields[.contentType] }

    /// Who calls a tenant's endpoint.
    var caller: Caller {
        get throws(Refusal) {
            guard let principal = self.principal else { throw Refusal(.unauthenticated) }
            return Caller(principal: principal, origin: self.origin, deadline: self.deadline)
        }
    }

    var origin: RequestOrigin {
        RequestOrigin(method: self.request.head.method.rawValue, requestID: self.requestID, trace: self.trace)
    }

    /// The tenant that an operator's path names.
    ///
    /// - Throws: `not_found` for a name that no tenant can have.
    var tenantID: TenantID {
        get throws(Refusal) {
            guard let id = self.parameters["tenant"].flatMap({ TenantID(String(decoding: $0, as: UTF8.self)) }) else {
                throw Refusal(
                    .notFound,
                    "A tenant's name is 1 to 63 characters of a-z 0-9 -, and starts with none of -"
                )
            }
            return id
        }
    }

    func members(limits: JSONLimits = JSONLimits()) throws(Refusal) -> JSONMembers {
        try JSONBody.members(of: self.request.body, contentType: self.contentType, limits: limits)
    }

    /// The query's parameters, each of which must be one of these.
    func query(_ allowed: Set<String>) throws(Refusal) -> QueryReader {
        try QueryReader(self.request.head.pathBytes, allowed: allowed)
    }
}

/// A request's weight among the calls in flight.
enum RequestLoad: Sendable {
    case call
    /// A message: a list that goes out by HTTP v1 becomes several calls.
    case message(recipients: Int, calls: Int, isUrgent: Bool)
    /// A change of subscriptions: likewise.
    case subscriptions(devices: Int)
}
