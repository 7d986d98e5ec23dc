import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct ConsoleTests {
    private static let pages = [
        "/console", "/console/tenants", "/console/tenants/demo", "/console/batches", "/console/device",
        "/console/audit", "/console/try",
    ]

    @Test("A log-in begins a session in a cookie that only this host gets, and only by TLS")
    func cookies() async throws {
        try await TestGateway.run { gateway, _ in
            let browser = Browser(gateway)
            #expect(await browser.ask(.get, "/console").header("Location") == "/console/log-in")
            _ = await browser.ask(.get, "/console/log-in")
            let answer = await browser.ask(.post, "/console/log-in", ["token": TestGateway.adminToken])
            #expect(answer.status == 303 && answer.header("Cache-Control") == "no-store")
            let cookie = try #require(answer.headers.first { $0.value.hasPrefix("__Host-fcm-gateway=") }?.value)
            #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Strict; Secure"))
            // It is random, and not the token.
            #expect(cookie.count > 64 && !cookie.contains(TestGateway.adminToken))
            #expect(await browser.ask(.get, "/console").status == 200)
            #expect(await browser.ask(.post, "/console/log-out").header("Location") == "/console/log-in")
            #expect(browser.cookies["__Host-fcm-gateway"] == nil)
            #expect(await browser.ask(.get, "/console").status == 303)
            try await gateway.settleAudit()
            for action in ["console.log_in", "console.log_out"] {
                // The intent, and what came of it.
                #expect(try await gateway.auditRecords(of: action).map(\.principal) == ["admin", "admin"], "\(action)")
            }
        }
    }

    @Test(
        "Without TLS only this machine is served",
        arguments: [("127.0.0.1", 303), ("::1", 303), ("::ffff:127.0.0.1", 303), ("192.0.2.1", 403), ("12.7.0.1", 403)]
    )
    func plain(address: String, status: Int) async throws {
        try await TestGateway.run { gateway, _ in
            let browser = Browser(gateway)
            (browser.isTLS, browser.address) = (false, address)
            // The form is not even offered, lest a token be typed into it.
            #expect(await browser.ask(.get, "/console/log-in").status == (status == 303 ? 200 : 403))
            let answer = await browser.ask(.post, "/console/log-in", ["token": TestGateway.adminToken])
            #expect(answer.status == status)
            #expect(!answer.headers.contains { $0.value.contains("Secure") || $0.value.contains("__Host-") })
        }
    }

    @Test("Five failures a minute are answered for each address; a wrong token is recorded")
    func guesses() async throws {
        try await TestGateway.run { gateway, _ in
            let browser = Browser(gateway)
            _ = await browser.ask(.get, "/console/log-in")
            for _ in 0..<5 {
                #expect(await browser.ask(.post, "/console/log-in", ["token": "wrong"]).status == 401)
            }
            let answer = await browser.ask(.post, "/console/log-in", ["token": TestGateway.adminToken])
            #expect(answer.status == 429 && gateway.pauses.current == 5)
            browser.address = "192.0.2.2"
            #expect(await browser.ask(.post, "/console/log-in", ["token": TestGateway.adminToken]).status == 303)
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords(of: "admin.authenticate")
            #expect(records.map(\.object) == Array(repeating: "192.0.2.1", count: 5))
        }
    }

    @Test("A form without its session's token does nothing")
    func foreignForms() async throws {
        try await TestGateway.run { gateway, _ in
            let (browser, other) = (Browser(gateway), Browser(gateway))
            // The log-in form is of one browser too.
            _ = await other.ask(.get, "/console/log-in")
            _ = await browser.ask(.get, "/console/log-in")
            for token in ["", "0", other.formToken] {
                let fields = ["token": TestGateway.adminToken, "form_token": token]
                #expect(await browser.ask(.post, "/console/log-in", fields).status == 403)
            }
            try await browser.logIn()
            try await other.logIn()
            for row in gateway.adminListener.routes.rows {
                for (method, endpoint) in row.endpoints
                where method == .post && endpoint.route.credential == .session {
                    let path = endpoint.route.template.replacing(try Regex(#"\{[a-z]+\}"#), with: "none")
                    for token in ["", "0", other.formToken] {
                        #expect(await browser.ask(method, path, ["form_token": token]).status == 403, "\(path)")
                    }
                }
            }
            #expect(await browser.ask(.get, "/console").status == 200)
        }
    }

    @Test("Each page forbids what it does not need, is kept nowhere, and is small")
    func headers() async throws {
        try await TestGateway.run { gateway, _ in
            let browser = Browser(gateway)
            try await browser.logIn()
            for path in Self.pages + ["/console/log-in", "/console/tenants/none"] {
                let answer = await browser.ask(.get, path)
                #expect(answer.status == (path.hasSuffix("none") ? 404 : 200), "\(path)")
                let policy = try #require(answer.header("Content-Security-Policy"), "\(path)")
                for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
                    #expect(policy.contains(part), "\(path)")
                }
                #expect(!policy.contains("unsafe"))
                #expect(answer.header("Cache-Control") == "no-store", "\(path)")
                #expect(answer.header("Referrer-Policy") == "no-referrer", "\(path)")
                #expect(answer.header("Content-Type") == "text/html; charset=utf-8", "\(path)")
                #expect(answer.body.utf8.count <= 30_000, "\(path)")
                #expect(!answer.body.contains(" style=") && !answer.body.contains(" onclick="), "\(path)")
            }
            for (name, type) in [
                ("style.css", "text/css"), ("script.js", "text/javascript"), ("icon.svg", "image/svg"),
            ] {
                let answer = await browser.ask(.get, "/console/\(name)")
                #expect(answer.status == 200 && answer.header("Content-Type")?.hasPrefix(type) == true)
            }
        }
    }

    @Test("A page stays small, however long and many the names are")
    func small() async throws {
        try await TestGateway.run { gateway, key in
            let name = String(repeating: "\"", count: 200)
            for number in 0..<30 {
                let tenant = "tenant-\(number)-" + String(repeating: "x", count: 50)
                let body = JSON.object(["display_name": .string(name)]).encoded
                #expect(await gateway.admin(.put, "/admin/v1/tenants/\(tenant)", body: body).status == 201)
                let scopes = Scope.allCases.map { JSON.string($0.rawValue) }
                let keyBody = JSON.object(["name": .string("\(number)\(name)"), "scopes": .array(scopes)]).encoded
                #expect(await gateway.admin(.post, "/admin/v1/tenants/demo/keys", body: keyBody).status == 201)
                let batch = JSON.object([
                    "to": ["tokens": ["phone-1"]], "message": ["data": ["a": "b"]], "label": .string(name),
                    "send_at": .string(gateway.clock.now().advanced(by: .seconds(3_600)).rfc3339),
                ])
                let made = await gateway.data(.post, "/v1/tenants/demo/batches", key: key, body: batch.encoded)
                #expect(made.status == 202, "\(made.body)")
            }
            try await gateway.settleAudit()
            let browser = Browser(gateway)
            try await browser.logIn()
            for path in Self.pages {
                let size = await browser.ask(.get, path).body.utf8.count
                #expect(size <= 30_000, "\(path): \(size)")
            }
            let message = #"{"token":"phone-1","data":{"a":""# + String(repeating: "x", count: 3_000) + #""}}"#
            let fields = ["tenant": "demo", "message": message, "act": "explain"]
            let tried = await browser.ask(.post, "/console/try", fields)
            #expect(tried.status == 200 && tried.body.utf8.count <= 30_000, "\(tried.body.utf8.count)")
            let long = ["tenant": "demo", "message": String(repeating: "x", count: 9_000), "act": "explain"]
            #expect(await browser.ask(.post, "/console/try", long).status == 413)
        }
    }

    @Test("A session and its pages end with the operator's token")
    func revoked() async throws {
        try await TestGateway.run { gateway, _ in
            let body = #"{"name":"alice","role":"operator"}"#
            let created = await gateway.admin(.post, "/admin/v1/admin-tokens", body: body)
            let browser = Browser(gateway)
            try await browser.logIn(try #require(try created.json["token"]?.text))
            #expect(await browser.ask(.get, "/console/try").body.contains("alice · operator"))
            #expect(await gateway.admin(.delete, "/admin/v1/admin-tokens/alice").status == 204)
            #expect(await browser.ask(.get, "/console/try").status == 303)
        }
    }

    @Test(
        "Hostile names stay text in every column",
        arguments: [
            "<img src=x onerror=alert(1)>", "\"><script>alert(1)</script>", "' onmouseover='x", "\u{202E}evil&lt;",
        ]
    )
    func hostile(name: String) async throws {
        try await TestGateway.run { gateway, key in
            let json = JSON.string(name)
            for tenant in ["demo", "other"] {
                var body: JSON = ["display_name": json]
                // Without its certificate the key of the first one would be worth nothing.
                if tenant == "other" { body["client_names"] = ["spiffe://a/b"] }
                _ = await gateway.admin(.put, "/admin/v1/tenants/\(tenant)", body: body.encoded)
            }
            let keyBody = JSON.object(["name": json, "scopes": ["messages:send"]]).encoded
            #expect(await gateway.admin(.post, "/admin/v1/tenants/demo/keys", body: keyBody).status == 201)
            let batch = JSON.object([
                "label": json, "to": ["tokens": ["phone-1"]], "message": ["notification": ["title": json]],
                "send_at": .string(gateway.clock.now().advanced(by: .seconds(3_600)).rfc3339),
            ])
            let created = await gateway.data(.post, "/v1/tenants/demo/batches", key: key, body: batch.encoded)
            let id = try #require(try created.json["id"]?.text, "\(created.body)")
            try await gateway.settleAudit()

            let browser = Browser(gateway)
            try await browser.logIn()
            let encoded = PercentEncoding.encoded(name)
            var answers: [Answer] = []
            for path in Self.pages + [
                "/console/tenants?search=\(encoded)", "/console/batches?tenant=\(encoded)",
                "/console/batches?state=\(encoded)", "/console/audit?principal=\(encoded)",
                "/console/tenants/demo/batches/\(id)", "/console/tenants/demo/batches/\(id)/results?outcome=waiting",
                "/console/audit?from=\(encoded)", "/console/audit?\(encoded)=1", "/console/tenants/\(encoded)",
            ] {
                answers.append(await browser.ask(.get, path))
            }
            answers.append(await browser.ask(.post, "/console/device", ["tenant": name, "token": name]))
            answers.append(await browser.ask(.post, "/console/device", ["tenant": "demo", "token": name]))
            for act in ["explain", "dry-run", name] {
                let fields = ["tenant": "demo", "message": "{\"token\":\(json.encoded)}", "act": act]
                answers.append(await browser.ask(.post, "/console/try", fields))
                answers.append(await browser.ask(.post, "/console/try", ["tenant": name, "message": name, "act": act]))
            }
            for answer in answers {
                #expect(!answer.body.contains("<img") && !answer.body.contains("<script>"))
                #expect(!answer.body.contains(name) || name.hasPrefix("\u{202E}"))
            }
            #expect(answers.contains { $0.body.contains("lt;") || $0.body.contains("&#39;") })
        }
    }

    @Test("A device's page has its limits and records, and its token is in no address")
    func device() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.data(.post, "/v1/tenants/demo/messages", key: key, body: #"{"token":"phone-1"}"#)
            try await gateway.settleAudit()
            let browser = Browser(gateway)
            try await browser.logIn()
            let page = await browser.ask(.post, "/console/device", ["tenant": "demo", "token": "phone-1"])
            #expect(page.status == 200)
            for text in ["message.send", "not retired", "device 180/60s:60"] {
                #expect(page.body.contains(text), "\(text)")
            }
            #expect(!page.body.contains("phone-1"))
            #expect(await browser.ask(.get, "/console/device?token=phone-1").status == 200)
            #expect(await !browser.ask(.get, "/console/device?token=phone-1").body.contains("phone-1"))
            #expect(await browser.ask(.post, "/console/device", ["tenant": "none", "token": "x"]).status == 404)
            #expect(await browser.ask(.post, "/console/device", ["tenant": "demo"]).status == 422)
        }
    }

    @Test("An explanation and a dry run are shown, audited by the operator's name, and charged")
    func trial() async throws {
        try await TestGateway.run { gateway, _ in
            let body = #"{"name":"alice","role":"operator"}"#
            let created = await gateway.admin(.post, "/admin/v1/admin-tokens", body: body)
            let browser = Browser(gateway)
            try await browser.logIn(try #require(try created.json["token"]?.text))
            let message = #"{"token": "phone-1", "notification": {"title": "Hello"}}"#
            let fields = ["tenant": "demo", "message": message]
            let explained = await browser.ask(.post, "/console/try", fields.merging(["act": "explain"]) { $1 })
            #expect(explained.status == 200 && explained.body.contains("&quot;requests&quot;: ["))
            #expect(gateway.upstream.calls.isEmpty)
            let tried = await browser.ask(.post, "/console/try", fields.merging(["act": "dry-run"]) { $1 })
            #expect(tried.status == 200 && tried.body.contains("&quot;status&quot;: &quot;accepted&quot;"))
            #expect(gateway.upstream.calls.map(\.command.message.dryRun) == [true])
            let wrong = await browser.ask(.post, "/console/try", ["tenant": "demo", "message": "{", "act": "explain"])
            #expect(wrong.status == 200 && wrong.body.contains("malformed_json"))
            try await gateway.settleAudit()
            for action in ["message.explain", "message.validate"] {
                #expect(try await gateway.auditRecords(of: action).map(\.principal) == ["admin:alice"], "\(action)")
            }
            #expect(await browser.ask(.get, "/console/tenants/demo").body.contains("8998 of 9000"))
        }
    }

    @Test("A batch is paused, resumed and cancelled, and its results name no whole token")
    func batches() async throws {
        try await TestGateway.run { gateway, key in
            let token = String(repeating: "t", count: 150)
            let body =
                JSON.object([
                    "to": ["tokens": [.string(token)]], "message": ["data": ["a": "b"]], "label": "news",
                    "send_at": .string(gateway.clock.now().advanced(by: .seconds(3_600)).rfc3339),
                ])
                .encoded
            let created = await gateway.data(.post, "/v1/tenants/demo/batches", key: key, body: body)
            let id = try #require(try created.json["id"]?.text, "\(created.body)")
            let browser = Browser(gateway)
            try await browser.logIn()
            #expect(await browser.ask(.get, "/console/batches?state=queued").body.contains("news"))
            let path = "/console/tenants/demo/batches/\(id)"
            for (act, state) in [("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled")] {
                let answer = await browser.ask(.post, "\(path)/\(act)")
                #expect(answer.status == 303 && answer.header("Location") == path, "\(answer.body)")
                #expect(await browser.ask(.get, path).body.contains("\(state)</span>"), "\(act)")
            }
            #expect(await browser.ask(.post, "\(path)/resume").status == 409)
            // A batch has one tenant.
            _ = await gateway.admin(.put, "/admin/v1/tenants/other", body: "{}")
            #expect(await browser.ask(.get, "/console/tenants/other/batches/\(id)").status == 404)
            #expect(await browser.ask(.post, "/console/tenants/other/batches/\(id)/pause").status == 404)
            let results = await browser.ask(.get, "\(path)/results")
            #expect(results.body.contains("tttttttt…tttt") && !results.body.contains(token))
            try await gateway.settleAudit()
            for action in ["batch.pause", "batch.resume", "batch.cancel"] {
                #expect(try await gateway.auditRecords(of: action).allSatisfy { $0.principal == "admin" }, "\(action)")
            }
        }
    }

    @Test("The overview shows the state that the metrics report")
    func overview() async throws {
        try await TestGateway.run { gateway, _ in
            gateway.metricsText.change {
                $0 = """
                    fcmgw_store_up{store="postgres"} 0
                    fcmgw_limiter_fallback_active 1
                    fcmgw_replicas 3
                    fcmgw_leader 1
                    fcmgw_audit_spool_bytes 77
                    fcmgw_batches{state="running"} 2
                    fcmgw_breaker_state{api="v1",project="acme<b>"} 2
                    fcmgw_messages_total{kind="token",outcome="unregistered",tenant="a"} 5

                    """
            }
            let browser = Browser(gateway)
            try await browser.logIn()
            let page = await browser.ask(.get, "/console").body
            for text in [
                "down", "limits.whenRedisFails: local", "3, this one leads", "77 bytes wait", "2 running",
                "acme&lt;b&gt;",
                "no calls go through", "unregistered",
            ] {
                #expect(page.contains(text), "\(text)")
            }
        }
    }
}
