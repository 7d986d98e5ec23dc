import Foundation
import NIOCore
import NIOPosix

/// A command as it goes over the wire: an array of strings, which every version of the protocol takes.
package struct RedisCommand: Sendable {
    private static let lineEnd = Array("\r\n".utf8)

    let bytes: ByteBuffer

    /// A command of its name and arguments.
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

/// Why a command has no reply.
package struct RedisClientError: Error, Sendable, CustomStringConvertible {
    /// What went wrong; callers switch over it.
    package enum Code: String, Sendable, CaseIterable {
        /// There is no connection, and none was to be had in time.
        case unavailable
        /// The command was sent; whether it was carried out is not known.
        case timedOut
        /// The connection ended with the command sent; whether it was carried out is not known.
        case connectionClosed
        /// What came is no reply, or more than one may be.
        case invalidReply
        /// The server refuses the user or the password.
        case authenticationFailed
        /// The server is a node of a Redis Cluster, for which this client has no map of slots.
        case clusterNode
        /// The server is one that can't be used now: a replica, a Sentinel, one that loads its data.
        case unusableServer
        /// As many commands wait for replies as may.
        case tooManyCommands
        case shutDown
    }

    package let code: Code
    /// For the log: never holds a password.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A failure of the network or of TLS in words; the libraries' own texts name types and source files.
    init(_ code: Code, _ subject: String, causedBy error: any Error) {
        let connecting = error as? NIOConnectionError
        let cause = connecting?.connectionErrors.first?.error ?? error
        let reason =
            if let system = cause as? IOError {
                // The text belongs to the system and is copied at once.
                unsafe String(cString: strerror(system.errnoCode))
            } else if connecting != nil {
                "its name is not known"
            } else if "\(cause)".contains("CERTIFICATE_VERIFY_FAILED") {
                "its certificate is expired, or not signed by a trusted authority"
            } else if "\(cause)".contains("failedToValidateHostname") {
                "its certificate is for another name"
            } else {
                "the connection failed, perhaps since one side speaks TLS and the other does not"
            }
        self.init(code, "\(subject): \(reason)")
    }

    package var description: String { "\(self.code.rawValue): \(self.message)" }

    /// The same of a command that was never sent.
    var beforeSending: RedisClientError {
        switch self.code {
        case .timedOut, .connectionClosed, .invalidReply:
            RedisClientError(.unavailable, self.message)
        case .unavailable, .authenticationFailed, .clusterNode, .unusableServer, .tooManyCommands, .shutDown:
            self
        }
    }
}
