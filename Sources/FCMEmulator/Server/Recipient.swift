/// One device that receives a message, and the id the message carries.
struct Recipient: Sendable, Equatable {
    let token: String
    let messageID: String
}
