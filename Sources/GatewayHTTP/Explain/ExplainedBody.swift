import FCMModel
import GatewayCore
import NIOCore

/// A body to explain, in either form that a sender may write.
struct ExplainedBody {
    /// How a body is written.
    enum Form: String, CaseIterable {
        /// As for `POST …/messages`.
        case rest
        /// As for `POST /fcm/send`, in JSON.
        case legacy
    }

    /// The most bytes that a request may have beside its payload and a list of recipients: it is shown.
    private static let maxOptionBytes = 64 * 1024

    let message: Message
    let payloadBytes: Int
    private let target: SendBodyTarget

    /// Reads a body.
    ///
    /// - Throws: why no send could have it.
    init(_ body: ByteBuffer, contentType: String?, form: Form) throws(Refusal) {
        switch form {
        case .rest:
            let body = try SendBody(JSONBody.members(of: body, contentType: contentType))
            self.target = body.target
            self.message = body.message
            self.payloadBytes = body.message.payloadBytes
        case .legacy:
            guard JSONBody.isJSON(contentType) else {
                throw Refusal(.unsupportedMediaType, "Send the body as application/json")
            }
            let request = try Self.legacyRequest(body)
            guard let target = request.sentTarget, !target.isDisguisedTopic else {
                throw Refusal(.invalidTarget, "None of the recipients is a registration token")
            }
            self.target = .direct(target)
            self.message = request.message
            self.payloadBytes = request.payloadBytes
        }
        let options = [self.target.text, self.message.collapseKey, self.message.restrictedPackageName]
        guard options.reduce(0, { $0 + ($1?.utf8.count ?? 0) }) <= Self.maxOptionBytes else {
            throw Refusal(.invalidField, "The target, the collapse key and the package name are too long to be shown")
        }
    }

    /// The command to send this.
    func command(from principal: Principal, origin: RequestOrigin, deadline: ContinuousClock.Instant) -> SendCommand {
        self.target.command(
            from: principal,
            message: self.message,
            payloadBytes: self.payloadBytes,
            origin: origin,
            deadline: deadline
        )
    }

    private static func legacyRequest(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
        do {
            return try LegacyRequestDecoder.decode(body)
        } catch {
            throw error.explained
        }
    }
}

extension SendBodyTarget {
    /// The text that names the target; `nil` for a list, and for what has a bound of its own.
    fileprivate var text: String? {
        switch self {
        case .deviceGroup(let name): name
        case .direct(.token(let text)), .direct(.installation(let text)), .direct(.notificationKey(let text)): text
        case .direct(.tokens), .direct(.installations), .direct(.topic), .direct(.condition): nil
        }
    }
}

extension Refusal {
    /// What the legacy protocol would refuse, in this contract's terms.
    fileprivate var explained: Refusal {
        let name = self.legacyErrorName.rawValue
        switch (self.code, self.detail) {
        case (.malformedJSON, _): return self
        case (.messageTooBig, let detail?): return Refusal(self.code, "\(detail); the legacy protocol answers \(name)")
        case (_, let detail?): return Refusal(self.code, "The legacy protocol answers \(name): \(detail)")
        case (_, nil): return Refusal(self.code, "The legacy protocol answers \(name)")
        }
    }
}
