import GatewayTestKit
import HTTPTypes
import NIOCore
import NIOHTTP2
import Testing

@testable import EventLoopHTTP

@Suite("HTTP/2 client", .timeLimit(.minutes(10)))
struct HTTP2ClientTests {
    @Test("A request is sent with its pseudo-headers and lowercase fields, and repeated alike")
    func requestHead() async throws {
        let peer = try await HTTP2Peer.start { _ in .answer(status: 201, fields: [("x-a", "1"), ("x-a", "2")]) }
        let pool = try peer.pool()
        let request = HTTPClientRequest(
            method: .post,
            path: "/v1/p q?x#z",
            headers: [.authorization: "Bearer t", .connection: "close", .contentType: "text/plain"],
            body: ByteBuffer(string: "{}")
        )
        for number in 1...3 {
            let response = try await pool.execute(request, deadline: .now() + .seconds(600))
            #expect(response.status.code == 201)
            #expect(response.fields[HTTPFieldKey(try #require(HTTPField.Name("X-A")))] == "1, 2")
            #expect(String(buffer: response.body) == "ok")
            #expect(peer.record.requests.count == number)
        }
        for request in peer.record.requests {
            #expect(
                request.head.map { "\($0.name) \($0.value)" } == [
                    ":method POST", ":scheme https", ":authority localhost:\(peer.port)", ":path /v1/p%20q?x%23z",
                    "authorization Bearer t", "content-type text/plain", "content-length 2",
                ]
            )
            #expect(request.bodyBytes == 2)
        }
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("A peer without HTTP/2 serves concurrent requests over parallel HTTP/1.1 connections")
    func fallsBack() async throws {
        let tls = try TestCertificate.server()
        let arrived = EventCounter()
        let responder = ClosureResponder { _ in
            arrived.increment()
            await arrived.wait(for: 8)
            return HTTPServerResponse(status: .ok, body: ByteBuffer(string: "ok"))
        }
        try await withServer(responder, configure: { $0.tls = tls }) { _, port in
            let pool = try HTTPClientPool.make("https://localhost:\(port)")
            for _ in 0..<2 {
                // The responder answers none before all eight have arrived.
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 {
                        group.addTask { try await pool.expectSuccess() }
                    }
                    try await group.waitForAll()
                }
            }
            await pool.shutdown()
        }
    }

    @Test("A burst of requests shares the connection that is being opened")
    func burst() async throws {
        let peer = try await HTTP2Peer.start { _ in .hold }
        let pool = try peer.pool()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<60 {
                group.addTask { try await pool.expectSuccess() }
            }
            await peer.record.requested.wait(for: 60)
            peer.release()
            try await group.waitForAll()
        }
        #expect(peer.record.accepted.count == 1)
        #expect(peer.record.mostStreams == 60)
        await pool.shutdown()
        await peer.record.closed.wait()
        await peer.stop()
    }

    @Test("Connections keep to the peer's stream limit, and the pool to its connection limit")
    func streamLimit() async throws {
        let peer = try await HTTP2Peer.start(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 10)]) {
            _ in .hold
        }
        let pool = try peer.pool { $0.http2.maxConnectionsPerLoop = 2 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask { try await pool.expectSuccess() }
            }
            for round in 1...10 {
                await peer.record.requested.wait(for: round * 20)
                peer.release()
            }
            try await group.waitForAll()
        }
        #expect(peer.record.accepted.count == 2)
        #expect(peer.record.mostStreams == 10)
        #expect(peer.record.excesses == 0)
        await peer.stop()
    }

    @Test("A lowered stream limit holds once it is acknowledged")
    func loweredLimit() async throws {
        let peer = try await HTTP2Peer.start(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 10)]) {
            _ in .hold
        }
        let pool = try peer.pool { $0.http2.maxConnectionsPerLoop = 1 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<30 {
                group.addTask { try await pool.expectSuccess() }
            }
            await peer.record.requested.wait(for: 10)
            let first = try #require(peer.record.requests.first)
            peer.perform(.settings([HTTP2Setting(parameter: .maxConcurrentStreams, value: 2)]), for: first)
            await peer.record.acknowledged.wait(for: 2)
            peer.release()
            for number in stride(from: 12, through: 30, by: 2) {
                await peer.record.requested.wait(for: number)
                peer.release()
            }
            try await group.waitForAll()
        }
        #expect(peer.record.accepted.count == 1)
        #expect(peer.record.excesses == 0)
        await peer.stop()
    }

    @Test("Large bodies pass in both directions through a small initial window")
    func largeBodies() async throws {
        let megabyte = 1024 * 1024
        let peer = try await HTTP2Peer.start(settings: [HTTP2Setting(parameter: .initialWindowSize, value: 4096)]) {
            .answer(body: String(repeating: "b", count: $0.bodyBytes))
        }
        let pool = try peer.pool()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let response = try await pool.answer(body: ByteBuffer(repeating: 0x61, count: megabyte))
                    #expect(response.body.readableBytes == megabyte)
                }
            }
            try await group.waitForAll()
        }
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("A response that precedes the end of a large request is delivered, and the stream is reset")
    func earlyAnswer() async throws {
        let peer = try await HTTP2Peer.start(answersEarly: true) { _ in .answer(status: 413) }
        let pool = try peer.pool()
        let response = try await pool.answer(body: ByteBuffer(repeating: 0x61, count: 1024 * 1024))
        #expect(response.status.code == 413)
        await peer.record.reset.wait()
        #expect(peer.record.resets == [.cancel])
        #expect(try await pool.answer().status.code == 413)
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("Shutdown fails running and later requests")
    func shutsDown() async throws {
        let peer = try await HTTP2Peer.start { _ in .hold }
        let pool = try peer.pool()
        async let error = pool.failedExchange()
        await peer.record.requested.wait()
        await pool.shutdown()
        #expect(try await error.code == .shutDown)
        #expect(try await pool.failedExchange().code == .shutDown)
        await peer.record.closed.wait()
        await peer.stop()
    }
}
