import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// The fixed properties of an endpoint: its address, its callers, its limits and its dialect.
struct Route: Sendable {
    /// The spellings of a path that match a template.
    enum Spelling: Sendable {
        /// Repeated and trailing slashes are ignored.
        case anySlashes
        /// Exactly as in the template.
        case exact
        /// As in the template, after unescaping. A parameter may be empty, and is refused later.
        case escaped
    }

    /// The size limit, in bytes, of a body that lists recipients or carries a message.
    static let largeBody = 1024 * 1024
    /// The size limit, in bytes, of any other body.
    static let smallBody = 64 * 1024

    let method: HTTPRequest.Method
    /// The path, with `{name}` for a variable segment, and `{name...}` for the rest; names the route in metrics, logs and
    /// traces.
    let template: String
    /// The form of the credential; `nil` for an endpoint without one.
    var credential: Credential? = .bearer
    /// The action of the route. A tenant's key needs the scope of this action.
    var action: AuditRecord.Action?
    var dialect = Dialect.rest
    /// The body's size limit; needed before the first byte of the body is read.
    var bodyLimit = Route.smallBody
    /// True if it accepts `Idempotency-Key`, as sends and new batches do.
    var isSend = false
    var spelling = Spelling.anySlashes
    /// True for requests that balancers and Prometheus repeat every few seconds; the access log has them at `debug`.
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

/// One operation of a listener: reads a request, calls the core, writes the answer.
///
/// ``RequestPipeline``, specialised for each endpoint, does everything else. The route's ``Dialect`` renders thrown
/// refusals. Other errors become problem details, or a page of the console.
protocol Endpoint: Sendable {
    associatedtype Work: Sendable

    var route: Route { get }

    func read(_ exchange: Exchange) throws -> Work
    /// The work's weight among the calls in flight.
    func load(of work: Work) -> RequestLoad
    func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse

    /// Passes a request through the pipeline. It is a requirement so that calls through the route table reach the
    /// specialised code.
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

/// An endpoint that reads and answers a request in one function.
struct Handler: Endpoint {
    let route: Route
    private let handle: @Sendable (Exchange) async throws -> HTTPServerResponse

    init(
        _ method: HTTPRequest.Method,
        _ template: String,
        action: AuditRecord.Action? = nil,
        bodyLimit: Int = Route.smallBody,
        acceptsKey: Bool = false,
        _ handle: @escaping @Sendable (Exchange) async throws -> HTTPServerResponse
    ) {
        self.route = Route(method, template).with(\.action, action).with(\.bodyLimit, bodyLimit)
            .with(\.isSend, acceptsKey)
        self.handle = handle
    }

    init(_ route: Route, _ handle: @escaping @Sendable (Exchange) async throws -> HTTPServerResponse) {
        (self.route, self.handle) = (route, handle)
    }

    /// Creates an endpoint that needs no credential.
    init(open route: Route, _ handle: @escaping @Sendable (Exchange) async throws -> HTTPServerResponse) {
        self.init(route.with(\.credential, nil), handle)
    }

    func read(_ exchange: Exchange) {}

    func perform(_ work: Void, for exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.handle(exchange)
    }
}

/// Thrown by an endpoint that answers a request as soon as it is read.
struct Answered: Error {
    let response: HTTPServerResponse

    init(_ response: HTTPServerResponse) {
        self.response = response
    }
}

/// A request on its way through the pipeline, with the facts known so far.
struct Exchange: Sendable {
    let request: HTTPServerRequest
    let parameters: PathParameters
    let arrival: Uptime
    let time: Timestamp
    /// The caller's own id if it is valid, else a new one.
    let requestID: String
    let trace: RequestTrace?
    /// The owner of the request's API key, once known.
    var principal: Principal?
    /// The operator, once known.
    var `operator`: Operator?
    /// The caller stops waiting at this time.
    var deadline: Uptime
    /// The key that makes a send repeatable.
    var idempotencyKey: IdempotencyKey?

    var contentType: String? { self[.contentType] }

    /// The value of a header field.
    subscript(_ field: HTTPFieldKey) -> String? { self.request.head.fields[field] }

    /// The caller of a tenant's endpoint.
    var caller: Caller {
        get throws(Refusal) {
            guard let principal = self.principal else { throw Refusal(.unauthenticated) }
            return Caller(principal: principal, origin: self.origin, deadline: self.deadline)
        }
    }

    var origin: RequestOrigin {
        RequestOrigin(
            method: self.request.head.method.rawValue,
            requestID: self.requestID,
            trace: self.trace,
            operator: self.operator
        )
    }

    /// The tenant that an operator's path names.
    ///
    /// - Throws: `not_found` for a name that no tenant can have.
    var tenantID: TenantID {
        get throws(Refusal) {
            guard let id = self.parameters["tenant"].flatMap({ TenantID(String(decoding: $0, as: UTF8.self)) }) else {
                throw Refusal(
                    .notFound,
                    "A tenant's name is 1 to 63 characters of a-z 0-9 -, and does not start with -"
                )
            }
            return id
        }
    }

    func members(limits: JSONLimits = JSONLimits()) throws(Refusal) -> JSONMembers {
        try JSONBody.members(of: self.request.body, contentType: self.contentType, limits: limits)
    }

    /// Reads the query, whose parameters must all be among these.
    func query(_ allowed: Set<String>) throws(Refusal) -> QueryReader {
        try QueryReader(self.request.head.pathBytes, allowed: allowed)
    }
}

/// A request's weight among the calls in flight.
enum RequestLoad: Sendable {
    case call
    /// A message. By HTTP v1, a list of recipients becomes several calls.
    case message(recipients: Int, calls: Int, isUrgent: Bool)
    /// A change of subscriptions. A list of devices may become several calls.
    case subscriptions(devices: Int)
}
