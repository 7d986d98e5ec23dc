package import Foundation

/// One message delivered to one device.
package struct Delivery: Sendable, Equatable {
    package let token: String
    package let topic: String?
    package let condition: String?
    package let messageID: String
    package let requestID: Int
    package let time: Date
    package let message: DeliveredMessage

    init(to recipient: Recipient, settlement: Settlement, requestID: Int, time: Date) {
        self.token = recipient.token
        self.messageID = recipient.messageID
        self.requestID = requestID
        self.time = time
        self.message = settlement.message.content
        switch settlement.message.target {
        case .device, .devices: (self.topic, self.condition) = (nil, nil)
        case .topic(let name): (self.topic, self.condition) = (name, nil)
        case .condition(let condition): (self.topic, self.condition) = (nil, condition.canonical)
        }
    }
}

extension Delivery: Encodable {
    private enum CodingKeys: String, CodingKey {
        case token, topic, condition, time, message
        case messageID = "message_id"
        case requestID = "request_id"
    }
}
