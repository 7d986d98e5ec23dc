import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("A listener that closes")
struct HTTPListenerTests {
    /// An address of the machine's own on which no other test listens: a port that is free again stays free.
    private static let host = "127.67.0.1"
    private static let servers = 12
    private static let clients = 4

    @Test("Whoever was connected is answered, and nobody is connected any more")
    func closes() async throws {
        let answers = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<Self.servers {
                group.addTask { try await Self.answersAroundAShutdown() }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        // Each client saw the server serve before it left.
        #expect(answers.count > Self.servers * Self.clients)
        #expect(answers.filter { !$0.hasPrefix("HTTP/1.1 200 ") } == [])
    }

    /// What clients got that connect anew for each request, until they are refused.
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
                // However late a busy machine comes to send what goes out at once.
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
