import EventLoopHTTP
import GatewayCore
import HTTPTypes

extension HTTPClientRequest {
    /// The same request with what a span has it carry.
    func carrying(_ span: UpstreamSpan) -> HTTPClientRequest {
        var request = self
        for field in span.fields {
            switch field.name {
            case .parent: request.headers.append(.traceParent, field.value)
            case .state: request.headers.append(.traceState, field.value)
            }
        }
        return request
    }
}

extension HTTPFieldKey {
    /// The names are well-formed.
    fileprivate static let traceParent = HTTPFieldKey(HTTPField.Name(TraceField.Name.parent.rawValue) ?? .userAgent)
    fileprivate static let traceState = HTTPFieldKey(HTTPField.Name(TraceField.Name.state.rawValue) ?? .userAgent)
}
