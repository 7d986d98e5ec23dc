import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import Testing

@Suite("TLS", .timeLimit(.minutes(10)))
struct TLSTests {
    @Test("A trusted certificate is accepted by name and by address", arguments: ["localhost", "127.0.0.1"])
    func trusted(host: String) async throws {
        let responder = ClosureResponder { request in
            HTTPServerResponse(status: .ok, body: ByteBuffer(string: "\(request.connection.isTLS)"))
        }
        let tls = try TestCertificate.server()
        try await withServer(responder, configure: { $0.tls = tls }) { _, port in
            let pool = try HTTPClientPool.make("https://\(host):\(port)")
            for _ in 0..<3 {
                let response = try await pool.answer(body: ByteBuffer(repeating: 1, count: 50_000))
                #expect(String(buffer: response.body) == "true")
            }
            await pool.shutdown()
        }
    }

    @Test("A certificate of an unknown authority is refused before the request is sent")
    func untrusted() async throws {
        let tls = try TestCertificate.server()
        let responder = EchoResponder()
        try await withServer(responder, configure: { $0.tls = tls }) { _, port in
            let pool = try HTTPClientPool.make("https://localhost:\(port)", tls: nil)
            let error = try await pool.failedExchange()
            #expect(error.code == .tlsFailed)
            #expect(!error.requestSent)
            #expect(responder.paths.isEmpty)
            await pool.shutdown()
        }
    }

