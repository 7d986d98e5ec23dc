import GatewayCore
import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import GatewayHTTP

struct AdminAuditRoutesTests {
    private static let path = "/admin/v1/audit"

    @Test("Operators see the records of all tenants, newest first, and can filter by tenant")
    func tenants() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"device"}"#, key: key)
            try await gateway.settleAudit()
            let all = await gateway.admin(.get, "\(Self.path)?limit=500")
            #expect(all.status == 200)
            let records = try all.json["records"]?.elements ?? []
            #expect(records.first?["action"] == "test.barrier")
            #expect(Set(records.compactMap { $0["tenant"]?.text }) == ["demo", "other"])
            let sequences = records.compactMap { $0["seq"]?.int }
            #expect(sequences == Array((1...records.count).reversed()))
            #expect(records.last?["action"] == "audit.opened")
            #expect(records.last?["principal"] == "gateway")

            let one = try await gateway.admin(.get, "\(Self.path)?tenant=other&limit=500").json["records"]?.elements
            #expect(one?.isEmpty == false)
            #expect(one?.allSatisfy { $0["tenant"] == "other" } == true)
            #expect(try await gateway.admin(.get, "\(Self.path)?tenant=nobody").json == ["records": []])
        }
    }

    @Test("A change's record names the object and no target")
    func change() async throws {
        try await TestGateway.run { gateway, _ in
            _ = await gateway.admin(.put, "/admin/v1/tenants/demo/limits", body: "{}", headers: ["X-Request-ID": "r1"])
            let json = try await gateway.admin(.get, "\(Self.path)?action=limits.put&outcome=done").json
            let record = try #require(json["records"]?[0])
            #expect(
                record.without("seq", "hash", "tenant_uid") == [
                    "writer": 1, "time": "2026-03-01T12:00:00.000Z", "tenant": "demo", "principal": "admin",
                    "method": "PUT", "action": "limits.put", "outcome": "done", "object": "demo", "request_id": "r1",
                ]
            )
        }
    }

    @Test("A target is found by its tenant's pseudonym, so the tenant must be named")
    func target() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"device"}"#, key: key)
            try await gateway.settleAudit()
            let found = try await gateway.admin(.get, "\(Self.path)?tenant=demo&target=device").json
            #expect(found["records"]?.elements.count == 1)
            #expect(try await gateway.admin(.get, "\(Self.path)?tenant=other&target=device").json == ["records": []])
            let lone = await gateway.admin(.get, "\(Self.path)?target=device")
            #expect(lone.status == 422)
            #expect(try lone.problem()["detail"]?.text?.contains("tenant") == true)
        }
    }

    @Test("The description lists every audit action")
    func describedActions() throws {
        let text = String(buffer: EmbeddedFile.adminDescription.body)
        let schema = try #require(text.split(separator: "    AuditAction:\n").last)
        let list = try #require(schema.split(separator: "      enum:\n").dropFirst().first)
        let names = list.split(separator: "\n").prefix { $0.hasPrefix("        - ") }.map { String($0.dropFirst(10)) }
        #expect(names == AuditRecord.Action.allCases.map(\.rawValue))
    }
}
