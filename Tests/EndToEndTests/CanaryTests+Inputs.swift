import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd.CanaryTests {
    // Each has only characters that its field accepts.
    static let topic = "canary-topic~%41.x"
    static let idempotencyKey = "canary-idempotency-key-0815"
    static let group = "canary group/name"
    static let member = #"canary:member"token\/+%é"#
    /// Sent in fields that don't expect it.
    static let oddInput = "CANARY-odd.input_4711"

    /// Sends secrets in every part of a request, by all routes of both listeners.
    func sendOddInputs(_ trial: inout Trial) async throws {
        let scopes = ["messages:send", "topics:manage", "device-groups:manage", "tokens:read", "audit:read"]
        let key = try await trial.gateway.makeKey("demo", scopes)
        trial.keys.append(key)
        try await self.call(byAllRoutes: key, &trial)
        try await self.misplaceKeys(key, &trial)
        try await self.sendHostileBytes(&trial)
    }

    private func call(byAllRoutes key: String, _ trial: inout Trial) async throws {
        func encoded(_ text: String) -> String {
            text.addingPercentEncoding(withAllowedCharacters: .unreserved) ?? ""
        }
        let (token, topic, group) = (encoded(Self.token), encoded(Self.topic), encoded(Self.group))
        let tenant = "/v1/tenants/demo"
        let tokens: JSON = ["tokens": [.string(Self.token)]]
        let members: JSON = ["tokens": [.string(Self.member)]]
        let batch: JSON = ["to": "/topics/\(Self.topic)", "registration_tokens": [.string(Self.token)]]
        let change: JSON = [
            "operation": "create", "notification_key_name": .string(Self.group),
            "registration_ids": [.string(Self.member)],
        ]
        let rest: JSON = ["token": .string(Self.token), "data": ["a": .string(Self.payload)]]
        let legacy: JSON = ["to": .string(Self.token), "data": ["a": .string(Self.payload)]]
        let message: JSON = ["message": rest]
        let calls: [(String, String, String?)] = [
            ("POST", "\(tenant)/messages", rest.encoded),
            ("POST", "\(tenant)/messages?key=\(token)", rest.encoded),
            ("POST", "\(tenant)/messages/explain", rest.encoded),
            ("POST", "/fcm/send", legacy.encoded), ("POST", "/fcm/send?\(token)", Self.payload),
            ("POST", "/v1/projects/demo/messages:send", message.encoded),
            ("POST", "/v1/projects/\(token)/messages:send", message.encoded),
            ("POST", "\(tenant)/topics/\(topic)/subscriptions", tokens.encoded),
            ("POST", "\(tenant)/topics/\(topic)/subscriptions/remove", tokens.encoded),
            ("POST", "\(tenant)/topics/\(topic)/subscriptions", Self.payload),
            ("GET", "\(tenant)/subscriptions?token=\(token)", nil),
            ("POST", "/iid/v1:batchAdd", batch.encoded), ("POST", "/iid/v1:batchRemove", batch.encoded),
            ("GET", "/iid/info/\(token)?details=true", nil), ("POST", "/iid/v1/\(token)/rel/topics/\(topic)", nil),
            ("DELETE", "/iid/v1/\(token)/rel/topics/\(topic)", nil),
            ("GET", "/v1/projects/demo/registrations/\(token)/topicSubscriptions", nil),
            ("POST", "/v1/projects/demo/registrations/\(token)/topicSubscriptions?topic_name=\(topic)", nil),
            ("DELETE", "/v1/projects/demo/registrations/\(token)/topicSubscriptions/\(topic)", nil),
            ("PUT", "\(tenant)/device-groups/\(group)", members.encoded),
            ("GET", "\(tenant)/device-groups/\(group)", nil),
            ("POST", "\(tenant)/device-groups/\(group)/members", members.encoded),
            ("POST", "\(tenant)/device-groups/\(group)/members/remove", members.encoded),
            ("DELETE", "\(tenant)/device-groups/\(group)", nil),
            ("POST", "/fcm/notification", change.encoded),
            ("GET", "/fcm/notification?notification_key_name=\(group)", nil),
            ("GET", "\(tenant)/retired-tokens?cursor=\(token)", nil), ("GET", "\(tenant)/audit?target=\(token)", nil),
            ("PATCH", "/\(token)/\(topic)", Self.payload), (Self.oddInput, "/\(token)", nil),
            ("GET", "/\(Self.oddInput)/?\(Self.oddInput)=\(Self.oddInput)", nil),
        ]
        for (method, path, body) in calls {
            let isLegacy = path.hasPrefix("/fcm/") || path.hasPrefix("/iid/")
            var headers = [
                "Authorization": (isLegacy ? "key=" : "Bearer ") + key, "Content-Type": "application/json",
                "traceparent": Self.oddInput, "tracestate": "\(Self.oddInput)=1", "baggage": "a=\(Self.oddInput)",
                "X-Request-ID": "\(Self.oddInput)!", "User-Agent": Self.oddInput, "Cookie": Self.oddInput,
                "X-Forwarded-For": Self.oddInput, "Referer": Self.oddInput, "project_id": "123456789012",
            ]
            if path.hasSuffix("messages") || path.hasSuffix("send") { headers["Idempotency-Key"] = Self.idempotencyKey }
            for listener in [trial.gateway.address, trial.gateway.adminAddress] {
                let reply = try await Reply.to(method, listener + path, headers: headers, body: body)
                #expect(reply.status != 500, "\(method) \(path): \(reply.text)")
                // A successful answer may quote the caller's input; a refusal must not.
                if reply.status >= 400 { trial.keep(reply, "\(method) of a route") }
            }
        }
    }

    /// Sends keys in malformed Authorization fields and in URLs.
    private func misplaceKeys(_ key: String, _ trial: inout Trial) async throws {
        let basic = Data("user:\(key)".utf8).base64EncodedString()
        let shapes = [
            "bearer \(key)", "Bearer  \(key)", "Bearer \(key) ", "Bearer: \(key)", "Basic \(basic)", key, "key=\(key)",
            "key= \(key)", "key=\(Self.serverKey)", "Bearer \(Self.adminToken)", "Token token=\"\(key)\"",
            "Bearer \(key),Bearer \(key)", "Digest username=\"\(Self.oddInput)\"", "\(Self.oddInput) \(Self.oddInput)",
        ]
        for shape in shapes {
            for (listener, path) in [
                (trial.gateway.address, "/v1/tenants/demo/messages"), (trial.gateway.address, "/fcm/send"),
                (trial.gateway.address, "/v1/tenants/demo/audit"), (trial.gateway.adminAddress, "/admin/v1/tenants"),
            ] {
                let headers = ["Authorization": shape, "Content-Type": "application/json", "X-Api-Key": key]
                let method = path.hasSuffix("audit") || path.hasSuffix("tenants") ? "GET" : "POST"
                trial.keep(
                    try await Reply.to(method, listener + path, headers: headers, body: method == "POST" ? "{}" : nil),
                    "an odd key"
                )
            }
        }
        for path in [
            "/v1/tenants/demo/messages?key=\(key)", "/v1/tenants/\(key)/messages",
            "/v1/tenants/demo/audit?access_token=\(key)",
            "/\(key)", "/admin/v1/tenants/\(key)", "/admin/v1/tenants?token=\(key)", "/metrics?\(key)",
        ] {
            for listener in [trial.gateway.address, trial.gateway.adminAddress] {
                let reply = try await Reply.to("GET", listener + path)
                if reply.status >= 400 { trial.keep(reply, "a key in the address") }
            }
        }
    }

    /// Sends malformed requests.
    private func sendHostileBytes(_ trial: inout Trial) async throws {
        let secret = "Authorization: Bearer \(trial.keys.first ?? "")\r\nX-Token: \(Self.token)\r\n"
        let head = "POST /v1/tenants/demo/messages HTTP/1.1\r\nHost: a\r\n\(secret)"
        let hostile = [
            head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\(Self.payload)\r\n",
            head + "Transfer-Encoding: gzip\r\n\r\n\(Self.payload)", head + "Content-Length: 99999999\r\n\r\n",
            head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n\(Self.payload)",
            head + "Expect: \(Self.oddInput)\r\n\r\n", head + " \(Self.oddInput)\r\n\r\n",
            "\(Self.oddInput) /\(Self.oddInput) HTTP/1.1\r\nHost: a\r\n\r\n", "\(Self.oddInput)\r\n\r\n",
            "GET /\(Self.oddInput) HTTP/9.9\r\nHost: \(Self.oddInput)\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: Self.oddInput, count: 1_000))\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\(Self.oddInput): a\u{0}b\r\n\r\n",
        ]
        for port in [trial.gateway.port, trial.gateway.adminPort] {
            for bytes in hostile {
                trial.keep(try await RawExchange.reply(port: port, sending: bytes), "hostile bytes")
            }
        }
    }
}
