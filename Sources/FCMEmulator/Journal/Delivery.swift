package import Foundation

/// One message delivered to one device.
package struct Delivery: Sendable, Equatable {
    /// Token of the device.
    package let token: String

    /// The topic the message was sent to, if it was.
    package let topic: String?

    /// The condition the message was sent to, if it was, in canonical form.
    package let condition: String?

    /// The id the sender was told.
    package let messageID: String

    /// The journal entry of the request.
    package let requestID: Int

    /// When the request arrived.
    package let time: Date

    /// What the device received.
    package let message: DeliveredMessage

    init(to recipient: Recipient, settlement: Settlement, requestID: Int, time: Date) {
        self.token = recipient.token
        self.messageID = recipient.messageID
        self.requestID = requestID
        self.time = time
        self.message = settlement.content
        (self.topic, self.condition) = (settlement.topic, settlement.condition)
    }
}

extension Delivery: Encodable {
    private enum CodingKeys: String, CodingKey {
        case token, topic, condition, time, message
        case messageID = "message_id"
        case requestID = "request_id"
    }
}
