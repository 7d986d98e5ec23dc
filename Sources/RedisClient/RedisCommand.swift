import Foundation
import NIOCore
import NIOPosix

/// A command in its wire form: an array of strings, which every version of the protocol accepts.
package struct RedisCommand: Sendable {
    private var text: [UInt8] = []
    /// The words that are still to be added.
    private var missing: Int

    /// Begins a command of this many words, and makes room for this many bytes.
    package init(wordCount: Int, reserving bytes: Int) {
        self.missing = wordCount
        self.text.reserveCapacity(bytes)
        self.append(UInt8(ascii: "*"), wordCount)
    }

    /// Creates a command from its name and arguments.
    package init(_ words: [[UInt8]]) {
        self.init(wordCount: words.count, reserving: 0)
        for word in words { self.add(word) }
    }

    package init(_ words: [String]) {
        self.init(words.map { Array($0.utf8) })
    }

    package mutating func add(_ word: [UInt8]) {
        self.add(byteCount: word.count) { $0 += word }
    }

    /// Adds a word of this length, whose bytes the closure appends.
    package mutating func add(byteCount: Int, _ append: (inout [UInt8]) -> Void) {
        self.missing -= 1
        self.append(UInt8(ascii: "$"), byteCount)
        let end = self.text.count + byteCount
        append(&self.text)
        precondition(self.text.count == end, "A word of a command has another length than stated")
        self.appendLineEnd()
    }

    var bytes: ByteBuffer {
        precondition(self.missing == 0, "A command has another number of words than stated")
        return ByteBuffer(bytes: self.text)
    }

    private mutating func append(_ type: UInt8, _ count: Int) {
        self.text.append(type)
        self.append(decimal: count)
        self.appendLineEnd()
    }

    private mutating func append(decimal number: Int) {
        if number >= 10 { self.append(decimal: number / 10) }
        self.text.append(UInt8(ascii: "0") + UInt8(number % 10))
    }

    private mutating func appendLineEnd() {
        self.text.append(UInt8(ascii: "\r"))
        self.text.append(UInt8(ascii: "\n"))
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
