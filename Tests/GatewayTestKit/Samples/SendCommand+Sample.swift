package import FCMModel
package import GatewayCore

extension SendCommand {
    /// A message of 42 payload bytes to a target, without a near deadline.
    package static func sample(
        from principal: Principal,
        to target: Target,
        message: Message = Message(),
        payloadBytes: Int = 42
    ) -> SendCommand {
        SendCommand(
            by: Caller(principal: principal, origin: .sample, deadline: .now.advanced(by: .seconds(3_600))),
            to: target,
            message: message,
            payloadBytes: payloadBytes
        )
    }
}

extension RequestOrigin {
    /// A POST with a request id and a trace.
    package static let sample = RequestOrigin(method: "POST", requestID: "request-1", trace: .sample)
    /// A POST with a request id that belongs to no trace.
    package static let untraced = RequestOrigin(method: "POST", requestID: "request-1")
}
