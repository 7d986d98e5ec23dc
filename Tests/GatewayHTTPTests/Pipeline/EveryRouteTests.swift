import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

/// Rules for every route; the descriptions in `openapi/` are the expectation.
@Suite("Every route", .timeLimit(.minutes(10)))
struct EveryRouteTests {
    /// A route that requires a key, and the scopes that its description names.
    struct Asked: Sendable {
        let route: Route
        let scope: Scope
        /// The scopes that it needs besides.
        let others: [Scope]

        var name: String { "\(self.route.method.rawValue) \(self.route.template)" }

        func path(_ tenant: String = "demo") -> String { EveryRouteTests.path(self.route.template, tenant) }
    }

    /// A template's path for a tenant, whose name is also its project.
    static func path(_ template: String, _ tenant: String = "demo") -> String {
        template.replacing("{tenant}", with: tenant).replacing("{project}", with: tenant)
            .replacing(#/\{[a-z]+\}/#, with: "x")
    }

    private static func routes(_ gateway: TestGateway) throws -> [Asked] {
        let scopes = try OpenAPIDocument("gateway.yaml").scopes
        var routes: [Asked] = []
        for row in gateway.dataListener.routes.rows {
            for (method, endpoint) in row.endpoints where endpoint.route.credential != nil {
                let described = scopes[ServedRoute(method: method.rawValue, template: row.route.template)] ?? nil
                let names = try #require(described, "\(method) \(row.route.template)")
                let needed = try names.map { try #require(Scope(rawValue: $0)) }
                let scope = try #require(needed.first, "\(method) \(row.route.template)")
                routes.append(Asked(route: endpoint.route, scope: scope, others: Array(needed.dropFirst())))
            }
        }
        #expect(routes.count > 20)
        return routes
    }

    /// The audit action of each route.
    private static let actions = [
        "POST /v1/tenants/{tenant}/messages": "message.send",
        "POST /fcm/send": "message.send",
        "POST /v1/projects/{project}/messages:send": "message.send",
        "POST /v1/tenants/{tenant}/messages/explain": "message.explain",
        "POST /v1/tenants/{tenant}/topics/{topic}/subscriptions": "topic.subscribe",
        "POST /v1/tenants/{tenant}/topics/{topic}/subscriptions/remove": "topic.unsubscribe",
        "GET /v1/tenants/{tenant}/subscriptions": "topic.list",
        "POST /iid/v1:batchAdd": "topic.subscribe",
        "POST /iid/v1:batchRemove": "topic.unsubscribe",
        "GET /iid/info/{token}": "topic.list",
        "POST /iid/v1/{token}/rel/topics/{topic}": "topic.subscribe",
        "DELETE /iid/v1/{token}/rel/topics/{topic}": "topic.unsubscribe",
        "POST /v1/projects/{project}/registrations/{token}/topicSubscriptions": "topic.subscribe",
        "GET /v1/projects/{project}/registrations/{token}/topicSubscriptions": "topic.list",
        "DELETE /v1/projects/{project}/registrations/{token}/topicSubscriptions/{topic}": "topic.unsubscribe",
        "GET /v1/tenants/{tenant}/device-groups": "device_group.list",
        "GET /v1/tenants/{tenant}/device-groups/{name}": "device_group.get",
        "PUT /v1/tenants/{tenant}/device-groups/{name}": "device_group.put",
        "DELETE /v1/tenants/{tenant}/device-groups/{name}": "device_group.delete",
        "POST /v1/tenants/{tenant}/device-groups/{name}/members": "device_group.add",
        "POST /v1/tenants/{tenant}/device-groups/{name}/members/remove": "device_group.remove",
        "GET /fcm/notification": "device_group.look_up",
        "POST /fcm/notification": "device_group.put",
        "GET /v1/tenants/{tenant}/retired-tokens": "retired_tokens.list",
        "DELETE /v1/tenants/{tenant}/retired-tokens": "retired_tokens.delete",
        "POST /v1/tenants/{tenant}/batches": "batch.create",
        "GET /v1/tenants/{tenant}/batches": "batch.get",
        "GET /v1/tenants/{tenant}/batches/{batch}": "batch.get",
        "DELETE /v1/tenants/{tenant}/batches/{batch}": "batch.delete",
        "PUT /v1/tenants/{tenant}/batches/{batch}/parts/{part}": "batch.part",
        "POST /v1/tenants/{tenant}/batches/{batch}/start": "batch.start",
        "POST /v1/tenants/{tenant}/batches/{batch}/pause": "batch.pause",
        "POST /v1/tenants/{tenant}/batches/{batch}/resume": "batch.resume",
        "POST /v1/tenants/{tenant}/batches/{batch}/cancel": "batch.cancel",
        "GET /v1/tenants/{tenant}/batches/{batch}/results": "batch.results",
        "GET /v1/tenants/{tenant}/audit": "audit.list",
    ]

    @Test("A key without the route's scope is refused before body and query are read, and the attempt is recorded")
    func scopes() async throws {
        try await TestGateway.run { gateway, _ in
            let routes = try Self.routes(gateway)
            for asked in routes {
                let key = try await gateway.makeKey(scopes: Set(Scope.allCases).subtracting([asked.scope]))
                let answer = await gateway.data(asked.route.method, asked.path() + "?x=1", key: key, body: "no json")
                switch asked.route.dialect {
                case .rest, .console:
                    #expect(answer.status == 403, "\(asked.name)")
                    #expect(
                        try answer.problem().without("title", "type", "status") == [
                            "code": "forbidden", "detail": .string("The key lacks the scope \(asked.scope.rawValue)"),
                            "retryable": false, "action": "request_scope",
                        ]
                    )
                case .v1:
                    #expect(answer.status == 403, "\(asked.name)")
                    #expect(answer.value["error"]?["status"] == "PERMISSION_DENIED", "\(asked.name)")
                case .legacy:
                    #expect(answer.status == 401)
                    #expect(answer.body == "Unauthorized")
                case .instanceID:
                    #expect(answer.status == 401, "\(asked.name)")
                    #expect(answer.value["error"] == "UNAUTHENTICATED", "\(asked.name)")
                case .groups:
                    #expect(answer.status == 401, "\(asked.name)")
                }
            }
            #expect(gateway.upstream.calls.isEmpty)
            #expect(gateway.topics.changes.isEmpty && gateway.topics.lookUps.isEmpty)
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords().filter { $0.code == "forbidden" }
            #expect(records.map(\.action) == routes.map { Self.actions[$0.name] })
            #expect(records.map(\.method) == routes.map { $0.route.method.rawValue })
            for record in records {
                #expect(record.outcome == .rejected && record.targets.isEmpty && !record.requestID.isEmpty)
                #expect(record.principal.hasPrefix("key:"))
            }
            for change in ["subscribe", "unsubscribe"] {
                let labels = [("tenant", "demo"), ("change", change), ("outcome", "forbidden")]
                let counter = try gateway.metrics.expectCounter("fcmgw_subscription_changes_total", labels)
                #expect(counter.totalValue == 4)
            }
        }
    }

    @Test("A route that needs further scopes refuses a key without one of them before the body is read")
    func furtherScopes() async throws {
        try await TestGateway.run { gateway, _ in
            var count = 0
            for asked in try Self.routes(gateway) {
                for scope in asked.others {
                    let key = try await gateway.makeKey(scopes: Set(Scope.allCases).subtracting([scope]))
                    let answer = await gateway.data(asked.route.method, asked.path(), key: key, body: "no json")
                    let problem = try answer.expectProblem(403, "forbidden", "\(asked.name)")
                    #expect(problem["detail"] == .string("The key lacks the scope \(scope.rawValue)"), "\(asked.name)")
                    count += 1
                }
            }
            #expect(count == 4)
        }
    }

    @Test("A key with only the route's scopes is accepted")
    func scopeAlone() async throws {
        try await TestGateway.run { gateway, _ in
            for asked in try Self.routes(gateway) {
                let key = try await gateway.makeKey(scopes: Set([asked.scope] + asked.others))
                let answer = await gateway.data(asked.route.method, asked.path(), key: key, body: "no json")
                #expect(answer.status != 401 && answer.status != 403, "\(asked.name): \(answer.status)")
            }
        }
    }

    @Test("Every route refuses a missing or malformed key")
    func noKey() async throws {
        try await TestGateway.run { gateway, _ in
            for asked in try Self.routes(gateway) {
                for key in [nil, "fgw_x"] {
                    let answer = await gateway.data(asked.route.method, asked.path(), key: key, body: "no json")
                    #expect(answer.status == 401, "\(asked.name)")
                    #expect(answer.header("WWW-Authenticate") == "Bearer", "\(asked.name)")
                }
            }
        }
    }

    @Test("A foreign tenant and an unknown tenant get the same answer; a foreign project is forbidden")
    func foreign() async throws {
        try await TestGateway.run { gateway, key in
            let names = ["nobody", "OTHER", "dem%6f", "demo%00", "-", "%2e%2e", String(repeating: "x", count: 900)]
            for asked in try Self.routes(gateway) where asked.path() != asked.path("other") {
                func answer(_ tenant: String) async -> Answer {
                    let headers = ["X-Request-ID": "the-same"]
                    let path = asked.path(tenant)
                    return await gateway.data(asked.route.method, path, key: key, body: "no json", headers: headers)
                }
                let foreign = await answer("other")
                guard asked.route.dialect != .v1 else {
                    for refused in [foreign, await answer("nobody")] {
                        #expect(refused.status == 403, "\(asked.name)")
                        #expect(refused.value["error"]?["code"] == 403, "\(asked.name)")
                    }
                    continue
                }
                let problem = try foreign.expectProblem(404, "not_found", "\(asked.name)")
                #expect(problem["detail"] == "There is no such tenant", "\(asked.name)")
                for name in names {
                    let unknown = await answer(name)
                    #expect(unknown.status == 404, "\(asked.name) \(name)")
                    #expect(unknown.body == foreign.body, "\(asked.name) \(name)")
                    #expect(unknown.headers == foreign.headers, "\(asked.name) \(name)")
                }
            }
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("Routes other than sends refuse an idempotency key and do nothing")
    func idempotencyKeys() async throws {
        try await TestGateway.run { gateway, key in
            for asked in try Self.routes(gateway) where !asked.route.isSend {
                let headers = ["Idempotency-Key": "key-1"]
                let answer = await gateway.data(
                    asked.route.method,
                    asked.path(),
                    key: key,
                    body: #"{"tokens":["a"]}"#,
                    headers: headers
                )
                #expect(answer.status == 400, "\(asked.name)")
                guard asked.route.dialect == .rest else { continue }
                let problem = try answer.problem()
                #expect(problem["code"] == "bad_request", "\(asked.name)")
                #expect(problem["detail"] == "Only sends accept Idempotency-Key; leave it out here", "\(asked.name)")
            }
            #expect(try await gateway.idempotencyStore.records().isEmpty)
            #expect(gateway.topics.changes.isEmpty && gateway.topics.lookUps.isEmpty)
        }
    }

    @Test("Every facade refuses compressed bodies", arguments: ["gzip", "br", "GZIP, identity"])
    func compressed(encoding: String) async throws {
        try await TestGateway.run { gateway, key in
            for asked in try Self.routes(gateway) where asked.route.dialect != .rest {
                let (method, path) = (asked.route.method, asked.path())
                _ = await gateway.data(method, path, key: key, body: "{}", headers: ["Content-Encoding": "identity"])
                #expect(gateway.lastLoggedCode != "unsupported_media_type", "\(asked.name)")
                let headers = ["Content-Encoding": encoding]
                let answer = await gateway.data(method, path, key: key, body: "{}", headers: headers)
                #expect(gateway.lastLoggedCode == "unsupported_media_type", "\(asked.name)")
                switch asked.route.dialect {
                case .v1: #expect(answer.status == 400, "\(asked.name)")
                case .legacy, .instanceID:
                    #expect(answer.status == 415, "\(asked.name)")
                    #expect(answer.header("Accept-Encoding") == "identity", "\(asked.name)")
                case .groups, .rest, .console: break
                }
            }
        }
    }

    @Test(
        "An unsupported method gets 405 with the allowed methods, with or without a credential",
        arguments: ["gateway.yaml", "admin.yaml"]
    )
    func methods(description: String) async throws {
        try await TestGateway.run { gateway, key in
            let isAdmin = description == "admin.yaml"
            let listener = isAdmin ? gateway.adminListener : gateway.dataListener
            let described = Dictionary(grouping: try OpenAPIDocument(description).routes, by: \.template)
            for (template, routes) in described {
                let served = routes.map(\.method).sorted()
                let path = Self.path(template)
                let route = try #require(listener.routes.row(at: Array(path.utf8))?.0.route, "\(template)")
                for method: HTTPRequest.Method in [.get, .head, .post, .put, .delete, .patch, .trace]
                where !served.contains(method.rawValue) {
                    for credential in [isAdmin ? TestGateway.adminToken : key, nil] {
                        let answer =
                            isAdmin
                            ? await gateway.admin(method, path, token: credential)
                            : await gateway.data(method, path, key: credential)
                        #expect(answer.status == 405, "\(method) \(template)")
                        #expect(answer.header("Allow") == served.joined(separator: ", "), "\(method) \(template)")
                        guard route.dialect == .rest || route.isSend else { continue }
                        #expect(
                            try answer.problem().without("title", "detail") == [
                                "type": "/problems/method_not_allowed", "status": 405, "code": "method_not_allowed",
                                "retryable": false, "action": "fix_request",
                            ]
                        )
                    }
                }
            }
        }
    }

    /// Recorded routes that ``Surface`` does not contain.
    private static let recorded = [
        Surface(.get, "/v1/tenants/demo/device-groups/g", .rest),
        Surface(.delete, "/v1/tenants/demo/retired-tokens?token=a", .rest),
    ]

    @Test("A request that can't be recorded is refused and has no effect", arguments: Surface.all + Self.recorded)
    func unrecordable(surface: Surface) async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(auditCapacity: 0, groupUpstream: groups) { gateway, key in
            // An explanation is not recorded.
            guard !surface.path.hasSuffix("/explain") else { return }
            let answer = await surface.ask(gateway, key: key)
            switch surface.dialect {
            case .rest, .console:
                try answer.expectProblem(503, "audit_unavailable")
            case .legacy:
                #expect(answer.status == 200)
                #expect(answer.value["results"] == [["error": "Unavailable"]])
            case .v1:
                #expect(answer.status == 503)
                #expect(answer.value["error"]?["status"] == "UNAVAILABLE")
            case .groups, .instanceID: #expect(answer.status >= 400)
            }
            #expect(gateway.lastLoggedCode == "audit_unavailable")
            #expect(gateway.upstream.calls.isEmpty && groups.requests.isEmpty)
            #expect(gateway.topics.changes.isEmpty && gateway.topics.lookUps.isEmpty)
        }
    }
}
