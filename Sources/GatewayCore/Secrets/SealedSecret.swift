/// Something that a store keeps sealed by the master key: where it is, and its envelope.
package struct SealedSecret: Sendable, Hashable {
    /// Where a store keeps a sealed secret.
    package enum Place: Sendable, Hashable {
        /// One of the gateway's own.
        case gateway(GatewaySecret)
        /// A tenant's credential for one upstream, of this version.
        case credential(TenantID, UpstreamKind, version: Int)
    }

    /// Where it is.
    package var place: Place
    /// What else of its row it is sealed for.
    package var details: [String?]
    /// How it is sealed.
    package var envelope: Envelope

    /// A sealed secret.
    package init(place: Place, details: [String?] = [], envelope: Envelope) {
        self.place = place
        self.details = details
        self.envelope = envelope
    }

    /// A tenant's credential.
    ///
    /// - Parameters:
    ///   - credential: as it is stored.
    ///   - salt: of the tenant.
    package init(_ credential: StoredCredential, salt: [UInt8]) {
        self.init(
            place: .credential(credential.tenant, credential.kind, version: credential.version),
            details: credential.details(salt: salt),
            envelope: credential.envelope
        )
    }

    /// What the envelope is sealed for.
    package var context: Envelope.Context {
        switch self.place {
        case .gateway(let secret): secret.context
        case .credential(let tenant, let kind, let version):
            StoredCredential.context(tenant: tenant, kind: kind, version: version, details: self.details)
        }
    }

    /// What people call it; tells nothing of the secret.
    package var name: String {
        switch self.place {
        case .gateway(let secret): "the gateway's own \(secret.rawValue)"
        case .credential(let tenant, let kind, let version):
            "the \(kind.rawValue) credential of tenant \(tenant.text), version \(version)"
        }
    }
}
