import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import InMemoryLogging

extension TestGateway {
    /// The project of `demo`, once it has one.
    static let project = "demo-1a2b"

    /// Posts to the legacy facade, with the key as legacy clients send it.
    func legacy(_ body: String, key: String?, headers: [String: String] = [:]) async -> Answer {
        var headers = headers
        if let key, headers["Authorization"] == nil { headers["Authorization"] = "key=\(key)" }
        return await self.data(.post, "/fcm/send", key: nil, body: body, headers: headers)
    }

    /// Posts a form to the legacy facade.
    func form(_ body: String, key: String?) async -> Answer {
        await self.legacy(
            body,
            key: key,
            headers: ["Content-Type": "application/x-www-form-urlencoded;charset=UTF-8"]
        )
    }

    /// Posts to the v1 facade.
    func v1(
        _ body: String,
        key: String?,
        project: String = TestGateway.project,
        headers: [String: String] = [:]
    ) async -> Answer {
        await self.data(.post, "/v1/projects/\(project)/messages:send", key: key, body: body, headers: headers)
    }

    /// Changes which protocol `demo` sends by, and gives it a project.
    func setUpstream(_ upstream: UpstreamKind, project: String? = TestGateway.project) async throws {
        _ = try await self.administration.put(
            TenantDraft(displayName: "demo", upstream: upstream, projectID: project),
            id: .sample("demo"),
            origin: Self.origin
        )
    }

    /// Everything that was logged so far, as one text.
    var logText: String {
        self.logs.entries
            .map { entry in
                "\(entry.message) \(entry.metadata.map { "\($0.key)=\($0.value)" }.joined(separator: " "))"
            }
            .joined(separator: "\n")
    }
}

extension UpstreamResult {
    /// One recipient's refusal.
    static func rejecting(_ rejection: Rejection, retryAfter: Int? = nil) -> UpstreamResult {
        UpstreamResult(answer: .recipients([.rejected(rejection)]), retryAfter: retryAfter, upstreamCode: "200")
    }

    /// One recipient's acceptance.
    static func accepting(_ messageID: String) -> UpstreamResult {
        UpstreamResult(answer: .recipients([.accepted(Acceptance(messageID: messageID))]), upstreamCode: "200")
    }
}

extension Answer {
    /// The body as JSON; `null` for a body that is none.
    var value: JSON { (try? self.json) ?? .null }
}