    @Test("A handshake without an answer fails with connectTimeout")
    func silentHandshake() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool("https") { $0.connectTimeout = .milliseconds(50) }
        let error = try await pool.failedExchange()
        #expect(error.code == .connectTimeout)
        #expect(!error.requestSent)
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A connection closed during the handshake fails with connectFailed")
    func brokenHandshake() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool("https")
        async let failure = pool.failedExchange()
        try await server.seen.wait { $0.accepted >= 1 }
        server.halfClose()
        let error = try await failure
        #expect(error.code == .connectFailed)
        #expect(!error.requestSent)
        await server.stop()
    }

    @Test("A client that doesn't complete the handshake is closed at the head deadline")
    func silentClient() async throws {
        let tls = try TestCertificate.server()
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.tls = tls
            $0.headTimeout = .milliseconds(50)
            $0.onClose = { cut in cuts.withLock { $0.append(cut) } }
        }
        try await withServer(EchoResponder(), configure: configure) { _, port in
            for beginning in ["", "\u{16}\u{3}\u{1}"] {
                let connection = try await RawConnection.open(port: port)
                connection.offer(beginning)
                #expect(await connection.textUntilClosed() == "")
            }
            #expect(cuts.withLock { $0 } == [.handshakeTimeout, .handshakeTimeout])
        }
    }

    @Test("A connection beyond the limit is closed without a handshake and reported")
    func tooManyConnections() async throws {
        let tls = try TestCertificate.server()
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.tls = tls
            $0.maxConnections = 1
            $0.evictableAfter = .seconds(600)
            $0.onClose = { cut in cuts.withLock { $0.append(cut) } }
        }
        try await withServer(EchoResponder(), configure: configure) { _, port in
            let pool = try HTTPClientPool.make("https://localhost:\(port)")
            #expect(try await pool.answer().status == .ok)
            let second = try await RawConnection.open(port: port)
            #expect(await second.textUntilClosed() == "")
            #expect(cuts.withLock { $0 } == [.tooManyConnections])
            #expect(try await pool.answer().status == .ok)
            await pool.shutdown()
        }
    }

    @Test("An idle connection is evicted for a new one, which completes its handshake")
    func evictsIdle() async throws {
        let tls = try TestCertificate.server()
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.tls = tls
            $0.maxConnections = 1
            $0.evictableAfter = .zero
            $0.onClose = { cut in cuts.withLock { $0.append(cut) } }
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        try await withServer(EchoResponder(), on: loop, configure: configure) { _, port in
            let first = try HTTPClientPool.make("https://localhost:\(port)")
            #expect(try await first.answer().status == .ok)
            let second = try HTTPClientPool.make("https://localhost:\(port)")
            #expect(try await second.answer().status == .ok)
            #expect(cuts.withLock { $0 } == [.evicted])
            await first.shutdown()
            await second.shutdown()
        }
    }

    @Test("Reloading fails for a certificate of another key, and succeeds for a valid one afterwards")
    func reload() async throws {
        let tls = try TestCertificate.server()
        try await withServer(EchoResponder(), configure: { $0.tls = tls }) { server, port in
            var broken = tls
            let other = try TestAuthority().certificate
            broken.certificateChain = try TestCertificate.certificates(other).map { .certificate($0) }
            #expect(throws: (any Error).self) { try server.reload(tls: broken) }
            try server.reload(tls: tls)
            let pool = try HTTPClientPool.make("https://localhost:\(port)")
            let response = try await pool.answer()
            #expect(response.status == .ok)
            await pool.shutdown()
        }
    }

    @Test("clientNames holds the valid DNS names and URIs of the client's certificate and no other names")
    func clientNames() async throws {
        let authority = try TestAuthority()
        let client = try authority.certify(
            "common-name.internal",
            dnsNames: ["Orders.Internal", "spiffe://example.org/not-a-host", "a b", "*.wild.internal"],
            uris: ["spiffe://example.org/Orders", "relative/path"],
            emails: ["mail.internal"]
        )
        let responder = ClosureResponder { request in
            HTTPServerResponse(status: .ok, body: ByteBuffer(string: "\(request.connection.clientNames)"))
        }
        var tls = try TestCertificate.server()
        tls.trustRoots = .certificates(try TestCertificate.certificates(authority.certificate))
        tls.certificateVerification = .noHostnameVerification
        try await withServer(responder, configure: { [tls] in $0.tls = tls }) { _, port in
            let pool = try HTTPClientPool.make("https://localhost:\(port)", tls: try Self.client(as: client))
            for _ in 0..<2 {
                let response = try await pool.answer()
                #expect(
                    String(buffer: response.body)
                        == #"["orders.internal", "*.wild.internal", "spiffe://example.org/Orders"]"#
                )
            }
            await pool.shutdown()

            let nameless = try authority.certify("common-name.internal")
            let namelessPool = try HTTPClientPool.make("https://localhost:\(port)", tls: try Self.client(as: nameless))
            let response = try await namelessPool.answer()
            #expect(String(buffer: response.body) == "[]")
            await namelessPool.shutdown()
        }
    }

    @Test("A reload keeps open connections, and new ones get the new certificate")
    func reloadUnderConnection() async throws {
        let authority = try TestAuthority()
        let renewed = try authority.certify("gateway", dnsNames: ["localhost"])
        try await withServer(EchoResponder(), configure: { $0.tls = try? TestCertificate.server() }) { server, port in
            let old = try HTTPClientPool.make("https://localhost:\(port)")
            #expect(try await old.answer().status == .ok)
            try server.reload(tls: try TestCertificate.server(as: renewed))
            // The pool reuses its connection; it would not trust the new certificate.
            #expect(try await old.answer().status == .ok)
            #expect(server.openConnections == 1)
            await old.shutdown()

            let stranger = try HTTPClientPool.make("https://localhost:\(port)")
            #expect(try await stranger.failedExchange().code == .tlsFailed)
            await stranger.shutdown()
            let trusting = try TestCertificate.client(trusting: authority)
            let new = try HTTPClientPool.make("https://localhost:\(port)", tls: trusting)
            #expect(try await new.answer().status == .ok)
            await new.shutdown()
        }
    }

    private static func client(as identity: TestIdentity) throws -> TLSConfiguration {
        var configuration = try TestCertificate.client()
        configuration.certificateChain = try TestCertificate.certificates(identity.certificate).map { .certificate($0) }
        configuration.privateKey = .privateKey(
            try NIOSSLPrivateKey(bytes: Array(identity.privateKey.utf8), format: .pem)
        )
        return configuration
    }
}
