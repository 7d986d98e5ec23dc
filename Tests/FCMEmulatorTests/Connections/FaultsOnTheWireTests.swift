import FCMEmulator
import Foundation
import Testing

@Suite("Faults on the wire", .timeLimit(.minutes(10)))
struct FaultsOnTheWireTests {
    private static let message = #"{"to":"tok"}"#

    @Test("A scripted status replaces one response")
    func status() async throws {
        try await withEmulator { emulator, client in
            let headers = [HeaderField(name: "Retry-After", value: "7")]
            emulator.addFault(Fault(action: .status(503, body: "busy", headers: headers)))
            let reply = try await client.send(Self.message)
            #expect(reply.status == 503)
            #expect(reply.header("retry-after") == "7")
            #expect(reply.body == "busy")
            #expect(emulator.deliveries().isEmpty)
            #expect(emulator.journal().first?.fault == "status")
            #expect(try await client.send(Self.message).status == 200)
        }
    }

    @Test("A page is HTML that names its status")
    func page() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .page(502)))
            let reply = try await client.send(Self.message)
            #expect(reply.status == 502)
            #expect(reply.header("content-type") == "text/html; charset=UTF-8")
            #expect(reply.body.contains("<h1>Error 502</h1>"))
        }
    }

    @Test("A garbage response is not JSON")
    func garbage() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(token: "tok", action: .garbage))
            #expect(try await client.send(#"{"to":"other"}"#).status == 200)
            let reply = try await client.send(Self.message)
            #expect(reply.status == 200)
            #expect(throws: (any Error).self) { try JSONSerialization.jsonObject(with: Data(reply.body.utf8)) }
        }
    }

    @Test("A truncated response has half of its length, and the message is delivered")
    func truncate() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .truncate))
            let request = RawClient.request("POST", "/fcm/send", json: Self.message, connection: "keep-alive")
            let reply = try await client.exchange(request)
            let announced = try #require(reply.header("content-length").flatMap { Int($0) })
            #expect(reply.status == 200)
            #expect(reply.body.utf8.count == announced / 2)
            #expect(reply.end == .closed)
            #expect(emulator.deliveries().map(\.token) == ["tok"])
        }
    }

    @Test("A reset closes the connection without a response")
    func reset() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .reset))
            let reply = try await client.send(Self.message)
            #expect(reply.text == "")
            #expect(reply.end == .reset)
            let entry = try #require(emulator.journal().first)
            #expect(entry.decision?.status == nil)
            #expect(entry.decision?.reason == "connection reset")
            #expect(emulator.deliveries().isEmpty)
        }
    }

    @Test("A hanging request is handled once the faults are deleted")
    func hang() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(times: 2, action: .hang))
            var entries = emulator.journalEntries().makeAsyncIterator()
            async let reply = client.send(Self.message)
            let held = try #require(await entries.next())
            #expect(held.fault == "hang")
            #expect(held.decision == nil)
            #expect(emulator.deliveries().isEmpty)
            #expect(try await client.control("DELETE", "faults").status == 204)
            let answer = try await reply
            #expect(answer.status == 200)
            #expect(await entries.next()?.decision?.deliveredTo == ["tok"])
            #expect(try await client.send(Self.message).status == 200)
        }
    }

    @Test("A hanging request ends when its client disconnects")
    func hangAbandoned() async throws {
        try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .hang))
            let entries = emulator.journalEntries()
            let request = RawClient.request("POST", "/fcm/send", json: Self.message, connection: "keep-alive")
            try await client.withConnection(sending: request) { _ in
                let held = await entries.first { _ in true }
                #expect(held?.decision == nil)
            }
            let ended = await entries.first { _ in true }
            #expect(ended?.decision?.reason == "the client went away")
            #expect(emulator.deliveries().isEmpty)
        }
    }

    @Test("Shutdown completes hanging requests")
    func hangAtShutdown() async throws {
        let pending = try await withEmulator { emulator, client in
            emulator.addFault(Fault(action: .hang))
            let entries = emulator.journalEntries()
            let reply = Task { try await client.send(Self.message) }
            _ = await entries.first { _ in true }
            return reply
        }
        #expect(try await pending.value.status == 200)
    }

    @Test("A delayed request is handled when the pause is over")
    func delay() async throws {
        let clock = StepClock()
        try await withEmulator(clock: clock) { emulator, client in
            emulator.addFault(Fault(action: .delay(.milliseconds(250))))
            async let reply = client.send(Self.message)
            let pause = await clock.sleeps.first { _ in true }
            #expect(pause == .milliseconds(250))
            #expect(emulator.journal().first?.decision == nil)
            clock.step()
            let answer = try await reply
            #expect(answer.status == 200)
            #expect(emulator.journal().first?.decision?.status == 200)
        }
    }

    @Test("Deleting the faults ends a pause")
    func delayCut() async throws {
        let clock = StepClock()
        try await withEmulator(clock: clock) { emulator, client in
            emulator.addFault(Fault(action: .delay(.seconds(3_600))))
            async let reply = client.send(Self.message)
            _ = await clock.sleeps.first { _ in true }
            emulator.deleteFaults()
            let answer = try await reply
            #expect(answer.status == 200)
        }
    }
}
