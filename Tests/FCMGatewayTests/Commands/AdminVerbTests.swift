import ArgumentParser
import GatewayTestKit
import StrictJSON
import Synchronization
import Testing

@testable import FCMGateway
@testable import GatewayService

struct AdminVerbTests {
    /// A verb, the request that it must make, and the output that it must print.
    struct Case: Sendable, CustomTestStringConvertible {
        let arguments: String
        /// The requests that the verb makes first.
        let reads: [String]
        let request: String
        let body: String
        let status: Int
        let reply: String
        let answer: String
        let remark: String

        var testDescription: String { self.arguments }

        init(
            _ arguments: String,
            _ request: String,
            after reads: String...,
            body: String = "",
            status: Int = 200,
            reply: String = "{}",
            answer: String = "",
            remark: String = ""
        ) {
            (self.arguments, self.reads, self.request) = (arguments, reads, request)
            (self.body, self.status) = (body, status)
            (self.reply, self.answer, self.remark) = (reply, answer, remark)
        }
    }

    // One verb per entry; the formatter would put each argument on its own line.
    // swift-format-ignore
    private static let cases = [
        Case("tenant list", "GET /admin/v1/tenants?limit=500",
            reply: #"{"tenants":[{"tenant":"a","upstream":"legacy","disabled":false},{"tenant":"bcd"}]}"#,
            answer: """
                TENANT  DISPLAY_NAME  UPSTREAM  PROJECT_ID  DISABLED  UPDATED_AT
                a                     legacy                false
                bcd
                """),
        Case("tenant list --limit 2", "GET /admin/v1/tenants?limit=2", reply: #"{"tenants":[]}"#, remark: "no tenants"),
        Case("tenant get demo", "GET /admin/v1/tenants/demo",
            reply: #"{"tenant":"demo","display_name":"D\u001b[1m","disabled":true}"#,
            answer: "tenant:        demo\ndisplay_name:  D\\u{1b}[1m\ndisabled:      true"),
        Case("tenant put demo --display-name Demo --sender-id 7 --output json", "PUT /admin/v1/tenants/demo",
            after: "GET /admin/v1/tenants/demo",
            body: #"{"disabled":false,"display_name":"Demo","sender_id":"7","upstream":"v1"}"#,
            reply: #"{"tenant":"demo"}"#, answer: "{\n  \"tenant\" : \"demo\"\n}"),
        Case("tenant set demo --upstream v1 --reset sender-id --reset client-names", "PATCH /admin/v1/tenants/demo",
            body: #"{"upstream":"v1","sender_id":null,"client_names":null}"#,
            reply: #"{"tenant":"demo","upstream":"v1"}"#, answer: "tenant:    demo\nupstream:  v1"),
        Case("tenant disable demo", "PATCH /admin/v1/tenants/demo", body: #"{"disabled":true}"#,
            reply: #"{"tenant":"demo"}"#, answer: "tenant:  demo"),
        Case("tenant enable demo", "PATCH /admin/v1/tenants/demo", body: #"{"disabled":false}"#,
            reply: #"{"tenant":"demo"}"#, answer: "tenant:  demo"),
        Case("tenant delete demo --yes", "DELETE /admin/v1/tenants/demo",
            status: 204, reply: "", remark: "tenant demo deleted"),
        Case("tenant delete demo --yes --output json", "DELETE /admin/v1/tenants/demo", status: 204, reply: "",
            answer: "{\n  \"deleted\" : true,\n  \"tenant\" : \"demo\"\n}", remark: "tenant demo deleted"),
        Case("credential get demo legacy", "GET /admin/v1/tenants/demo/credentials/legacy",
            reply: #"{"kind":"legacy","fingerprint":"ab12","version":3}"#,
            answer: "kind:         legacy\nfingerprint:  ab12\nversion:      3"),
        Case("credential delete demo v1 --yes", "DELETE /admin/v1/tenants/demo/credentials/v1",
            status: 204, reply: "", remark: "v1 credential deleted"),
        Case("credential check demo", "POST /admin/v1/tenants/demo/credentials/check",
            reply: """
                {"checks":[{"kind":"legacy","in_use":false,"finding":"key_refused","detail":"FCM refuses it"},\
                {"kind":"v1","in_use":true,"finding":"valid","detail":"Fine","upstream_code":"200"}]}
                """,
            answer: """
                KIND    IN_USE  FINDING      DETAIL          UPSTREAM_CODE
                legacy  false   key_refused  FCM refuses it
                v1      true    valid        Fine            200
                """),
        Case("key create demo --scope messages:send --name ci --expires-at 2030-01-01T01:00:00+01:00",
            "POST /admin/v1/tenants/demo/keys",
            body: #"{"expires_at":"2030-01-01T00:00:00.000Z","name":"ci","scopes":["messages:send"]}"#,
            status: 201, reply: #"{"id":"k1","key":"fgw_k1_s_c","name":"ci","scopes":["messages:send"]}"#,
            answer: "fgw_k1_s_c",
            remark: "id:      k1\nname:    ci\nscopes:  messages:send\nThis is the only time the key is shown."),
        Case("key rotate demo k1", "POST /admin/v1/tenants/demo/keys/k1/rotate",
            after: "GET /admin/v1/tenants/demo/keys?limit=500", body: #"{"overlap_s":86400}"#,
            status: 201, reply: #"{"id":"k2","key":"fgw_k2_s_c","keys":[]}"#,
            answer: "fgw_k2_s_c", remark: "id:  k2\nThis is the only time the key is shown."),
        Case("key list demo", "GET /admin/v1/tenants/demo/keys?limit=500",
            reply: #"{"keys":[{"id":"k1","name":"ci","scopes":["a","b"],"topic_prefixes":[],"created_at":"t"}]}"#,
            answer: """
                ID  NAME  SCOPES  TOPIC_PREFIXES  EXPIRES_AT  CREATED_AT  REVOKED_AT
                k1  ci    a,b                                 t
                """),
        Case("key revoke demo k1/x", "DELETE /admin/v1/tenants/demo/keys/k1%2Fx",
            status: 204, reply: "", remark: "key k1/x revoked"),
        Case("limit get demo", "GET /admin/v1/tenants/demo/limits",
            reply: #"{"tenant":[{"rate":9,"per_s":1,"burst":2}],"device":[{"rate":180,"per_s":60,"burst":60}]}"#,
            answer: """
                SCOPE   POLICY
                device  180/60s:60
                tenant  9/1s:2
                """),
        Case("limit put demo --device 180/1m:60 --device-collapsible 1/180s:20 --output json",
            "PUT /admin/v1/tenants/demo/limits", after: "GET /admin/v1/tenants/demo/limits",
            body: """
                {"device":[{"burst":60,"per_s":60,"rate":180}],\
                "device_collapsible":[{"burst":20,"per_s":180,"rate":1}]}
                """, answer: "{\n\n}"),
        Case("limit set demo --topic 9/1s:2", "PATCH /admin/v1/tenants/demo/limits",
            body: #"{"topic":[{"burst":2,"per_s":1,"rate":9}]}"#, status: 204, reply: "", remark: "limits stored"),
        Case("limit reset demo topic device", "PATCH /admin/v1/tenants/demo/limits",
            body: #"{"topic":null,"device":null}"#, status: 204, reply: "", remark: "limits stored"),
        Case("limit put demo --defaults", "PUT /admin/v1/tenants/demo/limits", body: "{}",
            status: 204, reply: "", remark: "limits stored"),
        Case("audit query --tenant demo --outcome rejected --target a+b --from 2026-01-01T00:00:00Z", """
            GET /admin/v1/audit?tenant=demo&outcome=rejected&target=a%2Bb&from=2026-01-01T00%3A00%3A00.000Z&limit=500
            """, reply: #"{"records":[{"time":"t1","action":"send","outcome":"rejected","bytes":3}]}"#,
            answer: "TIME  ACTION  OUTCOME\nt1    send    rejected"),
        Case("audit query --limit 2 --from 2026-01-01 --output json", """
            GET /admin/v1/audit?from=2026-01-01T00%3A00%3A00.000Z&limit=2
            """, reply: #"{"records":[{"seq":2},{"seq":1}]}"#, answer: "{\"seq\":2}\n{\"seq\":1}"),
        Case("audit query", "GET /admin/v1/audit?limit=500", reply: #"{"records":[]}"#, remark: "no records"),
    ]

    @Test("Each verb makes its request and prints the answer", arguments: Self.cases)
    func verb(_ test: Case) async throws {
        let arguments = test.arguments.split(separator: " ").map(String.init)
        let verb = try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? any AdminVerb)
        let reply = StubServer.Reply(status: test.status, body: test.reply)
        try await StubServer.withClient({ _ in reply }) { api, server in
            let outputs = try await verb.outputs(api)
            #expect(server.requests.map(\.line) == test.reads + [test.request])
            #expect(server.requests.last?.body == test.body)
            #expect(outputs.map(\.answer) == [test.answer])
            #expect(outputs.map(\.remark) == [test.remark])
        }
    }

    @Test(
        "A verb that resets or deletes needs --yes and names what it changes; its PUT has If-Match",
        arguments: [
            (
                "tenant put demo --display-name Other",
                """
                {"display_name":"D","upstream":"legacy","project_id":"p","sender_id":"7","client_names":["c"],"disabled":true}
                """,
                [
                    "upstream: legacy → v1", "project_id: p → none", "sender_id: 7 → none", "client_names: ",
                    "disabled: true → false",
                ]
            ),
            (
                "limit put demo --topic 9/1s:2", #"{"own":["device","topic"]}"#,
                ["This resets tenant demo to the default for device."]
            ),
            ("tenant delete demo", "{}", ["Delete demo"]),
            ("credential delete demo v1", #"{"upstream":"v1"}"#, ["which its messages use"]),
        ]
    )
    func resets(arguments: String, present: String, told: [String]) async throws {
        let words = arguments.split(separator: " ").map(String.init)
        let reply = StubServer.Reply(headers: ["ETag": "\"1-2\""], body: present)
        try await StubServer.withClient({ _ in reply }) { api, server in
            let asking = try #require(try FCMGatewayCommand.parseAsRoot(words) as? any AdminVerb)
            let error = await #expect(throws: ValidationError.self) { try await asking.outputs(api) }
            for text in told { #expect(error?.message.contains(text) == true, "\(error?.message ?? "")") }
            #expect(server.requests.allSatisfy { $0.method == "GET" })
            let sure = try #require(try FCMGatewayCommand.parseAsRoot(words + ["--yes"]) as? any AdminVerb)
            _ = try await sure.outputs(api)
            let last = try #require(server.requests.last)
            #expect(last.method != "GET")
            if last.method == "PUT" { #expect(last.headers["if-match"] == "\"1-2\"") }
        }
    }

    @Test("A key is rotated by its name if exactly one key in use has that name")
    func rotateByName() async throws {
        let keys = """
            {"keys":[{"id":"k1","name":"ci","revoked_at":"2026-01-01T00:00:00Z"},{"id":"k2","name":"ci"},\
            {"id":"k3","name":"twice"},{"id":"k4","name":"twice"},{"id":"k5","name":"ci","expires_at":"2020-01-01T00:00:00Z"}]}
            """
        try await StubServer.withClient({ .init(body: $0.method == "GET" ? keys : #"{"id":"k9","key":"x"}"#) }) {
            api,
            server in
            func rotate(_ key: String) async throws {
                let verb = try FCMGatewayCommand.parseAsRoot(["key", "rotate", "demo", key]) as? KeyCommand.Rotate
                _ = try await #require(verb).outputs(api)
            }
            try await rotate("ci")
            #expect(server.requests.last?.line == "POST /admin/v1/tenants/demo/keys/k2/rotate")
            let error = await #expect(throws: CommandFailure.self) { try await rotate("twice") }
            #expect(error?.message == "several keys are named twice: give an id, one of k3, k4")
        }
    }

    @Test("A server key is read from its file and not printed")
    func credentialPut() async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("key", "AAAA:secret\n")
            let options = ["--server-key-file", file, "--endpoint", "http://localhost:8085/"]
            let arguments = ["credential", "put", "demo", "legacy"] + options
            let verb = try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? CredentialCommand.Put)
            let reply = StubServer.Reply(body: #"{"kind":"legacy","fingerprint":"f1","version":1}"#)
            try await StubServer.withClient({ _ in reply }) { api, server async throws in
                let table = "kind:         legacy\nfingerprint:  f1\nversion:      1"
                #expect(try await verb.outputs(api) == [CommandOutput(table, remark: "credential stored")])
                #expect(server.requests.first?.line == "PUT /admin/v1/tenants/demo/credentials/legacy")
                let body = #"{"endpoint":"http://localhost:8085","server_key":"AAAA:secret"}"#
                #expect(server.requests.first?.body == body)
            }
        }
    }

    @Test("A limits file is sent unchanged")
    func limitFile() async throws {
        try await TemporaryDirectory.with { directory in
            let body = #"{ "topic" : [], "topic": 1e2 }"#
            let file = try directory.file("limits.json", body)
            let arguments = ["limit", "put", "demo", "--file", file]
            let verb = try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? LimitCommand.Put)
            try await StubServer.withClient({ _ in .init(body: "{}") }) { api, server in
                try await verb.perform(AdminClient(api)) { _ in }
                #expect(server.requests.map(\.body) == ["", body])
            }
        }
    }

    @Test("audit tail prints the newest records, oldest first, one per line")
    func auditTail() async throws {
        let records = #"{"seq":2,"time":"t2","code":null},{"seq":1,"time":"t1","action":"send"}"#
        let reply = StubServer.Reply(body: #"{"records":[\#(records)],"next_cursor":"n"}"#)
        for (arguments, lines) in [
            (["audit", "tail", "-n", "2"], ["t1 action=send seq=1", "t2 seq=2"]),
            (
                ["audit", "tail", "-n", "2", "--output", "json"],
                [#"{"action":"send","seq":1,"time":"t1"}"#, #"{"code":null,"seq":2,"time":"t2"}"#]
            ),
        ] {
            let verb = try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? AuditCommand.Tail)
            try await StubServer.withClient({ _ in reply }) { api, server async throws in
                #expect(try await verb.outputs(api).map(\.answer) == lines)
                #expect(server.requests.map(\.line) == ["GET /admin/v1/audit?limit=2"])
            }
        }
    }

    @Test("audit tail -f reads pages until one reaches a printed record, and prints only new records")
    func auditFollow() async throws {
        let verb = try #require(try FCMGatewayCommand.parseAsRoot(["audit", "tail", "-f"]) as? AuditCommand.Tail)
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { request in
            if request.uri.contains("cursor=older") {
                .init(body: #"{"records":[{"writer":"w","seq":3},{"writer":"w","seq":2}],"next_cursor":"oldest"}"#)
            } else {
                .init(body: #"{"records":[{"writer":"w","seq":5},{"writer":"w","seq":4}],"next_cursor":"older"}"#)
            }
        }
        try await StubServer.withClient(answer) { api, server in
            var trail = AuditTrail()
            _ = trail.unseen([try JSONValue(parsing: #"{"writer":"w","seq":2}"#)])
            var lines: [String] = []
            try await verb.poll(AdminClient(api), &trail) { lines.append($0.answer) }
            #expect(lines == ["seq=3 writer=w", "seq=4 writer=w", "seq=5 writer=w"])
            #expect(server.requests.count == 2)
            try await verb.poll(AdminClient(api), &trail) { lines.append($0.answer) }
            #expect(lines.count == 3 && server.requests.count == 3)
        }
    }

    @Test("audit tail -f waits for a failing gateway, loses no record, and ends if the token is refused")
    func auditFollowOverRestart() async throws {
        let verb = try #require(try FCMGatewayCommand.parseAsRoot(["audit", "tail", "-f"]) as? AuditCommand.Tail)
        let statuses = Mutex([200, 503, 503, 200, 200, 401])
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { request in
            let status = statuses.withLock { $0.removeFirst() }
            if request.uri.contains("cursor") { return .init(status: status, body: #"{"records":[{"seq":1}]}"#) }
            return .init(status: status, body: #"{"records":[{"seq":2}],"next_cursor":"c"}"#)
        }
        try await StubServer.withClient(answer) { api, server in
            var trail = AuditTrail()
            var outputs: [CommandOutput] = []
            // The second page fails, so that the first must be read again.
            for _ in 1...3 { try await verb.poll(AdminClient(api), &trail) { outputs.append($0) } }
            #expect(outputs.map(\.answer) == ["", "", "seq=1", "seq=2"])
            #expect(outputs[0].remark.hasSuffix("waiting for the gateway"))
            #expect(outputs[1].remark == "the gateway answers again")
            await #expect(throws: APIError.self) { try await verb.poll(AdminClient(api), &trail) { _ in } }
        }
    }

    @Test("audit query prints page by page, stops at its limit and reports that more records match")
    func auditQuery() async throws {
        @Sendable func page(_ numbers: ClosedRange<Int>) -> StubServer.Reply {
            let records = numbers.map { #"{"seq":\#($0)}"# }.joined(separator: ",")
            return StubServer.Reply(body: #"{"records":[\#(records)],"next_cursor":"c\#(numbers.upperBound)"}"#)
        }
        for (arguments, limits, counts, remark) in [
            ([], [500, 500], [500, 500], "1000 records; more match: use --limit or --all"),
            (["--limit", "501"], [500, 1], [500, 1], "501 records; more match: use --limit or --all"),
            (["--all"], [500, 500, 500], [500, 500, 2], ""),
        ] as [([String], [Int], [Int], String)] {
            let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { request in
                if request.uri.contains("cursor=c1000") { return .init(body: #"{"records":[{"seq":1},{"seq":2}]}"#) }
                return request.uri.contains("cursor=c500") ? page(501...1_000) : page(1...500)
            }
            let line = ["audit", "query", "--output", "json"] + arguments
            let verb = try #require(try FCMGatewayCommand.parseAsRoot(line) as? AuditCommand.Query)
            try await StubServer.withClient(answer) { api, server in
                let outputs = try await verb.outputs(api)
                #expect(outputs.filter { !$0.answer.isEmpty }.map { $0.answer.split(separator: "\n").count } == counts)
                #expect(outputs.map(\.remark).joined() == remark)
                #expect(server.requests.map { $0.uri.contains("limit=\(limits[0])") }.first == true)
                #expect(server.requests.count == limits.count)
            }
        }
    }

    @Test("A service account file is sent whole; any other file is refused without quoting it")
    func serviceAccount() async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("account.json", #"{"private_key":"k/+", "type": "service_account"}"#)
            let verb = try Self.put(file, "--endpoint", "http://localhost:8085")
            try await StubServer.withClient({ _ in .init(body: #"{"kind":"v1","version":1}"#) }) { api, server in
                #expect(try await verb.outputs(api).map(\.answer) == ["kind:     v1\nversion:  1"])
                #expect(server.requests.first?.line == "PUT /admin/v1/tenants/demo/credentials/v1")
                let account = #""service_account":{"private_key":"k/+","type":"service_account"}"#
                #expect(server.requests.first?.body == #"{"endpoint":"http://localhost:8085",\#(account)}"#)
                for (content, reason) in [
                    ("secret stuff", "holds no JSON"),
                    (#"{"secret":1}"#, "is not a service account file: it has no private_key"),
                ] {
                    let other = try directory.file("other.json", content)
                    let verb = try Self.put(other)
                    await #expect(throws: CommandFailure("\(other) \(reason)")) {
                        try await verb.perform(AdminClient(api)) { _ in }
                    }
                }
                #expect(server.requests.count == 2)
            }
        }
    }

    @Test(
        "A service account sets the tenant's missing project; a mismatch is a warning",
        arguments: [
            (#"{"upstream":"v1"}"#, ["the tenant's project is now p, from the account"], 3),
            (#"{"upstream":"v1","project_id":"p"}"#, [], 2),
            (
                #"{"upstream":"legacy","project_id":"q"}"#,
                [
                    "warning: the account belongs to project p, but the tenant's project is q",
                    "warning: the tenant's messages use legacy; to use the new credential: "
                        + "fcm-gateway tenant set demo --upstream v1",
                ], 2
            ),
        ]
    )
    func project(tenant: String, told: [String], count: Int) async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("account.json", #"{"private_key":"k","project_id":"p"}"#)
            let verb = try Self.put(file)
            try await StubServer.withClient({ .init(body: $0.method == "GET" ? tenant : "{}") }) { api, server in
                let outputs = try await verb.outputs(api)
                #expect(outputs.map(\.remark) == [(["credential stored"] + told).joined(separator: "\n")])
                #expect(server.requests.count == count)
                if count == 3 { #expect(server.requests.last?.body == #"{"project_id":"p"}"#) }
            }
        }
    }

    @Test(
        "A check fails when the credential in use is not valid",
        arguments: [
            #"{"checks":[{"kind":"v1","in_use":true,"finding":"key_refused"}]}"#,
            #"{"checks":[{"kind":"v1","in_use":true,"finding":"missing"},{"kind":"legacy","finding":"valid"}]}"#,
            #"{"checks":[]}"#,
        ]
    )
    func failedCheck(reply: String) async throws {
        let verb = try #require(
            try FCMGatewayCommand.parseAsRoot(["credential", "check", "demo"]) as? CredentialCommand.Check
        )
        try await StubServer.withClient({ _ in .init(body: reply) }) { api, _ in
            var outputs: [CommandOutput] = []
            await #expect(throws: ExitCode.failure) { try await verb.perform(AdminClient(api)) { outputs.append($0) } }
            #expect(outputs.count == 1)
        }
    }

    private static func put(_ file: String, _ more: String...) throws -> CredentialCommand.Put {
        let arguments = ["credential", "put", "demo", "v1", "--service-account-file", file] + more
        return try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? CredentialCommand.Put)
    }
}
