import Foundation
import NIOHPACK
import NIOHTTP2
import Testing

@testable import FCMEmulator

@Suite("HTTP/2", .timeLimit(.minutes(10)))
struct HTTP2Tests {
    private static let message = #"{"message":{"token":"tok"}}"#

    private static func message(_ token: String) -> String { #"{"message":{"token":"\#(token)"}}"# }

    /// Runs an emulator with an account and an HTTP/2 connection to it.
    private static func withClient(_ body: (FCMEmulator, H2Client, String) async throws -> Void) async throws {
        try await withSender { emulator, raw, token in
            try await H2Client.with(port: raw.port) { client in try await body(emulator, client, token) }
        }
    }

    /// Returns the last stream of the first GOAWAY.
    private static func lastStream(_ client: H2Client) async -> HTTP2StreamID? {
        for await frame in client.frames {
            if case .goAway(let last, let code, _) = frame {
                #expect(code == .noError)
                return last
            }
        }
        return nil
    }

    private static func limit(in frame: HTTP2Frame.FramePayload) -> Int? {
        guard case .settings(.settings(let settings)) = frame else { return nil }
        return settings.last { $0.parameter == .maxConcurrentStreams }?.value
    }

    @Test("Messages are accepted with prior knowledge and over TLS", arguments: [false, true])
    func send(isSecure: Bool) async throws {
        let certificate = isSecure ? try EmulatorCertificate.selfSigned() : nil
        try await withSender(certificate: certificate) { emulator, raw, token in
            try await H2Client.with(port: raw.port, certificate: certificate) { client in
                let first = try await client.send(message: Self.message, token: token)
                #expect(first.status == 200)
                #expect(first.headers.first(name: "content-type") == "application/json; charset=UTF-8")
                #expect(try first.json()["name"] as? String != nil)
                let second = try await client.send(message: Self.message("ERROR_UNREGISTERED"), token: token)
                #expect(second.status == 404)
            }
            let entries = emulator.journal(limit: 2)
            #expect(entries.map(\.stream) == [3, 1])
            #expect(entries[0].connection == entries[1].connection)
            #expect(entries[0].headers.contains(HeaderField(name: "Host", value: "localhost")))
            #expect(emulator.deliveries().map(\.token) == ["tok"])
        }
    }

    @Test("HEAD gets the response of GET without its body, and the connection stays open")
    func head() async throws {
        try await withSender(certificate: nil) { _, raw, token in
            try await H2Client.with(port: raw.port) { client in
                let whole = try await client.send("GET", "/", body: "")
                let head = try await client.send("HEAD", "/", body: "")
                #expect(whole.status == 404 && !whole.body.isEmpty)
                #expect(head.status == 404 && head.body.isEmpty && head.reset == nil)
                #expect(head.headers.first(name: "content-length") == "\(whole.body.utf8.count)")
                #expect(try await client.send(message: Self.message, token: token).status == 200)
            }
            let reply = try await raw.exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            #expect(reply.text.hasPrefix("HTTP/1.1 404") && reply.text.hasSuffix("\r\n\r\n"))
        }
    }

    @Test("A TLS client may offer HTTP/1.1 or no protocol", arguments: [["http/1.1"], []])
    func fallback(protocols: [String]) async throws {
        let certificate = try EmulatorCertificate.selfSigned()
        try await withEmulator(EmulatorConfiguration(port: 0, certificate: certificate)) { emulator, client in
            var client = client
            client.protocols = protocols
            #expect(try await client.send(#"{"to":"tok"}"#).status == 200)
            #expect(emulator.deliveries().map(\.token) == ["tok"])
            let account = try await emulator.makeServiceAccount(projectID: "demo")
            #expect(account.tokenURI == "https://127.0.0.1:\(client.port)/token")
        }
    }

    @Test("An unreadable certificate or service account fails run")
    func badCredentials() async throws {
        let certificate = EmulatorCertificate(certificateChain: "x", privateKey: "y")
        await #expect(throws: (any Error).self) {
            try await withEmulator(EmulatorConfiguration(port: 0, certificate: certificate)) { _, _ in }
        }
        var account = try TestAccount.file()
        account.privateKey = "x"
        let reason = "private_key is not an RSA key in PEM of at least 2048 bits"
        await #expect(throws: EmulatorError.badServiceAccount(reason)) {
            var configuration = EmulatorConfiguration(port: 0)
            configuration.serviceAccounts = [account]
            try await withEmulator(configuration) { _, _ in }
        }
    }

    @Test("The stream limit is sent at the start and after each change")
    func limit() async throws {
        try await withSender(settings: EmulatorSettings(maxConcurrentStreams: 7)) { emulator, raw, _ in
            try await H2Client.with(port: raw.port) { client in
                var limits = client.frames.compactMap { Self.limit(in: $0) }.makeAsyncIterator()
                #expect(await limits.next() == 7)
                let reply = try await raw.control("POST", "settings", #"{"max_concurrent_streams":3}"#)
                #expect(
                    reply.body == #"{"goaway_every_ms":0,"latency_ms":0,"max_concurrent_streams":3,"#
                        + #""token_lifetime_s":3599,"unregistered_percent":0}"#
                )
                #expect(await limits.next() == 3)
                emulator.reset()
                #expect(await limits.next() == 7)
            }
        }
    }

    @Test("Connections and streams are counted")
    func counts() async throws {
        try await withSender { emulator, raw, token in
            emulator.reset()
            emulator.addFault(Fault(token: "tok", times: 3, action: .hang))
            try await H2Client.with(port: raw.port) { client in
                var entries = emulator.journalEntries().makeAsyncIterator()
                try await withThrowingTaskGroup(of: H2Reply.self) { group in
                    for _ in 0..<3 {
                        group.addTask { try await client.send(message: Self.message, token: token) }
                    }
                    for _ in 0..<3 { #expect(await entries.next()?.fault == "hang") }
                    let members = try await raw.control("GET", "connections").json()
                    #expect(members["streams"] as? Int == 3)
                    #expect(members["max_streams_per_connection"] as? Int == 3)
                    let connections = try #require(members["connections"] as? [[String: Any]])
                    let multiplexed = try #require(connections.first { $0["protocol"] as? String == "h2" })
                    #expect(multiplexed["streams"] as? Int == 3)
                    #expect(multiplexed["going_away"] as? Bool == false)
                    emulator.deleteFaults()
                    for try await reply in group { #expect(reply.status == 200) }
                }
                let report = emulator.connectionReport
                #expect(report.maxStreams == 3)
                #expect(report.maxStreamsPerConnection == 3)
                #expect(report.connections.contains { $0.protocolName == "h2" && $0.maxStreams == 3 })
            }
        }
    }

    @Test("A GOAWAY with a response delivers the message and closes the connection")
    func goAwayAnswered() async throws {
        try await Self.withClient { emulator, client, token in
            emulator.addFault(Fault(token: "tok", action: .goAway(isRefused: false)))
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == 200)
            #expect(await Self.lastStream(client) == 1)
            for await _ in client.frames {}
            #expect(emulator.deliveries().count == 1)
        }
    }

    @Test("A GOAWAY that refuses excludes the stream, which is not processed")
    func goAwayRefused() async throws {
        try await Self.withClient { emulator, client, token in
            #expect(try await client.send(message: Self.message("first"), token: token).status == 200)
            emulator.addFault(Fault(action: .goAway(isRefused: true)))
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == nil)
            // NIOHTTP2 reports every stream above the last one of GOAWAY as cancelled.
            #expect(reply.reset == .cancel)
            #expect(await Self.lastStream(client) == 1)
            for await _ in client.frames {}
            #expect(emulator.deliveries().map(\.token) == ["first"])
            #expect(emulator.journal().first?.decision?.reason == "refused by GOAWAY")
            #expect(emulator.journal().first?.fault == "goaway")
        }
    }

    @Test("A refused stream below the last one of GOAWAY is reset, and the last one is answered")
    func goAwayRefusedBelow() async throws {
        try await withSender { emulator, raw, token in
            emulator.addFault(Fault(token: "late", action: .hang))
            emulator.addFault(Fault(token: "refused", action: .goAway(isRefused: true)))
            try await H2Client.with(port: raw.port) { client in
                var entries = emulator.journalEntries().makeAsyncIterator()
                let (begun, beginning) = AsyncStream<Void>.makeStream()
                let (gate, opening) = AsyncStream<Void>.makeStream()
                async let refused = client.send(message: Self.message("refused"), token: token) {
                    beginning.finish()
                    for await _ in gate {}
                }
                for await _ in begun {}
                async let late = client.send(message: Self.message("late"), token: token)
                #expect(await entries.next()?.stream == 3)
                opening.finish()
                let reset = try await refused
                #expect(reset.reset == .refusedStream)
                #expect(await Self.lastStream(client) == 3)
                #expect(emulator.connectionReport.connections.contains { $0.isGoingAway })
                emulator.deleteFaults()
                let answered = try await late
                #expect(answered.status == 200)
            }
            #expect(emulator.deliveries().map(\.token) == ["late"])
        }
    }

    @Test("After GOAWAY on demand, open streams are answered and the connection closes")
    func goAwayOnDemand() async throws {
        try await withSender { emulator, raw, token in
            emulator.addFault(Fault(token: "tok", times: 20, action: .hang))
            try await H2Client.with(port: raw.port) { client in
                var entries = emulator.journalEntries().makeAsyncIterator()
                try await withThrowingTaskGroup(of: H2Reply.self) { group in
                    for _ in 0..<20 {
                        group.addTask { try await client.send(message: Self.message, token: token) }
                    }
                    for _ in 0..<20 { #expect(await entries.next()?.fault == "hang") }
                    #expect(try await raw.control("POST", "goaway").body == #"{"connections":1}"#)
                    #expect(await Self.lastStream(client) == 39)
                    emulator.deleteFaults()
                    for try await reply in group { #expect(reply.status == 200) }
                }
                for await _ in client.frames {}
            }
            #expect(emulator.deliveries().count == 20)
        }
    }

    @Test("GOAWAY is sent at the interval of the settings")
    func goAwayRegularly() async throws {
        let clock = StepClock()
        let settings = EmulatorSettings(goAwayInterval: .seconds(30))
        try await withSender(settings: settings, clock: clock) { emulator, raw, token in
            #expect(await clock.sleeps.first { _ in true } == .seconds(30))
            for round in 1...2 {
                try await H2Client.with(port: raw.port) { client in
                    let reply = try await client.send(message: Self.message, token: token)
                    #expect(reply.status == 200)
                    clock.step()
                    #expect(await Self.lastStream(client) == 1, "round \(round)")
                    #expect(await clock.sleeps.first { _ in true } == .seconds(30))
                }
            }
            _ = try await raw.control("POST", "settings", #"{"goaway_every_ms":500}"#)
            #expect(await clock.sleeps.first { _ in true } == .milliseconds(500))
            emulator.updateSettings { $0.goAwayInterval = nil }
        }
    }

    @Test("A refused stream leaves its connection usable")
    func refuse() async throws {
        try await Self.withClient { emulator, client, token in
            emulator.addFault(Fault(token: "tok", action: .refuse))
            let refused = try await client.send(message: Self.message, token: token)
            #expect(refused.reset == .refusedStream)
            #expect(try await client.send(message: Self.message, token: token).status == 200)
            let entries = emulator.journal(limit: 2)
            #expect(entries.map(\.fault) == [nil, "refuse"])
            #expect(entries[1].decision?.status == nil)
            #expect(emulator.deliveries().count == 1)
        }
    }

    @Test("A reset closes the connection with all its streams")
    func reset() async throws {
        try await Self.withClient { emulator, client, token in
            emulator.addFault(Fault(token: "other", action: .hang))
            emulator.addFault(Fault(token: "tok", action: .reset))
            var entries = emulator.journalEntries().makeAsyncIterator()
            async let other = client.send(message: Self.message("other"), token: token)
            #expect(await entries.next()?.fault == "hang")
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == nil)
            let abandoned = try await other
            #expect(abandoned.status == nil)
            for await _ in client.frames {}
            #expect(emulator.deliveries().isEmpty)
        }
    }

    @Test("A reset also resets a TLS connection")
    func resetWithTLS() async throws {
        let certificate = try EmulatorCertificate.selfSigned()
        try await withEmulator(EmulatorConfiguration(port: 0, certificate: certificate)) { emulator, client in
            emulator.addFault(Fault(action: .reset))
            let reply = try await client.send(#"{"to":"tok"}"#)
            #expect(reply.text == "")
            #expect(reply.end == .reset)
        }
    }

    @Test("In HTTP/1.1, GOAWAY closes after the response, and a refusal resets the connection")
    func withoutStreams() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .goAway(isRefused: false)))
            let request = RawClient.request("POST", "/fcm/send", json: #"{"to":"t"}"#, connection: "keep-alive")
            let answered = try await client.exchange(request)
            #expect(answered.status == 200)
            #expect(answered.end == .closed)
            emulator.addFault(Fault(action: .goAway(isRefused: true)))
            #expect(try await client.exchange(request).end == .reset)
            emulator.addFault(Fault(action: .refuse))
            #expect(try await client.exchange(request).end == .reset)
            #expect(emulator.deliveries().count == 1)
        }
    }

    @Test("A truncated response resets its own stream only")
    func truncate() async throws {
        try await Self.withClient { emulator, client, token in
            emulator.addFault(Fault(token: "tok", action: .truncate))
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == 200)
            #expect(reply.reset != nil)
            #expect(try await client.send(message: Self.message, token: token).reset == nil)
        }
    }

    @Test("A body over the limit is refused")
    func tooLarge() async throws {
        var configuration = EmulatorConfiguration(port: 0)
        configuration.maxBodyBytes = 100
        try await withEmulator(configuration) { emulator, raw in
            try await H2Client.with(port: raw.port) { client in
                let body = String(repeating: "x", count: 50_000)
                let reply = try await client.send("POST", "/fcm/send", body: body)
                #expect(reply.status == 413)
            }
            #expect(emulator.journal().first?.decision?.reason == "the body has more than 100 bytes")
        }
    }

    @Test("Shutdown closes idle connections and those without a known protocol")
    func shutdown() async throws {
        let ended = AsyncStream<Void>.makeStream()
        let client = try await withEmulator { _, raw in
            let idle = Task {
                try await H2Client.with(port: raw.port) { client in
                    _ = try await client.send("GET", "/nothing", body: "")
                    ended.continuation.yield()
                    for await _ in client.frames {}
                }
            }
            let silent = Task { try await raw.exchange("") { ended.continuation.yield() } }
            let begun = Task { try await raw.exchange("PRI * HT") { ended.continuation.yield() } }
            // All three are connected and have sent their bytes.
            var iterator = ended.stream.makeAsyncIterator()
            for _ in 1...3 { await iterator.next() }
            return (idle, silent, begun)
        }
        try await client.0.value
        #expect(try await client.1.value.text == "")
        #expect(try await client.2.value.text == "")
    }
}
