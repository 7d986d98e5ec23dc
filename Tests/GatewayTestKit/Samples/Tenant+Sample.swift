package import GatewayCore

extension Tenant {
    /// A tenant of a legacy upstream, made at ``Timestamp/sample``.
    ///
    /// - Throws: ``SampleError`` for a malformed name.
    package static func sample(_ name: String = "acme", isDisabled: Bool = false) throws -> Tenant {
        Tenant(
            id: try .sample(name),
            displayName: "Tenant \(name)",
            upstream: .legacy,
            isDisabled: isDisabled,
            createdAt: .sample,
            updatedAt: .sample
        )
    }
}
