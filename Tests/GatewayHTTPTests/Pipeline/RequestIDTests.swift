import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct RequestIDTests {
    @Test(
        "A valid request id is echoed",
        arguments: ["a", "0193-abc", "A.b_c-9", String(repeating: "x", count: 128), "..", "00000000"]
    )
    func echoed(id: String) async throws {
        try await TestGateway.run { gateway, key in
            for answer in await Self.answers(gateway, key, id) {
                #expect(answer.header("X-Request-ID") == id)
            }
        }
    }

    @Test(
        "An invalid request id is replaced by a generated one",
        arguments: [
            "", String(repeating: "x", count: 129), "a b", "a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "ü", "<script>", "a,b",
            "a/b", "%0d%0a", "\"", "a;b", "\u{7f}",
        ]
    )
    func replaced(id: String) async throws {
        try await TestGateway.run { gateway, key in
            for answer in await Self.answers(gateway, key, id) {
                #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
                #expect(answer.header("X-Evil") == nil)
            }
        }
    }

    @Test("Requests without an id get distinct ids")
    func distinct() async throws {
        try await TestGateway.run { gateway, key in
            var ids: Set<String> = []
            for _ in 0..<20 {
                ids.insert(await gateway.send(#"{"token":"t"}"#, key: key).header("X-Request-ID") ?? "")
            }
            #expect(ids.count == 20)
        }
    }

    /// One answer for each way that a request can end.
    private static func answers(_ gateway: TestGateway, _ key: String, _ id: String) async -> [Answer] {
        let headers = ["X-Request-ID": id]
        return [
            await gateway.send(#"{"token":"t"}"#, key: key, headers: headers),
            await gateway.send("{", key: key, headers: headers),
            await gateway.send(#"{"token":"t"}"#, key: nil, headers: headers),
            await gateway.data(.get, "/nowhere", key: key, headers: headers),
            await gateway.admin(.get, "/livez", headers: headers),
            await gateway.admin(.get, "/admin/v1/tenants", headers: headers),
            await gateway.admin(.get, "/admin/v1/tenants", token: nil, headers: headers),
        ]
    }
}
