import HTTPTypes
import Hummingbird
import NIOCore

/// Shows the metrics.
struct MetricsController {
    let exposition: MetricsExposition

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("metrics") { _, _ in
            Response(
                status: .ok,
                headers: [.contentType: self.exposition.contentType],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: self.exposition.render()))
            )
        }
        return routes
    }
}

/// Renders all metrics.
package struct MetricsExposition: Sendable {
    /// The text's media type.
    package let contentType: String
    /// Renders the present values.
    package let render: @Sendable () -> [UInt8]

    /// An exposition.
    package init(contentType: String, render: @escaping @Sendable () -> [UInt8]) {
        self.contentType = contentType
        self.render = render
    }
}
