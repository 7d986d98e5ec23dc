import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing

@testable import EventLoopHTTP

@Suite("HTTP/2 client and failures", .timeLimit(.minutes(10)))
struct HTTP2ClientFailureTests {
    @Test("After GOAWAY, refused requests use another connection, accepted ones finish, and the old connection closes")
    func goAway() async throws {
        let peer = try await HTTP2Peer.start { $0.connection == 1 ? .hold : .answer(body: "second") }
        let pool = try peer.pool()
        async let accepted = pool.answer("/accepted")
        await peer.record.requested.wait()
        async let refused = pool.answer("/refused")
        async let alsoRefused = pool.answer("/refused")
        await peer.record.requested.wait(for: 3)
        let first = try #require(peer.record.requests.first)
        peer.perform(.goAway(last: first.stream), for: first)
        #expect(String(buffer: try await refused.body) == "second")
        #expect(String(buffer: try await alsoRefused.body) == "second")
        #expect(String(buffer: try await pool.answer("/later").body) == "second")
        peer.perform(.answer(body: "first"), for: first)
        #expect(String(buffer: try await accepted.body) == "first")
        await peer.record.closed.wait()
        #expect(peer.record.accepted.count == 2)
        #expect(peer.record.requests.count { $0.path == "/accepted" } == 1)
        #expect(peer.record.requests.count { $0.path == "/refused" } == 4)
        await peer.stop()
    }

    @Test("A graceful GOAWAY lets open streams finish and moves new requests to another connection")
    func gracefulGoAway() async throws {
        let peer = try await HTTP2Peer.start { $0.connection == 1 ? .hold : .answer(body: "second") }
        let pool = try peer.pool()
        async let held = pool.answer()
        await peer.record.requested.wait()
        let first = try #require(peer.record.requests.first)
        peer.perform(.goAway(last: .maxID), for: first)
        // The client acknowledges these settings after it has read GOAWAY.
        peer.perform(.settings([]), for: first)
        await peer.record.acknowledged.wait(for: 2)
        #expect(String(buffer: try await pool.answer().body) == "second")
        peer.perform(.answer(body: "first"), for: first)
        #expect(String(buffer: try await held.body) == "first")
        await peer.record.closed.wait()
        #expect(peer.record.accepted.count == 2)
        await peer.stop()
    }

    @Test(
        "The last two requests of a draining connection both end, though one is answered and one reset at the same time"
    )
    func lastStreams() async throws {
        let peer = try await HTTP2Peer.start { _ in .hold }
        let pool = try peer.pool()
        async let answered = pool.answer("/answered")
        await peer.record.requested.wait()
        async let failed = pool.failedExchange()
        await peer.record.requested.wait(for: 2)
        let requests = peer.record.requests
        peer.perform([(.goAway(last: .maxID), requests[0]), (.settings([]), requests[0])])
        await peer.record.acknowledged.wait(for: 2)
        peer.perform([(.answer(), requests[0]), (.reset(.internalError), requests[1])])
        #expect(try await answered.status == .ok)
        #expect(try await failed.code == .connectionClosed)
        await peer.record.closed.wait()
        await peer.stop()
    }

    @Test("A refused request is retried on another connection")
    func refusedStream() async throws {
        let peer = try await HTTP2Peer.start { $0.connection == 1 ? .reset(.refusedStream) : .answer(body: "second") }
        let pool = try peer.pool()
        #expect(String(buffer: try await pool.answer(body: ByteBuffer(string: "{}")).body) == "second")
        #expect(peer.record.requests.map(\.connection) == [1, 2])
        await peer.stop()
    }

    @Test("A request that is refused four times fails as not sent")
    func refusedForEver() async throws {
        let peer = try await HTTP2Peer.start { _ in .reset(.refusedStream) }
        let pool = try peer.pool { $0.http2.maxConnectionsPerLoop = 2 }
        let error = try await pool.failedExchange()
        #expect(error.code == .refused)
        #expect(!error.requestSent)
        #expect(peer.record.requests.count == 4)
        #expect(peer.record.accepted.count == 2)
        await peer.stop()
    }

