import GatewayCore

extension CredentialReport {
    /// The other side's own words behind ours, where it used some.
    private static func quoting(_ words: String?) -> String {
        guard let words, !words.isEmpty else { return "" }
        return " (it says: \(words))"
    }

    /// There is nothing to prove: neither by the tenant's protocol, nor by another whose credential does not open.
    static func missing(_ kind: UpstreamKind, of profile: TenantProfile) -> CredentialReport {
        let gap = kind == profile.tenant.upstream ? profile.missingCredential : nil
        return CredentialReport(
            .missing,
            gap ?? "The tenant's \(kind.rawValue) credential does not open under the gateway's master key"
        )
    }

    /// The same with a note on device groups, where a credential alone is not enough for them.
    func noting(_ profile: TenantProfile) -> CredentialReport {
        guard self.finding == .valid, profile.tenant.senderID == nil, let gap = profile.missingForGroups else {
            return self
        }
        return CredentialReport(
            .valid,
            "\(self.detail). Device groups can't be managed yet: \(gap)",
            upstreamCode: self.upstreamCode
        )
    }

    /// Whatever the endpoint is, it is no address.
    static let badEndpoint = CredentialReport(
        .endpointUnreachable,
        "The credential's endpoint is no http(s)://host[:port], or TLS can't be set up"
    )

    /// No access token was issued.
    init(_ failure: TokenFailure, of credential: ServiceAccountCredential) {
        let host = credential.tokenURI.authority
        let said = Self.quoting(failure.detail)
        switch failure {
        case .hostRefused:
            self.init(
                .tokenHostRefused,
                credential.tokenURI.isEncrypted || credential.tokenURI.isLoopback
                    ? "The account asks for tokens at \(host), which upstream.allowedTokenHosts does not have"
                    : "The account asks for tokens at \(host) by http; only https goes off this machine",
                upstreamCode: failure.code
            )
        case .keyUnusable:
            self.init(.keyUnusable, "The private key is no RSA key that can sign", upstreamCode: failure.code)
        case _ where failure.kind == .unreachable:
            self.init(
                .tokenEndpointUnreachable,
                "\(host) gives no access token at the moment; check the way there and try again",
                upstreamCode: failure.code
            )
        case _ where failure.clockIsOff:
            let offset = failure.clockOffset.map { offset in
                offset > 0 ? ": it is \(offset) s ahead" : ": it is \(-offset) s behind"
            }
            self.init(
                .clockSkew,
                "\(host) refuses the assertion because this machine's clock is off\(offset ?? "")\(said)",
                upstreamCode: failure.code
            )
        case _ where failure.code == "invalid_grant":
            self.init(
                .keyRefused,
                "\(host) refuses the key of \(credential.clientEmail): it was deleted, or the account is gone\(said)",
                upstreamCode: failure.code
            )
        default:
            self.init(
                .keyRefused,
                "\(host) issues no access token to \(credential.clientEmail)\(said)",
                upstreamCode: failure.code
            )
        }
    }

    /// FCM refused a dry run by the v1 protocol.
    init(status: Int, _ complaint: V1Complaint, projectID: String, credential: ServiceAccountCredential) {
        let said = Self.quoting(complaint.message)
        let code = String(status)
        let isForeign = projectID != credential.projectID
        switch status {
        case 401:
            self.init(
                .keyRefused,
                "FCM refuses the access token that was issued a moment ago\(said)",
                upstreamCode: complaint.boundedReason ?? code
            )
        case 403 where complaint.reason == "SERVICE_DISABLED":
            self.init(
                .apiDisabled,
                "The Firebase Cloud Messaging API is switched off in project \(projectID)\(said)",
                upstreamCode: complaint.boundedReason
            )
        case 403 where isForeign:
            self.init(
                .projectMismatch,
                "The tenant's project is \(projectID); the account belongs to \(credential.projectID) and may not "
                    + "send for the other\(said)",
                upstreamCode: complaint.boundedReason ?? code
            )
        case 403:
            self.init(
                .permissionDenied,
                "The account lacks the permission cloudmessaging.messages.create; the role Firebase Cloud Messaging "
                    + "API Admin holds it\(said)",
                upstreamCode: complaint.boundedReason ?? code
            )
        case 404:
            self.init(
                .projectMismatch,
                "FCM knows no project \(projectID); the account belongs to \(credential.projectID)\(said)",
                upstreamCode: code
            )
        case 429, 500...599:
            self.init(
                .endpointUnreachable,
                "FCM is in trouble or overloaded; try again later\(said)",
                upstreamCode: code
            )
        default:
            self.init(.unexpected, "What answers is not FCM: status \(status)\(said)", upstreamCode: code)
        }
    }
}

extension TokenFailure {
    /// Whether the clocks explain the refusal.
    fileprivate var clockIsOff: Bool {
        if let offset = self.clockOffset, abs(offset) > TokenReply.toleratedSkew { return true }
        // What the token endpoint says where the assertion lies in its future or past.
        return self.detail?.contains("reasonable timeframe") == true
    }
}

extension V1Complaint {
    /// The reason, where it is one of those that we know.
    fileprivate var boundedReason: String? {
        let known: Set<String> = [
            "SERVICE_DISABLED", "IAM_PERMISSION_DENIED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_EXPIRED",
            "ACCESS_TOKEN_TYPE_UNSUPPORTED", "CREDENTIALS_MISSING",
        ]
        return self.reason.flatMap { known.contains($0) ? $0 : nil }
    }
}
