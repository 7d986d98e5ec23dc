import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct SendMessageTests {
    /// A message, FCM's result, and the answer without the message's id.
    struct Case: Sendable, CustomTestStringConvertible {
        var body: String
        var result: SendResult
        var answer: JSON

        var testDescription: String { self.body }

        init(_ body: String, _ outcomes: [RecipientOutcome], retryAfter: Int? = nil, _ json: JSON) {
            self.init(body, SendResult(outcomes, retryAfter: retryAfter, upstreamCode: "200"), json)
        }

        init(_ body: String, _ result: SendResult, _ json: JSON) {
            self.body = body
            self.result = result
            self.answer = json
        }

        init(_ body: String, accepted id: String, replacement: String? = nil) {
            let outcome = RecipientOutcome.accepted(Acceptance(messageID: id, replacementToken: replacement))
            var json: JSON = ["status": "accepted", "message_id": .string(id)]
            if let replacement { json["replacement_token"] = .string(replacement) }
            self.init(body, [outcome], json)
        }
    }

    private static func dead(_ token: JSON) -> JSON {
        ["token": token, "status": "rejected", "code": "unregistered", "retryable": false, "action": "delete_token"]
    }

    private static func failed(_ token: JSON) -> JSON {
        ["token": token, "status": "rejected", "code": "upstream_unavailable", "retryable": true, "action": "wait"]
    }

    private static let five: JSON = [
        "accepted": 2, "rejected": 3,
        "results": [
            ["token": "a", "status": "accepted", "message_id": "0:15"], Self.dead("b"),
            ["token": "c", "status": "accepted", "message_id": "0:16", "replacement_token": "new"],
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

    private static let cases: [Case] = [
        Case(#"{"token":"device-1"}"#, accepted: "0:1500415314455276%31bd1c9631bd1c96"),
        Case(#"{"token":"device-1"}"#, accepted: "0:1", replacement: "device-2"),
        Case(#"{"topic":"news"}"#, accepted: "5735983"),
        Case(#"{"condition":"'news' in topics && 'sport' in topics"}"#, accepted: "5735983"),
        // One result for each token, in the request's order.
        Case(
            #"{"tokens":["a","b","c","d","e"]}"#,
            [
                .accepted(Acceptance(messageID: "0:15")), .rejected(.unregistered),
                .accepted(Acceptance(messageID: "0:16", replacementToken: "new")),
                .rejected(Rejection(code: .deviceRateExceeded)), .rejected(.invalidToken),
            ],
            retryAfter: 12,
            Self.five
        ),
        // A list is answered as a list even if every token failed.
        Case(
            #"{"tokens":["a","b"]}"#,
            [.rejected(.unregistered), .rejected(.unregistered)],
            ["accepted": 0, "rejected": 2, "results": [Self.dead("a"), Self.dead("b")]]
        ),
        // A group's counts, with the members that failed.
        Case(
            #"{"token":"a-group"}"#,
            .group(1, 2, failed: ["x", "y"]),
            ["accepted": 1, "rejected": 2, "results": [Self.failed("x"), Self.failed("y")]]
        ),
    ]

    @Test("An answer has the message's id and each recipient's outcome, and nothing else", arguments: Self.cases)
    func answers(expected: Case) async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(expected.result)
            let answer = await gateway.send(expected.body, key: key)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/json")
            let json = try answer.json
            #expect(json["id"]?.text?.isUUIDv7 == true)
            #expect(json.without("id") == expected.answer)
        }
    }

    @Test("Every field of a message reaches the upstream")
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
                #expect(call.command.message.notification?[key] == text)
            }
            #expect(call.command.message.notification?.badge == notification.badge)
            #expect(call.command.message.notification?.titleLocArgs == notification.titleLocArgs)
            #expect(call.command.message.notification?.bodyLocArgs == notification.bodyLocArgs)
            var received = call.command.message
            received.notification = nil
            message.notification = nil
            #expect(received == message)
            #expect(call.target == .token("device"))
        }
    }

    @Test(
        "A field that the upstream can't carry is refused with its pointer",
        arguments: [
            ("fid", #"{"fid":"f"}"#, OutcomeCode.invalidTarget), ("fids", #"{"fids":["f","g"]}"#, .invalidTarget),
            ("condition", #"{"condition":"!('a' in topics)"}"#, .invalidField),
        ]
    )
    func upstreamRefusal(field: String, body: String, code: OutcomeCode) async throws {
        try await TestGateway.run { gateway, key in
            gateway.upstream.refuse(with: Refusal(code, "It has no form for this", field: field))
            let problem = try await gateway.send(body, key: key).expectProblem(422, code.rawValue)
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
            // Each request arrived after the one before, so only the header can explain this order.
            #expect(deadlines[1] < deadlines[0])
            #expect(deadlines[2] < Uptime.now + .seconds(20))
            #expect(deadlines[2] > deadlines[0])
        }
    }
}
