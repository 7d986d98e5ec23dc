import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Serves a listener's description: its addresses, its OpenAPI document, its problem codes. Callers need no credential.
struct DescriptionRoutes {
    let description: EmbeddedFile
    let guide: ListenerGuide

    var endpoints: [any Endpoint] {
        [
            // The server omits the body of an answer to HEAD.
            Handler(open: Route(.get, "/openapi.yaml"), self.show),
            Handler(open: Route(.head, "/openapi.yaml"), self.show),
            Handler(open: Route(.get, "/"), self.showGuide),
            Handler(open: Route(.get, "/problems/{code}"), self.explainProblem),
        ]
    }

    @Sendable
    private func showGuide(_ exchange: Exchange) -> HTTPServerResponse {
        Self.page(self.guide.text)
    }

    /// The page that a problem's `type` points to.
    @Sendable
    private func explainProblem(_ exchange: Exchange) throws -> HTTPServerResponse {
        guard let code = OutcomeCode(rawValue: exchange.parameters.text("code")) else {
            throw Refusal(.notFound, "There is no such code")
        }
        let action = code.action.map { "action: \($0.rawValue)\n" } ?? ""
        return Self.page(
            """
            \(code.rawValue): \(code.title).
            \(code.explanation).

            status: \(code.status)
            retryable: \(code.isRetryable)
            \(action)
            """
        )
    }

    private static func page(_ text: String) -> HTTPServerResponse {
        HTTPServerResponse(
            status: .ok,
            headers: [.contentType: "text/plain; charset=utf-8"],
            body: ByteBuffer(string: text)
        )
    }

    @Sendable
    private func show(_ exchange: Exchange) -> HTTPServerResponse { self.description.response(to: exchange) }
}

/// The text of `GET /` on a listener, and of its refusals of unknown paths.
struct ListenerGuide: Sendable {
    static let data = ListenerGuide(
        text: """
            This is the data listener of an fcm-gateway. Requests carry an API key.

            /v1/tenants/{tenant}/…              the REST API
            /fcm/…, /iid/…, /v1/projects/…      the protocols of FCM and its SDKs
            /openapi.yaml                       the description of all of these
            /problems/{code}                    the meaning of a problem's code

            The admin listener has /admin/v1/…, /console, /docs, /metrics, /livez and /readyz.

            """,
        others: ["admin", "console", "docs", "metrics", "livez", "readyz"],
        refusal: "This is the data listener; the admin listener (admin.port) has this path"
    )
    static let admin = ListenerGuide(
        text: """
            This is the admin listener of an fcm-gateway.

            /admin/v1/…                         the admin API; requests carry the admin token
            /console, /docs                     pages for operators, and the manual
            /metrics, /livez, /readyz           for Prometheus and probes
            /openapi.yaml                       the description of all of these
            /problems/{code}                    the meaning of a problem's code

            The data listener has /v1/…, /fcm/… and /iid/….

            """,
        others: ["v1", "fcm", "iid"],
        refusal: "This is the admin listener; the data listener (http.port) has this path"
    )

    let text: String
    /// The first segments of the paths that only the other listener serves.
    private let others: [String]
    private let refusal: String

    private init(text: String, others: [String], refusal: String) {
        (self.text, self.others, self.refusal) = (text, others, refusal)
    }

    /// The refusal of a path that this listener does not serve.
    func refusal(of path: [UInt8]) -> Refusal {
        let segment = path.drop { $0 == UInt8(ascii: "/") }
            .prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        let isOthers = self.others.contains { $0.utf8.elementsEqual(segment) }
        return Refusal(.notFound, isOthers ? self.refusal : "There is no such route; GET / lists the routes")
    }
}
