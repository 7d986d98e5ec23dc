package import GatewayCore

extension Tenant {
    /// A tenant, of a legacy upstream unless told otherwise, made at ``Timestamp/sample``.
    ///
    /// - Throws: ``SampleError`` for a malformed name.
    package static func sample(
        _ name: String = "acme",
        isDisabled: Bool = false,
        upstream: UpstreamKind = .legacy,
        clientNames: [String] = []
    ) throws -> Tenant {
        Tenant(
            id: try .sample(name),
            displayName: "Tenant \(name)",
            upstream: upstream,
            isDisabled: isDisabled,
            clientNames: clientNames.compactMap { ClientName($0) },
            createdAt: .sample,
            updatedAt: .sample
        )
    }
}
