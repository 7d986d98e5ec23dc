import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct SendLegacyMessageTests {
    private static let message = #"{"to":"device-1","data":{"score":"3x1"}}"#

    @Test("A key is accepted in the legacy form and as a bearer token", arguments: ["key=", "KEY= ", "Bearer "])
    func authorization(prefix: String) async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(.accepting("0:1500415314455276%31bd1c9631bd1c96"))
            let answer = await gateway.legacy(Self.message, key: nil, headers: ["Authorization": prefix + key])
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/json; charset=UTF-8")
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            #expect(answer.header("RateLimit") != nil)
            let json = answer.value
            #expect((1..<(1 << 53)).contains(json["multicast_id"]?.int ?? 0))
            #expect(
                json.without("multicast_id") == [
                    "success": 1, "failure": 0, "canonical_ids": 0,
                    "results": [["message_id": "0:1500415314455276%31bd1c9631bd1c96"]],
                ]
            )
            let call = try #require(gateway.upstream.calls.first)
            #expect(call.target == .token("device-1"))
            #expect(call.command.message.data == [DataEntry(key: "score", value: "3x1")])
        }
    }

    @Test("Every refused credential gets the same 401 without details")
    func unauthorized() async throws {
        try await TestGateway.run { gateway, key in
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            let prefixed = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["sport"])
            let stranger = APIKey.generate().secret.revealText()
            let cases: [(String?, String)] = [
                (nil, Self.message), (nil, "no json"), ("key=", Self.message), ("key=\(stranger)", Self.message),
                ("Basic \(key)", Self.message), (key, Self.message), ("key=\(reader)", Self.message),
                ("key=\(reader)", "no json"), ("key=\(reader)", #"{"registration_ids":[""]}"#),
                ("key=\(prefixed)", #"{"to":"/topics/news"}"#), ("key=\(TestGateway.adminToken)", Self.message),
            ]
            for (authorization, body) in cases {
                let answer = await gateway.legacy(body, key: nil, headers: ["Authorization": authorization ?? ""])
                #expect(answer.status == 401, "\(authorization ?? "no header") \(body)")
                #expect(answer.body == "Unauthorized")
                #expect(answer.header("Content-Type") == "text/plain; charset=UTF-8")
                #expect(answer.header("WWW-Authenticate") == "Bearer")
            }
            #expect(gateway.upstream.calls.isEmpty)
            try await gateway.settleAudit()
            let refused = try await gateway.auditRecords(of: "message.send")
            // Without the scope the body is not read, so each request is recorded whatever its body.
            #expect(refused.map(\.code) == ["forbidden", "forbidden", "forbidden", "forbidden"])
            #expect(refused.map(\.targetKind) == ["", "", "", "topic"])
            let unread = [("tenant", "demo"), ("kind", "other"), ("outcome", "forbidden")]
            #expect(try gateway.metrics.expectCounter("fcmgw_messages_total", unread).totalValue == 3)
        }
    }

    @Test("The results of a list keep its order and include local errors and replacement tokens")
    func list() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                .outcomes(.accepted(Acceptance(messageID: "m", replacementToken: "new")), .rejected(.unregistered))
            )
            let answer = await gateway.legacy(#"{"registration_ids":["a","","/topics/x","b"]}"#, key: key)
            #expect(answer.status == 200)
            #expect(
                answer.value.without("multicast_id") == [
                    "success": 1, "failure": 3, "canonical_ids": 1,
                    "results": [
                        ["message_id": "m", "registration_id": "new"], ["error": "MissingRegistration"],
                        ["error": "InvalidRegistration"], ["error": "NotRegistered"],
                    ],
                ]
            )
            #expect(gateway.upstream.calls.map(\.target) == [.tokens(["a", "b"])])
            let nothingSent = await gateway.legacy(#"{"registration_ids":["","/topics/x"]}"#, key: key)
            #expect(nothingSent.value["failure"] == 2)
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("A send to a topic is answered with a number, a send to a group with counts")
    func otherShapes() async throws {
        try await TestGateway.run { gateway, key in
            let group = SendResult.group(1, 1, failed: ["x"])
            gateway.answer(.accepting("10000"), .accepting("10000"), group, group)
            for body in [#"{"to":"/topics/news"}"#, #"{"condition":"'a' in topics || 'b' in topics"}"#] {
                let answer = await gateway.legacy(body, key: key)
                #expect(answer.body == #"{"message_id":10000}"#)
            }
            for body in [#"{"to":"a-group"}"#, #"{"notification_key":"a-group"}"#] {
                let answer = await gateway.legacy(body, key: key)
                #expect(answer.status == 200)
                #expect(answer.body == #"{"success":1,"failure":1,"failed_registration_ids":["x"]}"#)
            }
        }
    }

    @Test("The gateway's own limits are answered in the legacy format, never with 429")
    func limits() async throws {
        let once = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [once], topic: [once])) { gateway, key in
            #expect(await gateway.legacy(#"{"to":"b"}"#, key: key).status == 200)
            let device = await gateway.legacy(#"{"to":"b"}"#, key: key)
            #expect(device.status == 200)
            #expect(device.value["results"] == [["error": "DeviceMessageRateExceeded"]])
            #expect(device.header("Retry-After") == "60")
            let form = await gateway.form("registration_id=b", key: key)
            #expect(form.status == 200)
            #expect(form.body == "Error=DeviceMessageRateExceeded")
            #expect(form.header("Retry-After") == "60")
            let some = await gateway.legacy(#"{"registration_ids":["a","b"]}"#, key: key)
            #expect(some.value["results"] == [["message_id": "fcm-1"], ["error": "DeviceMessageRateExceeded"]])
            // With a delay, a popular client would resend to every recipient.
            #expect(some.header("Retry-After") == nil)
            #expect(await gateway.legacy(#"{"to":"/topics/t"}"#, key: key).status == 200)
            let topic = await gateway.legacy(#"{"to":"/topics/t"}"#, key: key)
            #expect(topic.status == 200)
            #expect(topic.body == #"{"error":"TopicsMessageRateExceeded"}"#)
            #expect(topic.header("Retry-After") == "60")
        }
        try await TestGateway.run(limits: LimitPolicies(tenant: [once])) { gateway, key in
            #expect(await gateway.legacy(#"{"to":"a"}"#, key: key).status == 200)
            let answer = await gateway.legacy(#"{"to":"b"}"#, key: key)
            #expect(answer.status == 200)
            #expect(answer.value["results"] == [["error": "Unavailable"]])
            #expect(answer.header("Retry-After") == "60")
        }
    }

    @Test("Bad requests get the errors of the legacy protocol")
    func badRequests() async throws {
        try await TestGateway.run { gateway, key in
            let broken = await gateway.legacy(#"{"to":"#, key: key)
            #expect(broken.status == 400)
            #expect(broken.header("Content-Type") == "text/plain; charset=UTF-8")
            #expect(broken.body.hasPrefix("JSON_PARSING_ERROR"))
            let invalid = await gateway.legacy(#"{"to":3}"#, key: key)
            #expect(invalid.status == 400)
            #expect(invalid.value["error"] == "InvalidParameters")
            let untyped = await gateway.legacy(Self.message, key: key, headers: ["Content-Type": "text/json"])
            #expect(untyped.status == 200)
            #expect(untyped.body == "Error=MissingRegistration")
            let tooLong = String(repeating: "k", count: 256)
            for headers in [["Idempotency-Key": tooLong], ["X-Request-Timeout-Ms": "soon"]] {
                let answer = await gateway.legacy(Self.message, key: key, headers: headers)
                #expect(answer.status == 400)
                #expect(answer.value["error"] == "InvalidParameters")
                #expect(answer.value["reason"]?.text?.contains(headers.keys.first ?? "?") == true)
            }
            let other = await gateway.data(.get, "/fcm/send", key: key)
            #expect(other.status == 405)
            #expect(other.header("Allow") == "POST")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A notification key that looks like a topic is refused")
    func disguisedTopic() async throws {
        try await TestGateway.run { gateway, _ in
            let key = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["sport"])
            let answer = await gateway.legacy(#"{"notification_key":"/topics/news"}"#, key: key)
            #expect(answer.status == 200)
            #expect(answer.value["results"] == [["error": "InvalidRegistration"]])
            #expect(gateway.upstream.calls.isEmpty)
        }
    }
}
