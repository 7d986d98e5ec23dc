package import GatewayCore

extension Caller {
    /// A caller of a sample tenant who waits a minute.
    ///
    /// - Throws: ``SampleError`` for a malformed tenant name.
    package static func sample(_ principal: Principal? = nil, timeLeft: Duration = .seconds(60)) throws -> Caller {
        Caller(
            principal: try principal ?? .sample(),
            origin: RequestOrigin(method: "PUT", requestID: "request-1"),
            deadline: .now + timeLeft
        )
    }
}
