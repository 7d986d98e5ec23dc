import Foundation
import NIOCore
import NIOPosix

@testable import FCMGateway

/// One connection that carries exactly the bytes a test gives it, until the server closes it.
enum RawExchange {
    /// Sends bytes and reads until the connection ends, in whatever way.
    static func text(port: Int, sending bytes: String) async throws -> String {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
        return String(decoding: try await self.bytes(to: address, sending: Array(bytes.utf8)), as: UTF8.self)
    }

    /// The same with bytes, to any address.
    static func bytes(to address: SocketAddress, sending bytes: [UInt8]) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        var received: [UInt8] = []
        do {
            try await channel.executeThenClose { inbound, outbound in
                // A server that refuses early need not take everything.
                try? await outbound.write(ByteBuffer(bytes: bytes))
                for try await part in inbound { received += part.readableBytesView }
            }
        } catch is IOError {
            // A reset ends a connection as well.
        }
        return received
    }

    /// The same, and the one answer in it.
    static func reply(port: Int, sending bytes: String) async throws -> Reply {
        let text = try await self.text(port: port, sending: bytes)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = (parts.first ?? "").split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let field = line.split(separator: ":", maxSplits: 1)
            if field.count == 2 { headers[field[0].lowercased()] = field[1].trimmingCharacters(in: .whitespaces) }
        }
        return Reply(
            status: words.count > 1 ? Int(words[1]) ?? 0 : 0,
            headers: headers,
            body: Data((parts.count > 1 ? parts[1] : "").utf8)
        )
    }
}
