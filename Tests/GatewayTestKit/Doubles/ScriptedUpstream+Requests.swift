package import FCMModel
package import GatewayCore

extension ScriptedUpstream {
    /// Requests with the bodies that FCM would get, and with a URL and fields that no other code uses.
    package func requests(of call: UpstreamCall, limit: Int) -> [Message.Request] {
        let bodies =
            switch call.profile.tenant.upstream {
            case .legacy: [try? LegacyRequestEncoder.encode(call.command.message, to: call.target)].compactMap(\.self)
            case .v1:
                (0..<min(call.target.recipientCount, limit))
                    .map { V1Calls(call.command.message, to: call.target, now: 0).body(at: $0) }
            }
        return bodies.map { body in
            Message.Request(
                method: "PUT",
                url: "https://fcm.test/a%2Fb",
                fields: [("Authorization", "secret ***"), ("X-Scripted", "a; b=\"c\"")],
                body: body
            )
        }
    }
}
