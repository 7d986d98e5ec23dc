import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayUpstream

/// The requests that a preview shows, compared with those that FCM receives.
@Suite("Shown requests", .timeLimit(.minutes(10)))
struct ShownRequestTests {
    /// The parts of a request that a preview and a server both know.
    private struct Request: Hashable, CustomStringConvertible {
        /// The fields that a connection or a trace adds.
        private static let addedFields: Set = ["host", "content-length", "traceparent", "tracestate"]

        let method: String
        let url: String
        /// In alphabetical order, with names in lower case.
        let fields: [String]
        let body: String

        init(_ shown: Message.Request) {
            self.method = shown.method
            self.url = shown.url
            self.fields = shown.fields.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
            self.body = String(buffer: shown.body)
        }

        /// A request that a server at an address received, with stars in place of the credential.
        init(_ received: JournalEntry, at address: String) {
            self.method = received.method
            self.url = address + received.path
            self.fields = received.headers
                .compactMap { field in
                    let name = field.name.lowercased()
                    guard !Self.addedFields.contains(name) else { return nil }
                    return "\(name): \(name == "authorization" ? Self.masked(field.value) : field.value)"
                }
                .sorted()
            self.body = received.body
        }

        private static func masked(_ credential: String) -> String {
            let scheme = ["Bearer ", "key="].first { credential.hasPrefix($0) && credential.count > $0.count }
            return scheme.map { "\($0)***" } ?? credential
        }

        var description: String { ([self.method, self.url] + self.fields + [self.body]).joined(separator: "\n") }
    }

    private static func message() -> Message {
        var notification = Notification()
        notification[.title] = "\u{1F600} \"quoted\" / \\ \u{2028}"
        var message = Message()
        message.notification = notification
        message.data = [DataEntry(key: "score", value: "3x1\n\u{7}é")]
        message.priority = .high
        message.timeToLive = 3_600
        message.collapseKey = "match"
        message.contentAvailable = true
        message.mutableContent = true
        message.restrictedPackageName = "com.example"
        return message
    }

    private static func messages(at emulator: FCMEmulator) -> [JournalEntry] {
        emulator.journal().filter { $0.path == "/fcm/send" || $0.path.hasSuffix("messages:send") }.reversed()
    }

    @Test("A preview shows the requests that FCM receives, for every target", arguments: [UpstreamKind.legacy, .v1])
    func everyTarget(upstream: UpstreamKind) async throws {
        // The calls of a list run one at a time, so that they arrive in order.
        try await GroupFixture.run(upstream, fanOut: 1) { fixture in
            let groups = fixture.groups()
            let (group, _) = try await groups.put("family", tokens: ["a", "b"], by: fixture.caller())
            let targets: [Target] = [
                .token("t:\"\\/é"), .tokens(["a", "b:c", "a"]), .installation("f"), .installations(["f", "g"]),
                .topic(try #require(TopicName("news~%"))),
                .condition(try TopicCondition(parsing: #""a" IN topics&&('b' in topics || 'c' in topics)"#)),
                .notificationKey(try #require(group.key)), .deviceGroup("family"),
            ]
            let clock = ManualClock()
            let pipeline = SendPipeline(
                retired: .sample(clock: clock),
                limiter: MemoryRateLimiter.withoutJitter(),
                upstream: fixture.client,
                audit: fixture.audit,
                clock: clock,
                groups: groups
            )
            let principal = Principal(profile: fixture.profile, key: try .sample(of: .generate()))
            let address = try await fixture.emulator.baseURL()
            for (target, dryRun) in targets.flatMap({ [($0, false), ($0, true)] }) {
                var message = Self.message()
                message.dryRun = dryRun
                let command = SendCommand.sample(from: principal, to: target, message: message)
                let earlier = Self.messages(at: fixture.emulator).count
                let preview = try await pipeline.preview(command, maxRequests: 10)
                #expect(Self.messages(at: fixture.emulator).count == earlier)
                _ = await pipeline.send(command)
                let received = Self.messages(at: fixture.emulator).dropFirst(earlier)
                #expect(preview.requests.map(Request.init) == received.map { Request($0, at: address) }, "\(target)")
                let count = preview.refusal == nil ? upstream.callCount(of: target) : 0
                #expect(received.count == count, "\(target)")
            }
        }
    }

    @Test(
        "A project id is percent-encoded as one path segment, in previews and in requests",
        arguments: [
            ("demo-project", "demo-project"), ("example.com:demo", "example.com:demo"), ("a/b", "a%2Fb"),
            ("a?b#c d", "a%3Fb%23c%20d"), ("ü%", "%C3%BC%25"), ("a\r\nb", "a%0D%0Ab"),
        ]
    )
    func project(project: String, segment: String) async throws {
        try await V1Fixture.run { fixture in
            let call = try fixture.call(projectID: project)
            let shown = fixture.client.requests(of: call, limit: 10)
            _ = await fixture.client.send(call)
            #expect(shown.map(Request.init) == fixture.messages.map { Request($0, at: fixture.endpoint) })
            #expect(fixture.messages.map(\.path) == ["/v1/projects/\(segment)/messages:send"])
        }
    }

    @Test("A preview shows the credential's endpoint, or else the configured one")
    func servers() async throws {
        try await FCMClient.run(defaultEndpoint: "https://FCM.example:443/") { client in
            let urls = try ["https://own.example:8443", nil, "ftp://own.example"]
                .map { try client.requests(of: .sample(endpoint: $0), limit: 10).map(\.url) }
            #expect(urls == [["https://own.example:8443/fcm/send"], ["https://fcm.example/fcm/send"], []])
            let bare = client.requests(of: try .sample(credential: nil), limit: 10)
            #expect(bare.map(\.url) == ["https://fcm.example/fcm/send"])
            var tenant = try Tenant.sample()
            (tenant.upstream, tenant.projectID) = (.v1, "demo")
            let call = try UpstreamCall.sample(of: tenant, to: .tokens(["a", "b", "c"]), credential: nil)
            let path = "https://fcm.googleapis.com/v1/projects/demo/messages:send"
            #expect(client.requests(of: call, limit: 2).map(\.url) == [path, path])
        }
    }
}
