import Foundation
import NIOCore
import NIOPosix

/// A command in its wire form: an array of strings, which every version of the protocol accepts.
package struct RedisCommand: Sendable {
    private static let lineEnd = Array("\r\n".utf8)

    let bytes: ByteBuffer

    /// Creates a command from its name and arguments.
    package init(_ words: [[UInt8]]) {
        var bytes: [UInt8] = []
        // A length and two line ends for each word.
        bytes.reserveCapacity(words.reduce(16) { $0 + $1.count + 16 })
        func add(_ type: UInt8, _ count: Int) {
            bytes.append(type)
            bytes += String(count).utf8
            bytes += Self.lineEnd
        }
        add(UInt8(ascii: "*"), words.count)
        for word in words {
            add(UInt8(ascii: "$"), word.count)
            bytes += word
            bytes += Self.lineEnd
        }
        self.bytes = ByteBuffer(bytes: bytes)
    }

    package init(_ words: [String]) {
        self.init(words.map { Array($0.utf8) })
    }
}

/// The reason that a command has no reply.
package struct RedisClientError: Error, Sendable, CustomStringConvertible {
    /// The reason. Callers switch over it.
    package enum Code: String, Sendable, CaseIterable {
        /// There was no connection, and none could be made in time.
        case unavailable
        /// The command was sent. It is unknown if it was carried out.
        case timedOut
        /// The connection ended after the command was sent. It is unknown if it was carried out.
        case connectionClosed
        /// The bytes received are not a valid reply, or exceed the bounds of a reply.
        case invalidReply
        /// The server refuses the user or the password.
        case authenticationFailed
        /// The server is a node of a Redis Cluster. This client has no map of slots.
        case clusterNode
        /// The server can't be used now: it is a replica or a Sentinel, or loads its data.
        case unusableServer
        /// The limit of commands that wait for replies is reached.
        case tooManyCommands
        case shutDown
    }

    package let code: Code
    /// For the log. Never contains a password.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A failure of the network or of TLS in plain words. The libraries' own texts name types and source files.
    init(_ code: Code, _ subject: String, causedBy error: any Error) {
        let connecting = error as? NIOConnectionError
        let cause = connecting?.connectionErrors.first?.error ?? error
        let reason =
            if let system = cause as? IOError {
                // The system owns the text. It is copied at once.
                unsafe String(cString: strerror(system.errnoCode))
            } else if connecting != nil {
                "its name can't be resolved"
            } else if "\(cause)".contains("CERTIFICATE_VERIFY_FAILED") {
                "the server's certificate is expired, or not signed by a trusted authority"
            } else if "\(cause)".contains("failedToValidateHostname") {
                "the server's certificate is for another name"
            } else {
                "the connection failed, perhaps because only one side uses TLS"
            }
        self.init(code, "\(subject): \(reason)")
    }

    package var description: String { "\(self.code.rawValue): \(self.message)" }

    /// The same error for a command that was never sent.
    var beforeSending: RedisClientError {
        switch self.code {
        case .timedOut, .connectionClosed, .invalidReply:
            RedisClientError(.unavailable, self.message)
        case .unavailable, .authenticationFailed, .clusterNode, .unusableServer, .tooManyCommands, .shutDown:
            self
        }
    }
}
