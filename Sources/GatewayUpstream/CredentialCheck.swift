import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Proves credentials by a dry run to a topic, which delivers nothing.
///
/// A check fetches its own access token: one cached for sends would prove nothing about the key. An open breaker does
/// not stop a check, because operators use it to find the fault. The check's result counts for the breaker.
extension FCMClient: CredentialProver {
    private static let checkTopic = "fcm-gateway-credential-check"

    private static var checkMessage: Message {
        var message = Message()
        message.dryRun = true
        message.data = [DataEntry(key: "check", value: "1")]
        return message
    }

    package func prove(
        _ kind: UpstreamKind,
        of profile: TenantProfile,
        origin: RequestOrigin
    ) async -> CredentialReport {
        let report =
            switch kind {
            case .legacy: await self.proveServerKey(of: profile, origin)
            case .v1: await self.proveV1(of: profile, origin)
            }
        return report?.noting(profile) ?? .missing(kind, of: profile)
    }

    private func proveServerKey(of profile: TenantProfile, _ origin: RequestOrigin) async -> CredentialReport? {
        guard let credential = profile.legacyCredential else { return nil }
        let authorization = Authorization(serverKey: credential.serverKey)
        guard let topic = TopicName(Self.checkTopic),
            let context = self.checkContext(.legacy, of: profile, authorization, origin),
            let body = try? LegacyRequestEncoder.encode(Self.checkMessage, to: .topic(topic))
        else { return .badEndpoint }
        let send = LegacySend(context: context, body: body, target: .topic(topic))
        return await self.perform(CheckCall(dryRun: send) { result, _ in CredentialReport(result) })
    }

    private func proveV1(of profile: TenantProfile, _ origin: RequestOrigin) async -> CredentialReport? {
        guard let credential = profile.v1Credential else { return nil }
        let authorization: Authorization
        switch await self.exchange.issue(for: credential, in: origin.trace) {
        case .success(let issued): authorization = Authorization(accessToken: issued.text)
        case .failure(let failure): return CredentialReport(failure, of: credential)
        }
        guard let topic = TopicName(Self.checkTopic),
            let context = self.checkContext(.v1, of: profile, authorization, origin)
        else { return .badEndpoint }
        let projectID = profile.v1ProjectID ?? credential.projectID
        let send = V1Send(
            context: context,
            path: V1Path.send(project: projectID),
            calls: V1Calls(Self.checkMessage, to: .topic(topic), now: self.clock.now().seconds),
            kind: .topic,
            mayBeGroup: false,
            keepsAnswer: false
        )
        let check = CheckCall(dryRun: send) { reading, response in
            let status = response.status.code
            guard case .accepted = reading.answer else {
                let body = V1ErrorBody(response.body)
                return CredentialReport(status: status, body, projectID: projectID, credential: credential)
            }
            let detail = "FCM accepts messages for project \(projectID)"
            return CredentialReport(.valid, detail, upstreamCode: String(status))
        }
        return await self.perform(check)
    }

    /// The context of a tenant's messages with an authorisation of its own; `nil` if the server can't be called.
    private func checkContext(
        _ kind: UpstreamKind,
        of profile: TenantProfile,
        _ authorization: Authorization,
        _ origin: RequestOrigin
    ) -> CallContext? {
        guard let account = try? self.accounts.account(of: profile, kind) else { return nil }
        return CallContext(
            kind == .legacy ? .legacy : .v1,
            by: account,
            trying: authorization,
            for: profile,
            origin: origin,
            deadline: .now + self.settings.attemptTimeout.current
        )
    }
}

/// A send whose answer is read for what it says about the credential.
private struct CheckCall<DryRun: FCMCall>: FCMCall {
    let dryRun: DryRun
    let report: @Sendable (DryRun.Reading, HTTPClientResponse) -> CredentialReport

    var context: CallContext { self.dryRun.context }
    var route: String { self.dryRun.route }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest {
        self.dryRun.request(authorizedBy: authorization)
    }

    func read(_ response: HTTPClientResponse, now: Int) -> (CredentialReport, AnswerSign) {
        let (reading, sign) = self.dryRun.read(response, now: now)
        // The operator waits, so the first answer is final.
        if case .busy = sign { return (self.report(reading, response), .trouble) }
        return (self.report(reading, response), sign)
    }

    func unanswered(_ failure: CallFailure) -> CredentialReport {
        CredentialReport(
            .endpointUnreachable,
            "\(self.context.pool.origin.authority) does not answer: \(failure.upstreamCode)",
            upstreamCode: failure.upstreamCode
        )
    }
}

extension CredentialReport {
    /// FCM's or the token endpoint's own words, to follow ours.
    private static func quoting(_ words: String?) -> String {
        guard let words, !words.isEmpty else { return "" }
        return " (it says: \(words))"
    }

    /// Nothing can be proved: the tenant's protocol has no credential, or the credential does not open.
    fileprivate static func missing(_ kind: UpstreamKind, of profile: TenantProfile) -> CredentialReport {
        let gap = kind == profile.tenant.upstream ? profile.missingCredential : nil
        return CredentialReport(
            .missing,
            gap ?? "The tenant's \(kind.rawValue) credential does not open under the gateway's master key"
        )
    }

    fileprivate func noting(_ profile: TenantProfile) -> CredentialReport {
        guard self.finding == .valid, profile.tenant.senderID == nil, let gap = profile.missingForGroups else {
            return self
        }
        return CredentialReport(
            .valid,
            "\(self.detail). Device groups can't be managed yet: \(gap)",
            upstreamCode: self.upstreamCode
        )
    }

