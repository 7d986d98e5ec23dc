import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct SendMessageTests {
    @Test("One recipient: the message's id, the status and FCM's id, and nothing else")
    func single() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(Self.accepting("0:1500415314455276%31bd1c9631bd1c96"))
            let answer = await gateway.send(#"{"token":"device-1"}"#, key: key)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/json")
            let json = try answer.json
            #expect(json["id"]?.text?.isUUIDv7 == true)
            #expect(
                json.without("id") == ["status": "accepted", "message_id": "0:1500415314455276%31bd1c9631bd1c96"]
            )
        }
    }

    @Test("A changed registration names its replacement")
    func replacement() async throws {
        try await TestGateway.run { gateway, key in
            let acceptance = Acceptance(messageID: "0:1", replacementToken: "device-2")
            gateway.answer(
                UpstreamResult(answer: .recipients([.accepted(acceptance)]), upstreamCode: "200")
            )
            let answer = await gateway.send(#"{"token":"device-1"}"#, key: key)
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json.without("id") == ["status": "accepted", "message_id": "0:1", "replacement_token": "device-2"])
        }
    }

    @Test(
        "A topic and a condition answer like one recipient",
        arguments: [#"{"topic":"news"}"#, #"{"condition":"'news' in topics && 'sport' in topics"}"#]
    )
    func topics(body: String) async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(Self.accepting("5735983"))
            let answer = await gateway.send(body, key: key)
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json.without("id") == ["status": "accepted", "message_id": "5735983"])
        }
    }

    @Test("Several recipients: one result each, in the request's order, whatever became of them")
    func several() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                UpstreamResult(
                    answer: .recipients([
                        .accepted(Acceptance(messageID: "0:15")),
                        .rejected(.unregistered),
                        .accepted(Acceptance(messageID: "0:16", replacementToken: "new")),
                        .rejected(Rejection(code: .deviceRateExceeded)),
                        .rejected(.invalidToken),
                    ]),
                    retryAfter: 12,
                    upstreamCode: "200"
                )
            )
            let answer = await gateway.send(#"{"tokens":["a","b","c","d","e"]}"#, key: key)
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json["id"]?.text?.isUUIDv7 == true)
            #expect(
                json.without("id") == [
                    "accepted": 2, "rejected": 3,
                    "results": [
                        ["token": "a", "status": "accepted", "message_id": "0:15"],
                        [
                            "token": "b", "status": "rejected", "code": "unregistered", "retryable": false,
                            "action": "delete_token",
                        ],
                        [
                            "token": "c", "status": "accepted", "message_id": "0:16", "replacement_token": "new",
                        ],
                        [
                            "token": "d", "status": "rejected", "code": "device_rate_exceeded", "retryable": true,
                            "action": "wait", "retry_after": 12, "limited_by": "fcm",
                        ],
                        [
                            "token": "e", "status": "rejected", "code": "invalid_token", "retryable": false,
                            "action": "fix_request",
                        ],
                    ],
                ]
            )
        }
    }

    @Test("Several recipients that all failed one by one are still a list")
    func noneAccepted() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                UpstreamResult(
                    answer: .recipients([.rejected(.unregistered), .rejected(.unregistered)]),
                    upstreamCode: "NotRegistered"
                )
            )
            let answer = await gateway.send(#"{"tokens":["a","b"]}"#, key: key)
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json["accepted"] == 0)
            #expect(json["rejected"] == 2)
            #expect(json["results"]?.elements.count == 2)
        }
    }

    @Test("Recipients over their limit are refused in their place while the others are sent")
    func partial() async throws {
        let once = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [once])) { gateway, key in
            #expect(await gateway.send(#"{"token":"b"}"#, key: key).status == 200)
            let answer = await gateway.send(#"{"tokens":["a","b","c"]}"#, key: key)
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json["accepted"] == 2)
            #expect(json["rejected"] == 1)
            let results = json["results"]?.elements ?? []
            #expect(results.map { $0["token"]?.text } == ["a", "b", "c"])
            #expect(results.map { $0["status"]?.text } == ["accepted", "rejected", "accepted"])
            #expect(
                results[1] == [
                    "token": "b", "status": "rejected", "code": "device_rate_exceeded", "retryable": true,
                    "action": "wait", "retry_after": 60, "limited_by": "gateway",
                ]
            )
            #expect(gateway.upstream.calls.last?.target == .tokens(["a", "c"]))
        }
    }

    @Test("A group's counts are told, with the members that failed")
    func group() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                UpstreamResult(
                    answer: .group(GroupOutcome(success: 1, failure: 2, failedTokens: ["x", "y"])),
                    upstreamCode: "200"
                )
            )
            let answer = await gateway.send(#"{"token":"a-group"}"#, key: key)
            #expect(answer.status == 200)
            let failed: @Sendable (JSON) -> JSON = { token in
                [
                    "token": token, "status": "rejected", "code": "upstream_unavailable", "retryable": true,
                    "action": "wait",
                ]
            }
            let json = try answer.json
            #expect(json.without("id") == ["accepted": 1, "rejected": 2, "results": [failed("x"), failed("y")]])
        }
    }

    @Test("A message reaches the upstream whole")
    func wholeMessage() async throws {
        try await TestGateway.run { gateway, key in
            let body = """
                {"token":"device","priority":"high","ttl":3600.0,"collapse_key":"score","content_available":true,
                 "mutable_content":true,"restricted_package_name":"com.example","dry_run":false,
                 "data":{"score":"3x1","empty":""},
                 "notification":{"title":"t","body":"b","image":"i","subtitle":"u","sound":"s","badge":2147483647,
                 "icon":"c","color":"#A0b1C2","tag":"g","click_action":"k","android_channel_id":"n",
                 "title_loc_key":"tk","title_loc_args":["1",""],"body_loc_key":"bk","body_loc_args":[]}}
                """
            #expect(await gateway.send(body, key: key).status == 200)
            var notification = Notification()
            for (name, text) in [
                ("title", "t"), ("body", "b"), ("image", "i"), ("subtitle", "u"), ("sound", "s"), ("icon", "c"),
                ("color", "#A0b1C2"), ("tag", "g"), ("click_action", "k"), ("android_channel_id", "n"),
                ("title_loc_key", "tk"), ("body_loc_key", "bk"),
            ] {
                notification[try #require(NotificationKey(rawValue: name))] = text
            }
            notification.badge = 2_147_483_647
            notification.titleLocArgs = ["1", ""]
            notification.bodyLocArgs = []
            var message = Message()
            message.notification = notification
            message.data = [DataEntry(key: "score", value: "3x1"), DataEntry(key: "empty", value: "")]
            message.priority = .high
            message.timeToLive = 3_600
            message.collapseKey = "score"
            message.contentAvailable = true
            message.mutableContent = true
            message.restrictedPackageName = "com.example"
            let call = try #require(gateway.upstream.calls.first)
            for (key, text) in zip(NotificationKey.allCases, NotificationKey.allCases.map { notification[$0] }) {
                #expect(call.message.notification?[key] == text)
            }
            #expect(call.message.notification?.badge == notification.badge)
            #expect(call.message.notification?.titleLocArgs == notification.titleLocArgs)
            #expect(call.message.notification?.bodyLocArgs == notification.bodyLocArgs)
            var received = call.message
            received.notification = nil
            message.notification = nil
            #expect(received == message)
            #expect(call.target == .token("device"))
        }
    }

    @Test("A dry run goes upstream as one and spends no device's quota")
    func dryRun() async throws {
        let once = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [once])) { gateway, key in
            for _ in 0..<3 {
                let answer = await gateway.send(#"{"token":"device","dry_run":true}"#, key: key)
                #expect(answer.status == 200)
            }
            #expect(gateway.upstream.calls.count == 3)
            #expect(gateway.upstream.calls.allSatisfy { $0.message.dryRun })
            #expect(await gateway.send(#"{"token":"device"}"#, key: key).status == 200)
            #expect(await gateway.send(#"{"token":"device"}"#, key: key).status == 429)
        }
    }

    @Test("A malformed idempotency key is refused, and nothing is sent")
    func idempotencyKey() async throws {
        try await TestGateway.run { gateway, key in
            for text in [String(repeating: "k", count: 256), "schlüssel", "tab\tbed"] {
                let answer = await gateway.send(#"{"token":"device"}"#, key: key, headers: ["Idempotency-Key": text])
                #expect(answer.status == 400)
                let problem = try answer.problem()
                #expect(problem["code"] == "bad_request")
                #expect(problem["action"] == "fix_request")
                #expect(problem["retryable"] == false)
                #expect(problem["detail"]?.text?.contains("Idempotency-Key") == true)
            }
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A device group that nobody made is not found")
    func unknownDeviceGroup() async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.send(#"{"device_group":"family"}"#, key: key)
            #expect(answer.status == 404)
            let code = try answer.code()
            #expect(code == "not_found")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test(
        "What the upstream has no form for is refused at its field",
        arguments: [
            ("fid", #"{"fid":"f"}"#, OutcomeCode.invalidTarget), ("fids", #"{"fids":["f","g"]}"#, .invalidTarget),
            ("condition", #"{"condition":"!('a' in topics)"}"#, .invalidField),
        ]
    )
    func objection(field: String, body: String, code: OutcomeCode) async throws {
        try await TestGateway.run { gateway, key in
            gateway.upstream.refuse(with: Refusal(code, "It has no form for this", field: field))
            let answer = await gateway.send(body, key: key)
            #expect(answer.status == 422)
            let problem = try answer.problem()
            #expect(problem["code"]?.text == code.rawValue)
            #expect(problem["detail"] == "It has no form for this")
            #expect(
                problem["errors"] == [
                    [
                        "pointer": .string("/\(field)"), "code": .string(code.rawValue),
                        "detail": "It has no form for this",
                    ]
                ]
            )
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A caller's shorter deadline reaches the upstream; a longer one does not")
    func deadline() async throws {
        try await TestGateway.run { gateway, key in
            for header in ["", "1000", "3600000"] {
                let answer = await gateway.send(
                    #"{"token":"device"}"#,
                    key: key,
                    headers: ["X-Request-Timeout-Ms": header]
                )
                #expect(answer.status == 200)
            }
            let deadlines = gateway.upstream.calls.map(\.deadline)
            try #require(deadlines.count == 3)
            // Each request arrived after the one before, so nothing but the header can have brought this order about.
            #expect(deadlines[1] < deadlines[0])
            #expect(deadlines[2] < ContinuousClock.now + .seconds(20))
            #expect(deadlines[2] > deadlines[0])
        }
    }

    private static func accepting(_ messageID: String) -> UpstreamResult {
        UpstreamResult(
            answer: .recipients([.accepted(Acceptance(messageID: messageID))]),
            upstreamCode: "200"
        )
    }
}
