package import Foundation

/// One request the emulator received, and what it decided.
package struct JournalEntry: Sendable, Equatable {
    /// Position in the order of arrival, counted from 1 and never reused.
    package let id: Int

    /// Number of the connection it came by.
    package let connection: Int?

    /// The stream it came by; nil with HTTP/1.1.
    package let stream: Int?

    /// When the request's body was complete.
    package let time: Date

    /// The HTTP method.
    package let method: String

    /// The request target as sent, query included.
    package let path: String

    /// The header fields as sent, credentials included: this is a test double.
    package let headers: [HeaderField]

    /// The body; bytes that are not UTF-8 appear as U+FFFD.
    package let body: String

    /// The body in Base64, if it is not UTF-8.
    package let bodyBase64: String?

    /// The fault that was played, by the name of its action.
    package let fault: String?

    /// What was decided; nil while a fault holds the request back.
    package internal(set) var decision: JournalDecision?

    init(id: Int, request: ReceivedRequest, fault: FaultAction?, decision: JournalDecision?) {
        self.id = id
        self.connection = request.origin?.connectionID
        self.stream = request.origin?.streamID
        self.time = request.time
        self.method = request.method
        self.path = request.target
        self.headers = request.headers
        self.body = request.body.text
        self.bodyBase64 = request.body.base64
        self.fault = fault?.name
        self.decision = decision
    }
}

extension JournalEntry: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, connection, stream, time, method, path, headers, body, fault, decision
        case bodyBase64 = "body_base64"
    }
}
