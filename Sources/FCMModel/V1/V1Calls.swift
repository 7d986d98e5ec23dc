package import NIOCore

/// The calls that one message becomes: one for each recipient, in order, repeated ones included (TR-FANOUT).
package struct V1Calls: Sendable {
    private enum Recipients {
        case one(V1Recipient)
        case tokens([String])
        case installations([String])
    }

    /// What the calls' bodies share.
    package let template: V1BodyTemplate
    private let recipients: Recipients

    /// The calls of a message.
    ///
    /// - Parameters:
    ///   - message: what to send.
    ///   - target: whom to; of a legacy request the ``LegacySendRequest/sentTarget``.
    ///   - now: seconds since 1970.
    package init(_ message: Message, to target: Target, now: Int) {
        self.template = V1RequestEncoder.template(for: message, now: now)
        self.recipients =
            switch target {
            case .token(let token), .notificationKey(let token): .one(.token(token))
            case .tokens(let tokens): .tokens(tokens)
            case .installation(let id): .one(.installation(id))
            case .installations(let ids): .installations(ids)
            case .topic(let topic): .one(.topic(topic))
            case .condition(let condition): .one(.condition(condition))
            }
    }

    /// How many calls there are.
    package var count: Int {
        switch self.recipients {
        case .one: 1
        case .tokens(let texts), .installations(let texts): texts.count
        }
    }

    /// Whom a call addresses.
    ///
    /// - Parameter index: the call's place, from 0 to ``count``, exclusive.
    /// - Returns: the recipient.
    package func recipient(at index: Int) -> V1Recipient {
        switch self.recipients {
        case .one(let recipient):
            precondition(index == 0, "there is one call, and none at \(index)")
            return recipient
        case .tokens(let tokens): return .token(tokens[index])
        case .installations(let ids): return .installation(ids[index])
        }
    }

    /// The body of a call, made anew each time.
    ///
    /// - Parameter index: the call's place, from 0 to ``count``, exclusive.
    /// - Returns: the body.
    package func body(at index: Int) -> ByteBuffer {
        self.template.body(for: self.recipient(at: index))
    }
}
