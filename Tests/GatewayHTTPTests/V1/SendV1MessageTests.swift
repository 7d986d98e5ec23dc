import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import GatewayHTTP

struct SendV1MessageTests {
    private static let message = #"{"message":{"token":"device-1","data":{"score":"3x1"}}}"#

    @Test("A v1 send is answered with the message's name by both upstreams", arguments: [UpstreamKind.v1, .legacy])
    func accepted(upstream: UpstreamKind) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(upstream)
            gateway.answer(.accepting("0:1500415314455276%31bd1c9631bd1c96"))
            let answer = await gateway.v1(Self.message, key: key)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/json; charset=UTF-8")
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            #expect(answer.header("RateLimit") != nil)
            #expect(answer.value == ["name": "projects/demo-1a2b/messages/0:1500415314455276%31bd1c9631bd1c96"])
            let call = try #require(gateway.upstream.calls.first)
            #expect(call.target == .token("device-1"))
            switch upstream {
            case .v1:
                #expect(call.command.message.passThrough.map { String(buffer: $0) } == #"{"data":{"score":"3x1"}}"#)
            case .legacy:
                #expect(call.command.message.passThrough == nil)
                #expect(call.command.message.data == [DataEntry(key: "score", value: "3x1")])
            }
        }
    }

    @Test("A tenant without a project is addressed by its own name")
    func ownName() async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.v1(Self.message, key: key, project: "demo")
            #expect(answer.value == ["name": "projects/demo/messages/fcm-1"])
        }
    }

    @Test("An unknown key gets 401; a foreign project and a missing scope get the same 403")
    func refusedCallers() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            for authorization in ["", "key=\(key)", "Bearer \(APIKey.generate().secret.revealText())"] {
                let answer = await gateway.v1(Self.message, key: nil, headers: ["Authorization": authorization])
                #expect(answer.status == 401)
                #expect(answer.header("WWW-Authenticate") == "Bearer")
                try answer.expectError("UNAUTHENTICATED")
            }
            var bodies: Set<String> = []
            for project in ["other", "nobody", "demo", "demo-1a2", "demo-1a2bx"] {
                let answer = await gateway.v1(Self.message, key: key, project: project)
                #expect(answer.status == 403)
                bodies.insert(answer.body)
            }
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            for body in [Self.message, "no json"] {
                let answer = await gateway.v1(body, key: reader)
                #expect(answer.status == 403)
                try answer.expectError("PERMISSION_DENIED")
                bodies.insert(answer.body)
            }
            #expect(bodies.count == 1)
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("An answer that carries an FcmError is passed through byte for byte")
    func passThrough() async throws {
        let body = #"""
            { "error": {"code": 404, "message": "gone", "status": "NOT_FOUND", "details": [
             {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}]} }
            """#
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let response = UpstreamResponse(status: 404, retryAfter: "7", body: ByteBuffer(string: body))
            let result = SendResult(V1ResponseReader.read(response, for: .token, now: 0, keepsAnswer: true))
            gateway.answer(result, result)
            let answer = await gateway.v1(Self.message, key: key)
            #expect(answer.status == 404)
            #expect(answer.body == body)
            #expect(answer.header("Retry-After") == "7")
            // A REST caller gets the outcome of the same answer.
            #expect(await gateway.send(#"{"token":"device-1"}"#, key: key).status == 410)
        }
    }

    @Test("A send to a group is answered with an empty object without counts")
    func group() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            gateway.answer(.group(1, 1, failed: ["x"]))
            let answer = await gateway.v1(Self.message, key: key)
            #expect(answer.status == 200)
            #expect(answer.body == "{}")
        }
    }

    @Test("An invalid v1 request is refused before anything is sent")
    func badRequests() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let bodies: [(String, String?, String)] = [
                ("no json", nil, ""), (#"{"message":{"token":"a","colour":"red"}}"#, nil, "message.colour"),
                (#"{"message":{"token":1}}"#, nil, "message.token"),
                (#"{"message":{"token":"a","topic":"b"}}"#, "INVALID_ARGUMENT", "message.topic"),
                (#"{"message":{}}"#, "INVALID_ARGUMENT", "message"),
                (#"{"message":{"token":"a","data":{"from":"x"}}}"#, "INVALID_ARGUMENT", "message.data"),
                (#"{"message":{"token":"/topics/news"}}"#, "INVALID_ARGUMENT", "message.token"),
            ]
            for (body, errorCode, field) in bodies {
                let answer = await gateway.v1(body, key: key)
                #expect(answer.status == 400, "\(body)")
                try answer.expectError("INVALID_ARGUMENT", errorCode, field: field.isEmpty ? nil : field)
            }
            for headers in [
                ["Idempotency-Key": String(repeating: "k", count: 256)], ["X-Request-Timeout-Ms": "soon"],
                ["Content-Encoding": "gzip"],
            ] {
                let answer = await gateway.v1(Self.message, key: key, headers: headers)
                #expect(answer.status == 400)
                try answer.expectError("INVALID_ARGUMENT")
                #expect(answer.value["error"]?["message"]?.text?.contains(headers.keys.first ?? "?") == true)
            }
            let other = await gateway.data(.get, "/v1/projects/demo-1a2b/messages:send", key: key)
            #expect(other.status == 405)
            #expect(other.header("Allow") == "POST")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A message that a legacy upstream can't carry is refused with the first such field")
    func notCarried() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            let bodies = [
                (#"{"message":{"fid":"f"}}"#, "message.fid"),
                (#"{"message":{"condition":"!('a' in topics)"}}"#, "message.condition"),
                (#"{"message":{"token":"a","android":{"direct_boot_ok":true}}}"#, "message.android.direct_boot_ok"),
                (
                    #"{"message":{"token":"a","android":{"priority":"high"},"webpush":{"headers":{"Urgency":"low"}}}}"#,
                    "message.webpush.headers.Urgency"
                ),
            ]
            for (body, field) in bodies {
                let answer = await gateway.v1(body, key: key)
                #expect(answer.status == 400, "\(body)")
                try answer.expectError("INVALID_ARGUMENT", "INVALID_ARGUMENT", field: field)
            }
            #expect(gateway.upstream.calls.isEmpty)
            let carried = #"{"validateOnly":true,"message":{"topic":"news","android":{"ttl":"60s","collapseKey":"k"}}}"#
            #expect(await gateway.v1(carried, key: key).status == 200)
            let call = try #require(gateway.upstream.calls.first)
            #expect(call.command.message.dryRun)
            #expect(call.command.message.timeToLive == 60)
            #expect(call.command.message.collapseKey == "k")
        }
    }
}
