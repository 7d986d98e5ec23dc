import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging

extension TestGateway {
    /// The project that ``setUpstream(_:project:)`` gives `demo`.
    static let project = "demo-1a2b"

    /// Posts to the legacy facade, with the key as legacy clients send it.
    func legacy(_ body: String, key: String?, headers: [String: String] = [:]) async -> Answer {
        var headers = headers
        if let key, headers["Authorization"] == nil { headers["Authorization"] = "key=\(key)" }
        return await self.data(.post, "/fcm/send", key: nil, body: body, headers: headers)
    }

    /// Posts a form to the legacy facade.
    func form(_ body: String, key: String?, headers: [String: String] = [:]) async -> Answer {
        let type = ["Content-Type": "application/x-www-form-urlencoded;charset=UTF-8"]
        return await self.legacy(body, key: key, headers: headers.merging(type) { $1 })
    }

    func v1(
        _ body: String,
        key: String?,
        project: String = TestGateway.project,
        headers: [String: String] = [:]
    ) async -> Answer {
        await self.data(.post, "/v1/projects/\(project)/messages:send", key: key, body: body, headers: headers)
    }

    /// Sets the upstream of `demo` and gives it a project.
    func setUpstream(_ upstream: UpstreamKind, project: String? = TestGateway.project) async throws {
        _ = try await self.administration.put(
            Tenant.Draft(displayName: "demo", upstream: upstream, projectID: project),
            id: .sample("demo"),
            origin: Self.origin
        )
    }

    /// The sender id that ``setSender(_:tenant:)`` gives a tenant.
    static let senderID = "123456789012"

    func setSender(_ senderID: String? = TestGateway.senderID, tenant: String = "demo") async throws {
        _ = try await self.administration.put(
            Tenant.Draft(displayName: tenant, upstream: .legacy, senderID: senderID),
            id: .sample(tenant),
            origin: Self.origin
        )
    }

    /// Runs a body with a gateway whose upstream keeps device groups by FCM's rules.
    static func runWithGroups(
        _ body: @escaping @Sendable (TestGateway, _ key: String, InMemoryGroupUpstream) async throws -> Void
    ) async throws {
        let upstream = InMemoryGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            try await body(gateway, key, upstream)
        }
    }

    /// The code in the access log's last line.
    var lastLoggedCode: String? {
        self.logs.entries.last { $0.message == "Request answered" }?.metadata["code"].map { "\($0)" }
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

extension SendResult {
    static func outcomes(_ outcomes: RecipientOutcome...) -> SendResult {
        SendResult(outcomes, upstreamCode: "200")
    }

    static func rejecting(_ rejection: Rejection) -> SendResult { .outcomes(.rejected(rejection)) }

    static func accepting(_ messageID: String) -> SendResult {
        .outcomes(.accepted(Acceptance(messageID: messageID)))
    }

    static func group(_ success: Int, _ failure: Int, failed tokens: [String] = []) -> SendResult {
        let outcome = GroupOutcome(success: success, failure: failure, failedTokens: tokens)
        return SendResult(.group(outcome), upstreamCode: "200")
    }
}

extension Answer {
    /// The body as JSON, or `null` if it isn't JSON.
    var value: JSON { (try? self.json) ?? .null }
}