    fileprivate static let badEndpoint = CredentialReport(
        .endpointUnreachable,
        "The credential's endpoint is not http(s)://host[:port], or TLS can't be set up"
    )

    fileprivate init(_ failure: TokenFailure, of credential: V1Credential) {
        let (issuer, name) = credential.source.issuer
        let host = failure.server ?? issuer
        let said = Self.quoting(failure.detail)
        let (finding, detail): (Finding, String) =
            switch failure {
            case .hostRefused where credential.source.isPlain:
                (.tokenHostRefused, "The account's token host \(host) uses http; only https may leave this machine")
            case .hostRefused:
                (
                    .tokenHostRefused,
                    "The token host \(host), or the place of the provider's token, is not one that the configuration allows"
                )
            case .subjectTokenUnreadable:
                (.keyUnusable, "The provider's token can't be read from the file or URL of the credential")
            case .keyUnusable:
                (.keyUnusable, "The private key is not an RSA key that can sign")
            case _ where failure.kind == .unreachable:
                (
                    .tokenEndpointUnreachable,
                    "\(host) issues no access token at the moment; check the network and try again"
                )
            case _ where failure.clockIsOff:
                (
                    .clockSkew,
                    "\(host) refuses the assertion because this machine's clock is off\(failure.clockWords)\(said)"
                )
            case _ where failure.code == "invalid_grant":
                (
                    .keyRefused,
                    "\(host) refuses the proof of \(name): the key was deleted, or the account is gone\(said)"
                )
            default:
                (.keyRefused, "\(host) issues no access token to \(name)\(said)")
            }
        self.init(finding, detail, upstreamCode: failure.code)
    }

    fileprivate init(_ result: SendResult) {
        let (finding, detail): (Finding, String) =
            switch result.refusal?.code {
            case nil: (.valid, "FCM accepts messages with this server key")
            case .upstreamCredentials: (.keyRefused, "FCM refuses the server key")
            case .upstreamUnavailable, .upstreamInternal:
                (.endpointUnreachable, "FCM is in trouble or overloaded; try again later")
            default:
                (.unexpected, "The server does not speak the legacy protocol, which Google has switched off")
            }
        self.init(finding, detail, upstreamCode: result.upstreamCode ?? "none")
    }

    fileprivate init(status: Int, _ body: V1ErrorBody, projectID: String, credential: V1Credential) {
        let said = Self.quoting(AnswerBounds.beginning(of: body.message))
        let owner = credential.projectID
        let (finding, detail): (Finding, String) =
            switch status {
            case 401:
                (.keyRefused, "FCM refuses the access token that was issued a moment ago\(said)")
            case 403 where body.reason == "SERVICE_DISABLED":
                (.apiDisabled, "The Firebase Cloud Messaging API is switched off in project \(projectID)\(said)")
            case 403 where projectID != owner:
                (
                    .projectMismatch,
                    "The tenant's project is \(projectID); the account belongs to \(owner) and may not send for the "
                        + "other\(said)"
                )
            case 403:
                (
                    .permissionDenied,
                    "The account lacks the permission cloudmessaging.messages.create; the role Firebase Cloud "
                        + "Messaging API Admin holds it\(said)"
                )
            case 404:
                (.projectMismatch, "FCM does not know project \(projectID); the account belongs to \(owner)\(said)")
            case 429, 500...599:
                (.endpointUnreachable, "FCM is in trouble or overloaded; try again later\(said)")
            default:
                (.unexpected, "The server is not FCM: status \(status)\(said)")
            }
        let reason = [401, 403].contains(status) ? body.boundedReason : nil
        self.init(finding, detail, upstreamCode: reason ?? String(status))
    }
}

extension V1Credential.Source {
    /// The server that issues access tokens, and the name of the account.
    fileprivate var issuer: (host: String, name: String) {
        switch self {
        case .serviceAccount(let key): (key.tokenURI.authority, key.clientEmail)
        case .external(let account): (account.tokenURL.authority, account.audience)
        case .metadataServer: ("the metadata server", "this machine")
        }
    }

    /// True if the token endpoint is called without encryption, beyond this machine.
    fileprivate var isPlain: Bool {
        switch self {
        case .serviceAccount(let key): !key.tokenURI.isEncrypted && !key.tokenURI.isLoopback
        case .external(let account): !account.tokenURL.isEncrypted && !account.tokenURL.isLoopback
        case .metadataServer: false
        }
    }
}

extension TokenFailure {
    fileprivate var clockIsOff: Bool {
        if let offset = self.clockOffset, abs(offset) > TokenReply.toleratedSkew { return true }
        // The token endpoint's words for an assertion issued in its future or past.
        return self.detail?.contains("reasonable timeframe") == true
    }

    fileprivate var clockWords: String {
        guard let offset = self.clockOffset else { return "" }
        return offset > 0 ? ": it is \(offset) s ahead" : ": it is \(-offset) s behind"
    }
}

extension V1ErrorBody {
    /// The reason, if it is one of those that we know.
    fileprivate var boundedReason: String? {
        let known: Set<String> = [
            "SERVICE_DISABLED", "IAM_PERMISSION_DENIED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_EXPIRED",
            "ACCESS_TOKEN_TYPE_UNSUPPORTED", "CREDENTIALS_MISSING",
        ]
        return self.reason.flatMap { known.contains($0) ? $0 : nil }
    }
}
