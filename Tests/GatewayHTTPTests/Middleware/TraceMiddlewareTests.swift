import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct TraceMiddlewareTests {
    private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test(
        "A trace's id is read from its parent",
        arguments: [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-will-be",
        ]
    )
    func wellFormed(parent: String) {
        #expect(TraceMiddleware.traceID(in: parent) == Self.id)
    }

    @Test(
        "Any other text is no parent",
        arguments: [
            "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-zzf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ]
    )
    func malformed(parent: String) {
        #expect(TraceMiddleware.traceID(in: parent) == nil)
    }

    @Test("The trace's id is in the audit")
    func audited() async throws {
        try await TestGateway.run { gateway, key in
            let headers = ["traceparent": "00-\(Self.id)-00f067aa0ba902b7-01"]
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: headers)
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: ["traceparent": "nonsense"])
            try await gateway.settleAudit()
            let sends = gateway.auditStore.current.records(of: "message.send")
            #expect(sends.map(\.traceID) == [Self.id, nil])
        }
    }
}
