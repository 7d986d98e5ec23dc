import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTPListener")
struct HTTPListenerTests {
    /// A loopback address of this test alone, so that no other test gets the freed port.
    private static let host = "127.67.0.1"
    private static let servers = 12
    private static let clients = 4

    @Test("Shutdown answers every accepted connection and then refuses new ones")
    func closes() async throws {
        let answers = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<Self.servers {
                group.addTask { try await Self.answersAroundAShutdown() }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        // The clients got responses before the shutdown.
        #expect(answers.count > Self.servers * Self.clients)
        #expect(answers.filter { !$0.hasPrefix("HTTP/1.1 200 ") } == [])
    }

    /// Returns the responses to clients that open a connection per request until one is refused.
    private static func answersAroundAShutdown() async throws -> [String] {
        let served = EventCounter()
        let responder = ClosureResponder { _ in
            served.increment()
            return HTTPServerResponse(status: .ok)
        }
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        return try await withServer(
            responder,
            configure: {
                $0.host = Self.host
                // On a busy machine, a client may send its request late.
                $0.settlingTime = .seconds(2)
            }
        ) { server, port in
            await withTaskGroup(of: [String].self) { group in
                for _ in 0..<Self.clients {
                    group.addTask {
                        var answers: [String] = []
                        while let connection = try? await RawConnection.open(
                            host: Self.host,
                            port: port,
                            greeting: request
                        ) {
                            answers.append(await connection.textUntilClosed())
                        }
                        return answers
                    }
                }
                await served.wait(for: 20 * Self.clients)
                await server.shutdown(grace: .seconds(600))
                return await group.reduce(into: []) { $0 += $1 }
            }
        }
    }
}
