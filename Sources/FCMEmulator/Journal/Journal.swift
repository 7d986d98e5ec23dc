package import Foundation

/// The received requests; the oldest are dropped first, by number and by bytes of bodies.
struct Journal {
    private let maxBytes: Int
    private var entries: RingBuffer<JournalEntry>
    private var bytes = 0
    private var lastID = 0

    init(maxEntries: Int, maxBytes: Int) {
        self.entries = RingBuffer(capacity: maxEntries)
        self.maxBytes = maxBytes
    }

    var nextID: Int { self.lastID + 1 }

    mutating func record(_ request: ReceivedRequest, fault: FaultAction?, decision: JournalDecision?) -> JournalEntry {
        self.lastID += 1
        let entry = JournalEntry(id: self.lastID, request: request, fault: fault, decision: decision)
        self.bytes += entry.body.utf8.count
        self.forget(self.entries.append(entry))
        while self.bytes > self.maxBytes, self.entries.count > 1 {
            self.forget(self.entries.removeFirst())
        }
        return entry
    }

    /// Sets the decision of an entry that was recorded without one.
    mutating func complete(_ id: Int, decision: JournalDecision) -> JournalEntry? {
        // Ids are consecutive, so the oldest entry's id follows from the number of entries.
        let position = id - (self.lastID - self.entries.count + 1)
        self.entries[position]?.decision = decision
        return self.entries[position]
    }

    /// The latest entries, newest first.
    func newest(_ limit: Int) -> [JournalEntry] {
        self.entries.newest(limit)
    }

    /// Drops all entries; the numbering of ids continues.
    mutating func removeAll() {
        while let entry = self.entries.removeFirst() {
            self.forget(entry)
        }
    }

    private mutating func forget(_ entry: JournalEntry?) {
        self.bytes -= entry?.body.utf8.count ?? 0
    }
}

/// One request that the emulator received, and its decision.
package struct JournalEntry: Sendable, Equatable {
    /// Position in the order of arrival, counted from 1 and never reused.
    package let id: Int
    package let connection: Int?
    /// The request's stream; `nil` with HTTP/1.1.
    package let stream: Int?
    package let time: Date
    package let method: String
    package let path: String
    /// The header fields as sent, credentials included: this is a test double.
    package let headers: [HeaderField]
    /// The body; bytes that are not UTF-8 appear as U+FFFD.
    package let body: String
    /// The body in Base64, if it is not UTF-8.
    package let bodyBase64: String?
    package let fault: String?
    /// The decision; `nil` while a fault holds the request.
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

/// The emulator's answer to a request, and the reason.
package struct JournalDecision: Sendable, Equatable {
    /// Status of the answer; `nil` if none was sent.
    package let status: Int?
    /// Body of the answer; `nil` if none was sent.
    package let body: String?
    package let deliveredTo: [String]
    package let reason: String?
    package let notes: [String]

    init(answer: Answer?, deliveredTo: [String] = [], reason: String? = nil, notes: [String] = []) {
        self.status = answer?.status
        self.body = answer?.body
        self.deliveredTo = deliveredTo
        self.reason = reason
        self.notes = notes
    }
}

extension JournalDecision: Encodable {
    private enum CodingKeys: String, CodingKey {
        case status, body, reason, notes
        case deliveredTo = "delivered_to"
    }
}
