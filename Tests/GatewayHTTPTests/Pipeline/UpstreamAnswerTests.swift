import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import NIOCore
import Testing

@testable import GatewayHTTP

/// Answers of an upstream as bytes, through the whole pipeline to the callers of every surface.
@Suite("Answers of an upstream on every surface")
struct UpstreamAnswerTests {
    /// An answer on the wire.
    struct Wire: Sendable, CustomTestStringConvertible {
        var status = 200
        var retryAfter: String?
        var body = ""

        var testDescription: String { "\(self.status) \(self.body.prefix(80))" }
    }

    private static let name = #"{"name":"projects/p/messages/m1"}"#

    /// Answers that must neither crash the process nor be accepted.
    static let hostileAnswers: [Wire] = [
        Wire(body: #"{"success":9223372036854775807,"failure":1}"#),
        Wire(body: #"{"success":9223372036854775807,"failure":9223372036854775807}"#),
        Wire(body: #"{"success":9223372036854775807,"failure":0}"#),
        Wire(body: #"{"success":0,"failure":1001}"#),
        Wire(body: #"{"message_id":"\#(String(repeating: "x", count: 513))"}"#),
        Wire(body: #"{"results":[{"message_id":"a\nregistration_id=b"}]}"#),
        Wire(body: #"{"results":[{"message_id":"1","registration_id":"/topics/all"}]}"#),
        Wire(body: "id=1\nregistration_id=\(String(repeating: "x", count: 4_097))"),
    ]

    @Test("An answer with numbers or texts beyond their bounds is a protocol error", arguments: Self.hostileAnswers)
    func hostile(wire: Wire) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            for surface in SendSurface.allCases {
                gateway.answer(wire, by: .legacy)
                let answer = await gateway.ask(surface, key: key)
                #expect(answer.status == surface.unreadable.status, "\(surface)")
                #expect(surface.outcome(of: answer) == surface.unreadable.outcome, "\(surface)")
            }
            let records = try await gateway.records("action=message.send", key: key)
            #expect(records.count == SendSurface.allCases.count)
            for record in records {
                #expect(record["recipients"] == 1)
                #expect(record["accepted"] == 0)
                #expect(record["code"] == "upstream_protocol")
                #expect(record["fcm_message_id"] == nil)
            }
            #expect(gateway.sent("upstream_protocol") == SendSurface.allCases.count)
            #expect(gateway.sent("accepted") == 0)
        }
    }

    @Test("The largest accepted counts are added up, answered, recorded and counted")
    func largestCounts() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(Wire(body: #"{"success":1000,"failure":1000}"#), by: .legacy)
            let answer = await gateway.ask(.rest, key: key)
            #expect(answer.value.without("id") == ["accepted": 1_000, "rejected": 1_000, "results": []])
            let record = try #require(try await gateway.records("action=message.send", key: key).first)
            #expect(record["recipients"] == 2_000)
            #expect(record["accepted"] == 1_000)
            #expect(gateway.sent("accepted") == 1_000)
        }
    }

    @Test(
        "After the upstream's 429 every surface sends the upstream's Retry-After, or one minute",
        arguments: [UpstreamKind.legacy, .v1],
        [(nil, "60"), ("soon", "60"), ("7", "7"), ("Fri, 31 Dec 9999 23:59:59 GMT", "86400")] as [(String?, String)]
    )
    func tooManyRequests(upstream: UpstreamKind, delay: (given: String?, told: String)) async throws {
        let expected: [SendSurface: (status: Int, outcome: String)] = [
            .rest: (503, "upstream_unavailable"), .legacy: (200, "Unavailable"), .form: (503, "Error=Unavailable"),
            .v1: (503, "UNAVAILABLE"),
        ]
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(upstream)
            for surface in SendSurface.allCases {
                gateway.answer(Wire(status: 429, retryAfter: delay.given), by: upstream)
                let answer = await gateway.ask(surface, key: key)
                #expect(answer.status == expected[surface]?.status, "\(surface)")
                #expect(surface.outcome(of: answer) == expected[surface]?.outcome, "\(surface)")
                #expect(answer.header("Retry-After") == delay.told, "\(surface)")
            }
        }
    }

    @Test(
        "A replacement token of a legacy upstream is in the answer of every surface but v1",
        arguments: [
            Wire(body: #"{"multicast_id":1,"results":[{"message_id":"1:08","registration_id":"new"}]}"#),
            Wire(body: "id=1:08\nregistration_id=new\n"),
        ]
    )
    func canonicalToken(wire: Wire) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            func ask(_ surface: SendSurface, _ wire: Wire) async -> Answer {
                gateway.answer(wire, by: .legacy)
                return await gateway.ask(surface, key: key)
            }
            #expect(await ask(.form, wire).body == "id=1:08\nregistration_id=new")
            #expect(await ask(.rest, wire).value["replacement_token"] == "new")
            let legacy = await ask(.legacy, wire).value
            #expect(legacy["canonical_ids"] == 1)
            #expect(legacy["results"]?[0] == ["message_id": "1:08", "registration_id": "new"])
            #expect(await ask(.v1, wire).body == #"{"name":"projects/demo-1a2b/messages/1:08"}"#)
            // The token that the message was sent to is not a replacement.
            #expect(await ask(.form, Wire(body: "id=1:08\nregistration_id=t")).body == "id=1:08")
        }
    }

    @Test("A send to a device group's key is answered with counts, even if the upstream names a message")
    func groupShape() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            _ = await gateway.data(.put, "/v1/tenants/demo/device-groups/g", key: key, body: #"{"tokens":["a","b"]}"#)
            let named = Wire(body: Self.name)
            for (body, members) in [(#"{"notification_key":"key-1"}"#, 2), (#"{"notification_key":"key-2"}"#, 1)] {
                gateway.answer(named, by: .v1)
                let answer = await gateway.legacy(body, key: key)
                #expect(answer.status == 200)
                #expect(answer.body == #"{"success":\#(members),"failure":0}"#)
            }
            gateway.answer(named, by: .v1)
            let rest = await gateway.send(#"{"device_group":"g","data":{"k":"v"}}"#, key: key)
            #expect(rest.value.without("id") == ["accepted": 2, "rejected": 0, "results": []])
            // `to` may hold a token or a key; the name of a message shows that it is a token.
            gateway.answer(named, by: .v1)
            let token = await gateway.legacy(#"{"to":"t"}"#, key: key)
            #expect(token.value["results"] == [["message_id": "m1"]])
            // The audit has FCM's message id in every case.
            let records = try await gateway.records("action=message.send", key: key)
            #expect(records.allSatisfy { $0["fcm_message_id"] == "m1" })
        }
        try await TestGateway.run { gateway, key in
            gateway.answer(Wire(body: #"{"multicast_id":1,"results":[{"message_id":"m1"}]}"#), by: .legacy)
            let answer = await gateway.legacy(#"{"notification_key":"key-1"}"#, key: key)
            #expect(answer.body == #"{"success":1,"failure":0}"#)
            // A failed send has the shape of T5 (TB-GROUP).
            gateway.answer(Wire(body: #"{"multicast_id":1,"results":[{"error":"NotRegistered"}]}"#), by: .legacy)
            let gone = await gateway.legacy(#"{"notification_key":"key-1"}"#, key: key)
            #expect(gone.value["results"] == [["error": "NotRegistered"]])
        }
    }

    @Test("An empty object is a group's answer only if the target may be a group")
    func emptyObject() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            _ = await gateway.data(.put, "/v1/tenants/demo/device-groups/g", key: key, body: #"{"tokens":["a","b"]}"#)
            func ask(_ send: () async -> Answer) async -> Answer {
                gateway.answer(Wire(body: "{}\n"), by: .v1)
                return await send()
            }
            let rest = await ask { await gateway.ask(.rest, key: key) }
            #expect(rest.status == 502)
            #expect(rest.value["code"] == "upstream_protocol")
            #expect(await ask { await gateway.ask(.legacy, key: key) }.body == #"{"success":1,"failure":0}"#)
            #expect(await ask { await gateway.ask(.form, key: key) }.body == "id=0")
            #expect(await ask { await gateway.ask(.v1, key: key) }.body == "{}")
            let group = await ask { await gateway.send(#"{"device_group":"g","data":{"k":"v"}}"#, key: key) }
            #expect(group.value["accepted"] == 2)
            let topic = await ask { await gateway.legacy(#"{"to":"/topics/news"}"#, key: key) }
            #expect(topic.value == ["error": "InternalServerError"])
        }
    }

    @Test(
        "An answer without content is never a delivery",
        arguments: [Wire(status: 200), Wire(status: 204), Wire(body: " \r\n"), Wire(body: "[]")],
        [UpstreamKind.legacy, .v1]
    )
    func blank(wire: Wire, upstream: UpstreamKind) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(upstream)
            for surface in SendSurface.allCases {
                gateway.answer(wire, by: upstream)
                let answer = await gateway.ask(surface, key: key)
                #expect(answer.status == surface.unreadable.status, "\(surface)")
                #expect(surface.outcome(of: answer) == surface.unreadable.outcome, "\(surface)")
            }
        }
    }
}

extension SendSurface {
    /// The answer to a caller if the upstream's answer can't be read.
    fileprivate var unreadable: (status: Int, outcome: String) {
        switch self {
        case .rest: (502, "upstream_protocol")
        case .legacy: (200, "InternalServerError")
        case .form: (500, "Error=InternalServerError")
        case .v1: (500, "INTERNAL")
        }
    }
}

extension TestGateway {
    /// Sends a message to the token `t`.
    fileprivate func ask(_ surface: SendSurface, key: String) async -> Answer {
        await surface.send(self, surface.body("t"), key: key)
    }

    /// Sets the upstream's next answer to a wire answer, read as that kind of upstream reads it.
    fileprivate func answer(_ wire: UpstreamAnswerTests.Wire, by upstream: UpstreamKind) {
        let body = ByteBuffer(string: wire.body)
        self.answer { call in
            switch upstream {
            case .legacy:
                LegacyResponseReader.read(
                    UpstreamResponse(status: wire.status, retryAfter: wire.retryAfter, body: body),
                    for: call.target,
                    now: 0
                )
            case .v1:
                SendResult(
                    V1ResponseReader.read(
                        UpstreamResponse(status: wire.status, retryAfter: wire.retryAfter, body: body),
                        for: call.target.kind,
                        mayBeGroup: call.mayBeGroup,
                        now: 0,
                        keepsAnswer: call.command.message.passThrough != nil
                    )
                )
            }
        }
    }

    /// The number of recipients that the metrics count with an outcome.
    fileprivate func sent(_ outcome: String) -> Int {
        self.metrics.counters(label: "fcmgw_messages_total")
            .filter { counter in counter.dimensions.contains { $0 == ("outcome", outcome) } }
            .reduce(0) { $0 + Int($1.totalValue) }
    }
}
