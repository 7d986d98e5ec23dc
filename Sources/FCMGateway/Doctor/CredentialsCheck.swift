import GatewayCore
import GatewayService
import GatewayStorage
import NIOSSL
import StrictJSON

/// Checks each tenant's credentials. A running gateway proves them against FCM. Without a running gateway, only their
/// seals are checked.
struct CredentialsCheck: Sendable {
    private static let maxConcurrent = 8

    let tenants: [SQLSecretStore.Inspection.TenantCredentials]
    /// The credentials that the master key does not open.
    let unopened: Set<SealedSecret>
    let isMasterKeyTried: Bool
    let plainHTTP: PlainHTTP
    /// A running gateway's admin listener; `nil` to call no gateway.
    let gateway: BaseURL?
    let tls: TLSConfiguration
    /// The admin token. Without a token, no gateway is called.
    let token: Redacted<String>?
    let now: Timestamp

    func examine() async -> [Finding] {
        let asked: [Finding]? =
            if let gateway = self.gateway, let token = self.token {
                try? await APIClient.with(gateway, token: token, tls: self.tls) {
                    await self.examine(by: AdminClient($0))
                }
            } else {
                nil
            }
        return asked ?? self.tenants.flatMap { self.findings($0, checks: nil) }
    }

    private func examine(by client: AdminClient) async -> [Finding] {
        await withTaskGroup(of: (Int, [Finding]).self) { group in
            var results: [Int: [Finding]] = [:]
            for (index, tenant) in self.tenants.enumerated() {
                if index >= Self.maxConcurrent, let (done, findings) = await group.next() { results[done] = findings }
                group.addTask { (index, await self.examine(tenant, by: client)) }
            }
            for await (done, findings) in group { results[done] = findings }
            return results.sorted { $0.key < $1.key }.flatMap(\.value)
        }
    }

    private func examine(_ tenant: SQLSecretStore.Inspection.TenantCredentials, by client: AdminClient) async
        -> [Finding]
    {
        let id = tenant.tenant.id.text
        do {
            let answer = try await client.call(.post, ["tenants", id, "credentials", "check"])
            return self.findings(tenant, checks: answer?.list("checks") ?? [])
        } catch let refusal as APIError where refusal.status == 401 {
            return [
                .problem(
                    .credentials,
                    id,
                    "the running gateway refuses the admin token that doctor was given",
                    "Give doctor the gateway's own variables (GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE)"
                )
            ]
        } catch {
            let why = (error as? APIError)?.code ?? "\(error)"
            let failed = Finding.warning(
                .credentials,
                id,
                "the running gateway can't check the credentials: \(why)",
                "fcm-gateway credential check \(id)"
            )
            return [failed] + self.findings(tenant, checks: nil)
        }
    }

    /// Returns a finding for each of a tenant's credentials, and another if the credential for its upstream is missing.
    /// `checks` is `nil` if no gateway was called.
    func findings(_ tenant: SQLSecretStore.Inspection.TenantCredentials, checks: [JSONValue]?) -> [Finding] {
        let upstream = tenant.tenant.upstream
        var findings = tenant.credentials.map { stored in
            let check = checks?.first { $0.text("kind") == stored.kind.rawValue }
            return self.finding(stored, of: tenant.tenant, check: check)
        }
        let id = tenant.tenant.id.text
        if !tenant.credentials.contains(where: { $0.kind == upstream }) {
            let other = tenant.credentials.first?.kind
            findings.append(
                .warning(
                    .credentials,
                    id,
                    "has no \(upstream.rawValue) credential, which its messages need"
                        + (other.map { "; it has a \($0.rawValue) credential" } ?? ""),
                    (other.map {
                        "fcm-gateway tenant set \(id) --upstream \($0.rawValue), or else "
                    } ?? "")
                        + "fcm-gateway credential put \(id) \(upstream.rawValue)"
                )
            )
        }
        return findings
    }

    private func finding(_ stored: StoredCredential, of tenant: Tenant, check: JSONValue?) -> Finding {
        let isInUse = stored.kind == tenant.upstream
        let gap = isInUse && tenant.senderID == nil ? "; without a sender id the tenant has no device groups" : ""
        let id = stored.tenant.text
        let kind = stored.kind.rawValue
        let subject = "\(id), \(kind)\(isInUse ? "" : " (not in use)")"
        let days = max(0, (self.now.seconds - stored.createdAt.seconds) / 86_400)
        let age = "version \(stored.version), \(days) day\(days == 1 ? "" : "s") old"
        let place = SealedSecret.Place.credential(stored.tenant, stored.kind, version: stored.version)
        if self.unopened.contains(where: { $0.place == place }) {
            let seen = "does not open with the master key (\(age))"
            let advice = "If the master key is right: fcm-gateway credential put \(id) \(kind)"
            return .problem(.credentials, subject, seen, advice)
        }
        if let endpoint = stored.endpoint, !self.plainHTTP.admits(endpoint: endpoint) {
            let seen = "is for \(endpoint), to which it would be sent unencrypted; the gateway does not use it (\(age))"
            let advice = "Store it with an https endpoint, or name the host in upstream.allowPlainHTTP"
            return .problem(.credentials, subject, seen, advice)
        }
        guard let check else {
            let opening = self.isMasterKeyTried ? " and can be opened" : "; opening it was not tried"
            return .ok(.credentials, subject, "is sealed\(opening) (\(age))\(gap)")
        }
        let detail = check.text("detail") ?? ""
        guard let finding = check.text("finding"), finding != "valid" else {
            return .ok(.credentials, subject, "FCM accepts it (\(age))\(gap)")
        }
        let seen = "\(finding): \(detail) (\(age))"
        let advice = "fcm-gateway credential check \(id); to replace it: fcm-gateway credential put \(id) \(kind)"
        return isInUse ? .problem(.credentials, subject, seen, advice) : .warning(.credentials, subject, seen, advice)
    }
}
