import EventLoopHTTP
import GatewayCore
import HTTPTypes

/// The header fields of requests to FCM and of its answers.
extension HTTPFieldKey {
    static let authorization = HTTPFieldKey(.authorization)
    static let contentType = HTTPFieldKey(.contentType)
    static let retryAfter = HTTPFieldKey(.retryAfter)
    /// Tells the Instance ID API and `/fcm/notification` that the bearer token is an access token.
    static let accessTokenAuth = HTTPFieldKey(HTTPField.Name(constant: "access_token_auth"))
    /// The sender whose device groups a request manages.
    static let projectID = HTTPFieldKey(HTTPField.Name(constant: "project_id"))
    fileprivate static let traceParent = HTTPFieldKey(HTTPField.Name(constant: "traceparent"))
    fileprivate static let traceState = HTTPFieldKey(HTTPField.Name(constant: "tracestate"))
}

extension HTTPClientRequest {
    /// The same request with the fields of its span.
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
