/// What the emulator answered to a request, and why.
package struct JournalDecision: Sendable, Equatable {
    /// Status of the answer; nil when none was sent.
    package let status: Int?

    /// Body of the answer; nil when none was sent.
    package let body: String?

    /// Tokens of the devices the message was delivered to.
    package let deliveredTo: [String]

    /// Why the request or some of its recipients were refused, or what the fault did.
    package let reason: String?

    /// What was accepted, but would not come from a careful caller.
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
