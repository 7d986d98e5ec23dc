package import GatewayCore

extension TenantID {
    /// The id of a name that is known to be well formed.
    ///
    /// - Throws: ``SampleError`` when it is not.
    package static func sample(_ name: String = "acme") throws -> TenantID {
        guard let id = TenantID(name) else { throw SampleError(what: "tenant \(name)") }
        return id
    }
}
