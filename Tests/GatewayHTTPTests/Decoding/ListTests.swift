import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

/// The queries of every list, and the pages of tenants, keys and device groups.
struct ListTests {
    /// A list, its required query, and the queries that it refuses in addition to the common ones.
    struct List: Sendable, CustomTestStringConvertible {
        var path: String
        var query: String
        var faults: [(String, String)]

        var testDescription: String { self.path }

        init(_ path: String, query: String = "", _ faults: [(String, String)]) {
            self.path = path
            self.query = query
            self.faults = faults
        }
    }

    /// Queries that every list refuses.
    private static let faults: [(String, String)] = [
        ("limit=0", "invalid_field"), ("limit=501", "invalid_field"), ("limit=-1", "invalid_field"),
        ("limit=ten", "invalid_field"), ("limit=1.5", "invalid_field"), ("limit=+5", "invalid_field"),
        ("limit=%2B5", "invalid_field"), ("limit=%D9%A5", "invalid_field"), ("limit=5&limit=5", "invalid_field"),
        ("cursor=%2A%2A", "invalid_field"), ("cursor=!", "invalid_field"), ("colour=red", "unknown_field"),
        // A text that contains NUL.
        ("cursor=AA", "invalid_field"), ("cursor=%00", "invalid_field"), ("limit=5%0A", "invalid_field"),
        ("LIMIT=5", "unknown_field"), ("limi%74=5", "unknown_field"),
    ]

    /// Queries that every list of audit records refuses.
    private static let auditFaults: [(String, String)] = [
        ("from=yesterday", "invalid_field"), ("to=2026-13-01T00:00:00Z", "invalid_field"),
        ("from=2026-03-01", "invalid_field"), ("outcome=splendid", "invalid_field"),
        ("action=message.sent", "invalid_field"), ("cursor=MS44", "invalid_field"), ("cursor=MQ", "invalid_field"),
        ("cursor=YS5i", "invalid_field"), ("code=%00", "invalid_field"), ("principal=a%7F", "invalid_field"),
        ("request_id=%1F", "invalid_field"), ("message=a%00", "invalid_field"), ("target=%09a", "invalid_field"),
    ]

    private static let lists: [List] = [
        List("/v1/tenants/demo/audit", Self.auditFaults + [("tenant=other", "unknown_field")]),
        List(
            "/admin/v1/audit",
            Self.auditFaults + [("tenant=demo&tenant=other", "invalid_field"), ("tenant=%00", "invalid_field")]
        ),
        List(
            "/v1/tenants/demo/retired-tokens",
            [
                ("cursor=MQ", "invalid_field"), ("cursor=cmV0aXJlZC4", "invalid_field"),
                ("cursor=cmV0aXJlZC4tMQ", "invalid_field"), ("token=a", "unknown_field"),
            ]
        ),
        List("/v1/tenants/demo/device-groups", [("name=a", "unknown_field")]),
        List(
            "/v1/tenants/demo/subscriptions",
            query: "token=a&",
            [("token=b", "invalid_field"), ("x=1", "unknown_field")]
        ),
        List("/admin/v1/tenants", [("name=demo", "unknown_field")]),
        List("/admin/v1/tenants/demo/keys", [("cursor=bm9uZQ", "invalid_field"), ("scope=x", "unknown_field")]),
    ]

    @Test("An invalid or unknown query parameter is refused", arguments: Self.lists)
    func badParameter(list: List) async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.ask(.get, "\(list.path)?\(list.query)", key: key).status == 200)
            let lookUps = gateway.topics.lookUps.count
            for (query, code) in Self.faults + list.faults {
                let answer = await gateway.ask(.get, "\(list.path)?\(list.query)\(query)", key: key)
                let problem = try answer.expectProblem(422, code, "\(query)")
                #expect(problem["action"] == "fix_request", "\(query)")
            }
            #expect(gateway.topics.lookUps.count == lookUps)
        }
    }

    @Test("Tenants are listed by name")
    func tenants() async throws {
        try await TestGateway.run { gateway, _ in
            for name in ["zulu", "alpha", "mike"] { _ = try await gateway.makeTenant(name) }
            let pages = try await gateway.pages("/admin/v1/tenants?limit=2")
            let names = pages.map { $0["tenants"]?.elements.compactMap { $0["tenant"]?.text } ?? [] }
            #expect(names == [["alpha", "demo"], ["mike", "other"], ["zulu"]])
            for query in ["", "?limit=5"] {
                let all = try await gateway.admin(.get, "/admin/v1/tenants\(query)").json
                #expect(all.keys == ["tenants"])
                #expect(all["tenants"]?.elements.count == 5)
            }
        }
    }

    @Test("Keys are listed oldest first")
    func keys() async throws {
        try await TestGateway.run { gateway, first in
            var ids = [try #require(APIKey(first)?.id)]
            for _ in 0..<4 {
                gateway.clock.advance(by: .seconds(1))
                let key = try await gateway.makeKey(scopes: [.readTokens])
                ids.append(try #require(APIKey(key)?.id))
            }
            let pages = try await gateway.pages("/admin/v1/tenants/demo/keys?limit=2")
            let found = pages.map { $0["keys"]?.elements.compactMap { $0["id"]?.text } ?? [] }
            #expect(found == [Array(ids[0..<2]), Array(ids[2..<4]), Array(ids[4...])])
        }
    }

    @Test("Device groups are listed by the bytes of their names")
    func groups() async throws {
        try await TestGateway.run { gateway, key in
            for name in ["b", "a", "%C3%A4", "c"] {
                let path = "/v1/tenants/demo/device-groups/\(name)"
                _ = await gateway.data(.put, path, key: key, body: #"{"tokens":["a"]}"#)
            }
            let pages = try await gateway.pages("/v1/tenants/demo/device-groups?limit=3", key: key)
            #expect(pages.map { $0["device_groups"] } == [["a", "b", "c"], ["ä"]])
            #expect(pages.last?.keys == ["device_groups"])
        }
    }

    @Test("A cursor decodes to the content it was made from", arguments: ["1.5", "demo", "", "???>>>", "ü~", "a b"])
    func cursor(content: String) {
        let text = Cursor.text(of: content)
        #expect(Cursor.content(of: text) == content)
        #expect(text.wholeMatch(of: /[A-Za-z0-9_-]{0,}/) != nil)
    }

    @Test(
        "Invalid text does not decode as a cursor",
        arguments: ["*", "a", "=", "MQ==", "MR", "a b", "/////w", "gICA", "AA", "YQBi", "fw"]
    )
    func madeUpCursor(text: String) {
        #expect(Cursor.content(of: text) == nil)
    }
}
