import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Proof of credentials by a dry run to a topic, which reaches nobody.
///
/// No token is shared with sends: one that is still good there would prove nothing of the key. An open breaker keeps no
/// check back, since a check is how an operator finds out what is wrong; what it finds counts for the breaker.
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
        let report: CredentialReport?
        switch kind {
        case .legacy: report = await self.proveServerKey(of: profile, origin)
        case .v1: report = await self.proveServiceAccount(of: profile, origin)
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
        let send = LegacySend(context: context, body: body, target: .topic(topic), isIdempotent: false)
        return await self.perform(CheckCall(dryRun: send) { result, _ in CredentialReport(result) })
    }

    private func proveServiceAccount(of profile: TenantProfile, _ origin: RequestOrigin) async -> CredentialReport? {
        guard let credential = profile.v1Credential else { return nil }
        let authorization: Authorization
        switch await self.exchange.issue(for: credential) {
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
            keepsAnswer: false,
            gate: nil
        )
        let check = CheckCall(dryRun: send) { reading, response in
            let status = response.status.code
            if case .accepted = reading.answer {
                return CredentialReport(
                    .valid,
                    "FCM takes messages for project \(projectID)",
                    upstreamCode: String(status)
                )
            }
            return CredentialReport(
                status: status,
                V1ErrorBody(response.body),
                projectID: projectID,
                credential: credential
            )
        }
        return await self.perform(check)
    }

    /// The way of a tenant's messages with an authorisation of its own; `nil` where the server can't be called.
    private func checkContext(
        _ kind: UpstreamKind,
        of profile: TenantProfile,
        _ authorization: Authorization,
        _ origin: RequestOrigin
    ) -> CallContext? {
        guard case .success(let account)? = self.accounts.account(of: profile, kind) else { return nil }
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

/// A send that is read for what it says of the credential.
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
        // The operator waits for the first answer.
        if case .busy = sign { return (self.report(reading, response), .trouble) }
        return (self.report(reading, response), sign)
    }

    func unanswered(_ failure: CallFailure) -> CredentialReport {
        CredentialReport(
            .endpointUnreachable,
            "\(self.context.pool.origin.authority) gives no answer: \(failure.upstreamCode)",
            upstreamCode: failure.upstreamCode
        )
    }
}

extension CredentialReport {
    /// The other side's own words, to stand behind ours.
    private static func quoting(_ words: String?) -> String {
        guard let words, !words.isEmpty else { return "" }
        return " (it says: \(words))"
    }

    /// There is nothing to prove: neither by the tenant's protocol, nor by another whose credential does not open.
    fileprivate static func missing(_ kind: UpstreamKind, of profile: TenantProfile) -> CredentialReport {
        let gap = kind == profile.tenant.upstream ? profile.missingCredential : nil
        return CredentialReport(
            .missing,
            gap ?? "The tenant's \(kind.rawValue) credential does not open under the gateway's master key"
        )
    }

    /// The same with a note on device groups, where a credential alone is not enough for them.
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

    /// The endpoint is no address, or TLS can't be set up.
    fileprivate static let badEndpoint = CredentialReport(
        .endpointUnreachable,
        "The credential's endpoint is no http(s)://host[:port], or TLS can't be set up"
    )

    /// No access token was issued.
    fileprivate init(_ failure: TokenFailure, of credential: ServiceAccountCredential) {
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

    /// What a dry run by the legacy protocol came to.
    fileprivate init(_ result: UpstreamResult) {
        let code = result.upstreamCode
        switch result.answer {
        case .recipients, .group:
            self.init(.valid, "FCM takes messages by this server key", upstreamCode: code)
        case .failed(.upstreamCredentials):
            self.init(.keyRefused, "FCM refuses the server key", upstreamCode: code)
        case .failed(.upstreamUnavailable), .failed(.upstreamInternal):
            self.init(.endpointUnreachable, "FCM is in trouble or overloaded; try again later", upstreamCode: code)
        case .failed:
            self.init(
                .unexpected,
                "What answers does not speak the legacy protocol; it is switched off at Google's",
                upstreamCode: code
            )
        }
    }

    /// FCM refused a dry run by the v1 protocol.
    fileprivate init(status: Int, _ body: V1ErrorBody, projectID: String, credential: ServiceAccountCredential) {
        let said = Self.quoting(AnswerBounds.beginning(of: body.message))
        let code = String(status)
        let isForeign = projectID != credential.projectID
        switch status {
        case 401:
            self.init(
                .keyRefused,
                "FCM refuses the access token that was issued a moment ago\(said)",
                upstreamCode: body.boundedReason ?? code
            )
        case 403 where body.reason == "SERVICE_DISABLED":
            self.init(
                .apiDisabled,
                "The Firebase Cloud Messaging API is switched off in project \(projectID)\(said)",
                upstreamCode: body.boundedReason
            )
        case 403 where isForeign:
            self.init(
                .projectMismatch,
                "The tenant's project is \(projectID); the account belongs to \(credential.projectID) and may not "
                    + "send for the other\(said)",
                upstreamCode: body.boundedReason ?? code
            )
        case 403:
            self.init(
                .permissionDenied,
                "The account lacks the permission cloudmessaging.messages.create; the role Firebase Cloud Messaging "
                    + "API Admin holds it\(said)",
                upstreamCode: body.boundedReason ?? code
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

extension V1ErrorBody {
    /// The reason, where it is one of those that we know.
    fileprivate var boundedReason: String? {
        let known: Set<String> = [
            "SERVICE_DISABLED", "IAM_PERMISSION_DENIED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_EXPIRED",
            "ACCESS_TOKEN_TYPE_UNSUPPORTED", "CREDENTIALS_MISSING",
        ]
        return self.reason.flatMap { known.contains($0) ? $0 : nil }
    }
}
