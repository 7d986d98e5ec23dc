import GatewayCore

/// What routes and the middleware before them leave for those around them, which have copies of the request's context.
struct RequestNotes: Sendable {
    /// Whether the request was not taken on; set by ``LoadMiddleware``.
    var isShed = false
    /// Whether the answer is what the caller asks for, also where its status is a failure's; set by probes.
    var isExpected = false
    /// Who calls; set by ``AuthenticationMiddleware``.
    var principal: Principal?
    /// The code of a refusal; set by whoever renders it.
    var code: String?
}
