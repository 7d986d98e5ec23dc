import GatewayCore
import GatewayTestKit
import NIOCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct TenantPlanTests {
    private static let now = Timestamp(rfc3339: "2026-03-01T12:00:00Z") ?? Timestamp(microseconds: 0)

    private static func declared(_ yaml: String) throws -> [DeclaredTenant] {
        try TenantsFile(name: "t.yaml", text: "tenants:\n" + yaml).tenants
    }

    private static func present(
        _ settings: String,
        limits: String? = nil,
        credentials: [UpstreamKind: String] = [:],
        keys: [String] = []
    ) throws -> PresentTenant {
        var tenant = try PresentTenant(try JSONValue(parsing: settings))
        if let limits { tenant.limits = try PresentTenant.limits(try JSONValue(parsing: limits)) }
        tenant.credentials = try credentials.mapValues { PresentTenant.Credential(try JSONValue(parsing: $0)) }
        tenant.keys = try keys.map { try PresentTenant.Key(try JSONValue(parsing: $0)) }
        return tenant
    }

    private static func plan(
        _ yaml: String,
        _ present: [PresentTenant] = [],
        isPruning: Bool = false
    ) throws -> TenantPlan {
        TenantPlan(try Self.declared(yaml), present: present, isPruning: isPruning, now: Self.now)
    }

    private static let shop = #"{"tenant":"shop","display_name":"shop","upstream":"v1","disabled":false}"#
    private static let key = """
        {"id":"k123456789","name":"orders","scopes":["audit:read","messages:send"],"topic_prefixes":[],\
        "created_at":"2026-01-01T00:00:00.000Z"}
        """

    @Test("A tenant that matches its declaration needs no change")
    func same() throws {
        let yaml = """
              - tenant: shop
                limits: {topic: [1/2s:3]}
                keys: [{name: orders, scopes: [messages:send, audit:read, messages:send]}]
            """
        let limits =
            #"{"topic":[{"rate":1,"per_s":2,"burst":3}],"device":[{"rate":9,"per_s":9,"burst":9}],"own":["topic"]}"#
        let present = try Self.present(Self.shop, limits: limits, keys: [Self.key])
        let plan = try Self.plan(yaml, [present])
        #expect(plan.changes.isEmpty && plan.conflicts.isEmpty && plan.remarks.isEmpty)
    }

    @Test("A difference is a line for each field and one call with the whole object")
    func differences() throws {
        let yaml = """
              - tenant: shop
                display_name: The shop
                project_id: p
                limits: {device: [1/60s:2]}
              - tenant: new
            """
        let limits = #"{"topic":[{"rate":1,"per_s":2,"burst":3}],"own":["topic"]}"#
        let settings = #"{"tenant":"shop","display_name":"shop","upstream":"v1","sender_id":"7","disabled":false}"#
        let plan = try Self.plan(yaml, [try Self.present(settings, limits: limits)])
        let lines = plan.changes.map(\.lines.plain).joined(separator: "\n")
        #expect(
            lines == """
                ~ tenant shop
                    ~ display_name: shop → The shop
                    + project_id: p
                    - sender_id: 7
                ~ limits of tenant shop
                    + device: 1/60s:2
                    - topic: 1/2s:3
                + tenant new
                    + display_name: new
                    + upstream: v1
                    + disabled: false
                """
        )
        let body = try #require(plan.changes.first?.body?.revealed)
        let expected = #"{"disabled":false,"display_name":"The shop","project_id":"p","upstream":"v1"}"#
        #expect(String(buffer: body) == expected)
    }

    @Test("Limits declared as empty are reset to the defaults; undeclared limits stay")
    func limits() throws {
        let own = #"{"topic":[{"rate":1,"per_s":2,"burst":3}],"own":["topic"]}"#
        let present = try Self.present(Self.shop, limits: own)
        let back = try Self.plan("  - {tenant: shop, limits: {}}", [present])
        #expect(back.changes.map(\.action) == [.delete])
        #expect(back.changes.first?.body?.revealed == ByteBuffer(string: "{}"))
        #expect(try Self.plan("  - tenant: shop", [present]).changes.isEmpty)
    }

    @Test("Valid keys, credentials and limits that the file does not name are reported and stay")
    func unnamed() throws {
        let present = try Self.present(
            Self.shop,
            limits: #"{"topic":[{"rate":1,"per_s":2,"burst":3}],"own":["topic"]}"#,
            credentials: [.v1: "{}", .legacy: "{}"],
            keys: [
                Self.key, #"{"id":"k2","name":"old","scopes":[],"revoked_at":"2026-01-01T00:00:00.000Z"}"#,
                #"{"id":"k3","name":"over","scopes":[],"expires_at":"2026-01-01T00:00:00.000Z"}"#,
                #"{"id":"k4","name":"web","scopes":["messages:send"]}"#,
            ]
        )
        let yaml = """
              - tenant: shop
                keys: [{name: orders, scopes: [messages:send, audit:read]}]
            """
        let plan = try Self.plan(yaml, [present])
        #expect(plan.changes.isEmpty && plan.conflicts.isEmpty && plan.remarks.isEmpty)
        #expect(
            plan.unnamed == [
                "limits of tenant shop", "legacy credential of tenant shop", "v1 credential of tenant shop",
                "key web (k4) of tenant shop",
            ]
        )
        #expect(plan.unnamedRemarks.first?.contains("key web (k4)") == true)
    }

    @Test("Tenants that the file does not name stay unless they are pruned")
    func pruning() throws {
        let present = [try Self.present(Self.shop), try Self.present(#"{"tenant":"old"}"#)]
        let kept = try Self.plan("  - tenant: shop", present)
        #expect(kept.changes.isEmpty && kept.remarks.count == 1 && kept.remarks[0].contains("old"))
        let pruned = try Self.plan("  - tenant: shop", present, isPruning: true)
        #expect(pruned.deletedTenants.map(\.text) == ["old"])
        #expect(pruned.changes.map(\.path) == [["tenants", "old"]])
        #expect(try Self.plan("  []", present, isPruning: true).deletedTenants.map(\.text) == ["shop", "old"])
    }

    @Test("A credential is replaced only if its fingerprint or its endpoint differs")
    func credentials() async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("k", "the-shop's-server-key")
            let fingerprint = LegacyCredential(serverKey: Secret("the-shop's-server-key"), endpoint: nil).fingerprint
            func changes(_ known: String?, endpoint: String = "") throws -> [String] {
                let yaml = "  - {tenant: shop, credentials: {legacy: {server_key_file: \(file)\(endpoint)}}}"
                let credentials: [UpstreamKind: String] = known.map { [.legacy: $0] } ?? [:]
                let plan = try Self.plan(yaml, [try Self.present(Self.shop, credentials: credentials)])
                return plan.changes.flatMap { change in
                    change.fields.map { "\(change.action.rawValue) \($0.name)" }
                }
            }
            let same = #"{"fingerprint":"\#(fingerprint)","endpoint":"http://x"}"#
            #expect(try changes(same, endpoint: ", endpoint: 'http://x'").isEmpty)
            #expect(try changes(same) == ["change endpoint"])
            #expect(try changes(#"{"fingerprint":"0"}"#) == ["change fingerprint"])
            #expect(try changes(nil) == ["create fingerprint"])
        }
    }

    @Test(
        "A key is matched by name: a differing key is a conflict, a revoked one is created again",
        arguments: [
            (#""scopes":["audit:read"],"topic_prefixes":[]"#, "", 0, 1),
            (#""scopes":["audit:read","messages:send"],"topic_prefixes":["a"]"#, "", 0, 1),
            (
                #""scopes":["audit:read","messages:send"],"topic_prefixes":[],"revoked_at":"2026-01-01T00:00:00.000Z""#,
                "", 1, 0
            ),
            (
                #""scopes":["audit:read","messages:send"],"topic_prefixes":[],"expires_at":"2027-01-01T00:00:00.000Z""#,
                ", expires_at: '2027-01-01T01:00:00+01:00'", 0, 0
            ),
            (
                #""scopes":["audit:read","messages:send"],"topic_prefixes":[],"expires_at":"2026-01-01T00:00:00.000Z""#,
                ", expires_at: '2026-01-01T00:00:00Z'", 0, 0
            ),
        ]
    )
    func keys(members: String, more: String, changes: Int, conflicts: Int) throws {
        let known = #"{"id":"k123456789","name":"orders",\#(members)}"#
        let yaml = "  - {tenant: shop, keys: [{name: orders, scopes: [messages:send, audit:read]\(more)}]}"
        let plan = try Self.plan(yaml, [try Self.present(Self.shop, keys: [known])])
        #expect((plan.changes.count, plan.conflicts.count) == (changes, conflicts), "\(plan.conflicts)")
        #expect(plan.conflicts.allSatisfy { $0.contains("key revoke shop k123456789") })
    }

    @Test("A rotated key and its successor need no change while both are valid")
    func rotated() throws {
        let old = Self.key.replacing("}", with: #","expires_at":"2026-03-02T00:00:00.000Z"}"#)
        let yaml = "  - {tenant: shop, keys: [{name: orders, scopes: [messages:send, audit:read]}]}"
        let plan = try Self.plan(yaml, [try Self.present(Self.shop, keys: [old, Self.key])])
        #expect(plan.changes.isEmpty && plan.conflicts.isEmpty)
    }

    @Test("A declared key that has expired is not created")
    func expired() throws {
        let yaml = """
              - {tenant: shop, keys: [{name: orders, scopes: [audit:read], expires_at: 2026-03-01T12:00:00Z}]}
            """
        let plan = try Self.plan(yaml, [try Self.present(Self.shop)])
        #expect(plan.changes.isEmpty && plan.remarks.count == 1)
    }

    @Test("An imported key is created after its old tenant is pruned; without pruning it is a conflict")
    func moved() async throws {
        try await TemporaryDirectory.with { directory in
            let key = APIKey.generate()
            let file = try directory.file("k", key.secret.revealText())
            let yaml = """
                  - {tenant: first, keys: [{name: one, scopes: [audit:read]}]}
                  - {tenant: new, keys: [{name: orders, scopes: [audit:read], key_file: \(file)}]}
                """
            let known = #"{"id":"\#(key.id)","name":"orders","scopes":["audit:read"],"topic_prefixes":[]}"#
            let present = [try Self.present(#"{"tenant":"old"}"#), try Self.present(Self.shop, keys: [known])]
            #expect(TenantPlan.asksWhoseKeys(try Self.declared(yaml), Array(present.prefix(1))))
            let pruned = try Self.plan(yaml, present, isPruning: true)
            #expect(pruned.conflicts.isEmpty)
            #expect(
                pruned.changes.map { "\($0.action.mark) \($0.title)" } == [
                    "+ tenant first", "+ key one of tenant first", "+ tenant new", "- tenant shop",
                    "+ key orders of tenant new", "- tenant old",
                ]
            )
            #expect(pruned.deletedTenants.map(\.text) == ["shop", "old"])
            let kept = try Self.plan(yaml, present)
            #expect(kept.conflicts.count == 1)
            #expect(kept.conflicts.first?.contains("(\(key.id)) belongs to tenant shop: declare another key") == true)
            // Both tenants stay, and a key can't change its tenant.
            let both = try Self.plan("\(yaml)\n  - tenant: shop", present, isPruning: true)
            #expect(both.conflicts.first?.contains("belongs to tenant shop: a key can't change its tenant") == true)
            // A key that the gateway makes can't belong to another tenant.
            let made = try Self.declared("  - {tenant: shop, keys: [{name: one, scopes: [audit:read]}]}")
            #expect(!TenantPlan.asksWhoseKeys(made, present))
        }
    }

    @Test("A body larger than the gateway accepts is a conflict in the plan")
    func size() throws {
        // {"disabled":false,"display_name":"…","upstream":"v1"}
        let name = String(repeating: "n", count: Administration.maxBodyBytes - 52)
        let plan = try Self.plan("  - {tenant: a, display_name: \(name)}\n  - {tenant: b, display_name: \(name)n}")
        #expect(plan.conflicts.count == 1, "\(plan.conflicts.map { $0.prefix(60) })")
        #expect(plan.conflicts.first?.contains("the tenant b takes 65537 bytes") == true, "\(plan.conflicts)")
    }

    @Test("An imported key is matched by id, never shown, and a conflict if revoked or named differently")
    func imported() async throws {
        try await TemporaryDirectory.with { directory in
            let key = APIKey.generate()
            let file = try directory.file("k", key.secret.revealText())
            let yaml = "  - {tenant: shop, keys: [{name: orders, scopes: [audit:read], key_file: \(file)}]}"
            func plan(_ known: String...) throws -> TenantPlan {
                try Self.plan(yaml, [try Self.present(Self.shop, keys: known)])
            }
            let fields = #""scopes":["audit:read"],"topic_prefixes":[]"#
            let namesake = #"{"id":"x","name":"orders",\#(fields)}"#
            let made = try plan(namesake)
            let body = try #require(made.changes.first?.body?.revealed)
            #expect(try JSONDocument(parsing: body).root.text("key") == key.secret.revealText())
            let json = JSONWriter.object { writer in
                writer.key("changes")
                writer.array(made.changes) { $1.write(to: &$0) }
            }
            let shown = made.changes.map { "\($0.lines)" }.joined() + String(buffer: json) + String(reflecting: made)
            #expect(!shown.contains(key.secret.revealText()) && shown.contains(key.id))
            #expect(try plan(#"{"id":"\#(key.id)","name":"orders",\#(fields)}"#).changes.isEmpty)
            #expect(try plan(#"{"id":"\#(key.id)","name":"other",\#(fields)}"#).conflicts.count == 1)
            let revoked = #"{"id":"\#(key.id)","name":"orders",\#(fields),"revoked_at":"2026-01-01T00:00:00.000Z"}"#
            #expect(try plan(revoked).conflicts.count == 1)
        }
    }
}