    @Test(
        "A request whose stream is reset with another code is not retried",
        arguments: [NIOHTTP2.HTTP2ErrorCode.internalError, .cancel]
    )
    func otherReset(code: NIOHTTP2.HTTP2ErrorCode) async throws {
        let peer = try await HTTP2Peer.start { $0.path == "/" ? .reset(code) : .answer() }
        let pool = try peer.pool()
        let error = try await pool.failedExchange()
        #expect(error.code == .connectionClosed)
        #expect(error.requestSent)
        #expect(error.cause as? HTTP2ClientConnection.Fault == .reset(.init(rawValue: UInt32(code.networkCode))))
        #expect(peer.record.requests.count == 1)
        #expect(try await pool.answer("/other").status == .ok)
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("REFUSED_STREAM after part of a response fails the request as sent, without a retry")
    func lateRefusal() async throws {
        let peer = try await HTTP2Peer.start { _ in .begin(body: "o") }
        let pool = try peer.pool()
        async let error = pool.failedExchange()
        await peer.record.requested.wait()
        peer.perform(.reset(.refusedStream), for: try #require(peer.record.requests.first))
        #expect(try await error.requestSent)
        #expect(peer.record.requests.count == 1)
        await peer.stop()
    }

    @Test("A closed connection fails its unanswered request as sent", arguments: [true, false])
    func closes(inAnswer: Bool) async throws {
        let peer = try await HTTP2Peer.start { $0.connection > 1 ? .answer() : inAnswer ? .begin(body: "o") : .hold }
        let pool = try peer.pool()
        async let error = pool.failedExchange()
        await peer.record.requested.wait()
        peer.perform(.close, for: try #require(peer.record.requests.first))
        #expect(try await error.code == .connectionClosed)
        #expect(try await error.requestSent)
        #expect(try await pool.answer().status == .ok)
        #expect(peer.record.requests.map(\.connection) == [1, 2])
        await peer.stop()
    }

    @Test("A request fails with connectionClosed if its peer answers no ping")
    func pingTimeout() async throws {
        let peer = try await HTTP2Peer.start { $0.connection == 1 ? .stopReading : .answer() }
        let pool = try peer.pool {
            $0.http2.pingAfterWaiting = .milliseconds(20)
            $0.http2.pingTimeout = .milliseconds(20)
        }
        let error = try await pool.failedExchange()
        #expect(error.code == .connectionClosed)
        #expect(error.requestSent)
        #expect(error.cause as? HTTP2ClientConnection.Fault == .silent)
        await peer.record.requested.wait()
        #expect(peer.record.requests.count == 1)
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("A slow response is awaited while the peer answers pings")
    func slowPeer() async throws {
        let peer = try await HTTP2Peer.start { _ in .hold }
        let pool = try peer.pool {
            $0.http2.pingAfterWaiting = .milliseconds(5)
            $0.http2.pingTimeout = .seconds(600)
        }
        async let response = pool.answer()
        await peer.record.pinged.wait(for: 3)
        peer.release()
        #expect(try await response.status == .ok)
        await peer.stop()
    }

    @Test("Cancellation or a passed deadline resets the request's own stream only", arguments: [true, false])
    func givesUp(isCancelled: Bool) async throws {
        let peer = try await HTTP2Peer.start { _ in .hold }
        let pool = try peer.pool()
        async let other = pool.answer("/other")
        await peer.record.requested.wait()
        var error: HTTPClientError
        repeat {
            // On a busy machine the deadline may pass before the request is sent.
            let task = Task { try await pool.failedExchange(within: isCancelled ? .seconds(600) : .milliseconds(50)) }
            if isCancelled {
                await peer.record.requested.wait(for: 2)
                task.cancel()
            }
            error = try await task.value
            #expect(error.code == (isCancelled ? .cancelled : .deadlineExceeded))
        } while !error.requestSent && !isCancelled
        #expect(error.requestSent)
        await peer.record.reset.wait()
        #expect(peer.record.resets == [.cancel])
        peer.perform(.answer(), for: try #require(peer.record.requests.first))
        #expect(try await other.status == .ok)
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("A request counts as sent from the moment its head is written, also after its stream is reset")
    func mayHaveSent() throws {
        let settings = HTTP2Session.Settings(HTTPClientConfiguration())
        let session = HTTP2Session(settings: settings, authority: "fcm.test")
        let loop = EmbeddedEventLoop()
        func start() throws -> HTTP2Session.Stream {
            let request = HTTPClientRequest(method: .post, path: "/", body: ByteBuffer(string: "{}"))
            let exchange = HTTPClientExchange(request: request, deadline: .distantFuture, eventLoop: loop)
            return try #require(session.start(exchange, settings.responseLimits))
        }
        let written = try start()
        #expect(!session.mayHaveSent(written))
        var output = ByteBuffer()
        #expect(session.write(to: &output))
        #expect(session.mayHaveSent(written))
        let waiting = try start()
        // An empty SETTINGS frame, which a server begins with, and RST_STREAM with CANCEL for the first stream.
        let answer: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]
        #expect(session.receive(ByteBuffer(bytes: answer)))
        #expect(session.mayHaveSent(written))
        #expect(!session.mayHaveSent(waiting))
    }

    private static let bad: [(HTTP2Peer.Reply, HTTPClientError.Code)] = [
        (.answer(fields: [("content-length", "2000")], body: String(repeating: "a", count: 2000)), .responseTooLarge),
        (.answer(body: String(repeating: "a", count: 2000)), .responseTooLarge),
        (.begin(body: String(repeating: "a", count: 1001)), .responseTooLarge),
        (.answer(fields: [("x-a", String(repeating: "a", count: 5000))]), .responseTooLarge),
        (.answer(fields: Array(repeating: ("x-a", "a"), count: 20)), .responseTooLarge),
        (.answer(status: 99), .invalidResponse),
        (.answer(fields: [("content-length", "5")], body: "ok"), .invalidResponse),
        (.answer(fields: [("connection", "close")]), .invalidResponse),
    ]

    @Test("A connection is replaced after maxMalformedAnswers malformed responses")
    func malformed() async throws {
        let bad = HTTP2Peer.Reply.answer(fields: [("connection", "close")])
        let peer = try await HTTP2Peer.start { $0.path == "/bad" ? bad : .answer() }
        let pool = try peer.pool()
        for _ in 0..<HTTP2ClientConnection.maxMalformedAnswers {
            let error = try await pool.failedExchange(HTTPClientRequest(method: .get, path: "/bad"))
            #expect(error.code == .invalidResponse)
        }
        #expect(try await pool.answer().status == .ok)
        #expect(peer.record.accepted.count == 2)
        await peer.stop()
    }

    @Test("An oversized or malformed response ends its own stream only", arguments: Self.bad)
    func badAnswers(reply: HTTP2Peer.Reply, code: HTTPClientError.Code) async throws {
        let peer = try await HTTP2Peer.start { $0.path == "/bad" ? reply : .hold }
        let pool = try peer.pool {
            $0.maxResponseBodyBytes = 1000
            $0.maxResponseHeadBytes = 4096
            $0.maxResponseFields = 16
        }
        async let other = pool.answer("/other")
        await peer.record.requested.wait()
        let error = try await pool.failedExchange(HTTPClientRequest(method: .get, path: "/bad"))
        #expect(error.code == code)
        #expect(error.requestSent)
        peer.release()
        #expect(try await other.status == .ok)
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
    }

    @Test("An idle connection is closed, and the next request opens another")
    func idle() async throws {
        let peer = try await HTTP2Peer.start()
        let pool = try peer.pool { $0.idleTimeout = .milliseconds(20) }
        #expect(try await pool.answer().status == .ok)
        await peer.record.closed.wait()
        #expect(try await pool.answer().status == .ok)
        #expect(peer.record.accepted.count == 2)
        await peer.stop()
    }

    @Test("A connection past its lifetime is replaced and finishes its open streams")
    func rotates() async throws {
        let peer = try await HTTP2Peer.start { $0.path == "/held" ? .hold : .answer() }
        let pool = try peer.pool {
            $0.http2.lifetime = .milliseconds(30)
            $0.http2.lifetimeJitter = 0
        }
        async let held = pool.answer("/held")
        await peer.record.requested.wait()
        while peer.record.accepted.count == 1 {
            #expect(try await pool.answer().status == .ok)
        }
        peer.release()
        #expect(try await held.status == .ok)
        await peer.record.closed.wait()
        await peer.stop()
    }
}
