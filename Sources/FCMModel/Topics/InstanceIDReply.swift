package import NIOCore
import StrictJSON

/// An answer in the shapes of the Instance ID API, ready to be written to a client.
package struct InstanceIDReply: Sendable, Hashable {
    /// The HTTP status.
    package let status: Int
    /// The value of `Retry-After` in seconds; `nil` where the header must be missing.
    package let retryAfter: Int?
    /// The body: JSON.
    package let body: ByteBuffer
    /// Why it is a refusal, or that of the first device that was refused, for logs.
    package let code: OutcomeCode?

    private init(
        status: Int = 200,
        _ writer: consuming JSONWriter,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) {
        self.code = code
        self.status = status
        self.retryAfter = retryAfter
        self.body = writer.finish()
    }

    /// The answer to a batch: one result for each device, empty where it is done.
    package init(_ outcomes: [SubscriptionOutcome]) {
        // Once a device is done, none: clients repeat the request for all when they see the header (TB-RETRYAFTER).
        var longestDelay: Int?
        var isDone = false
        var code: OutcomeCode?
        var writer = JSONWriter(reservingCapacity: 32 + outcomes.count * 8)
        writer.beginObject()
        writer.key("results")
        writer.beginArray()
        for outcome in outcomes {
            writer.beginObject()
            switch outcome {
            case .done:
                isDone = true
            case .rejected(let rejection):
                writer.member("error", rejection.code.instanceIDErrorName.rawValue)
                code = code ?? rejection.code
                if let delay = rejection.retryAfter { longestDelay = max(longestDelay ?? 0, delay) }
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        self.init(writer, retryAfter: isDone ? nil : longestDelay, code: code)
    }

    /// What is known of a device.
    ///
    /// - Parameters:
    ///   - info: that.
    ///   - includesTopics: whether its subscriptions were asked for; where there are none, the member is missing too.
    package init(_ info: RegistrationInfo, includesTopics: Bool) {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        if let text = info.application { writer.member("application", text) }
        if let text = info.applicationVersion { writer.member("applicationVersion", text) }
        if let text = info.authorizedEntity { writer.member("authorizedEntity", text) }
        if let text = info.platform { writer.member("platform", text) }
        if includesTopics, !info.subscriptions.isEmpty {
            writer.key("rel")
            writer.beginObject()
            writer.key("topics")
            writer.beginObject()
            for subscription in info.subscriptions {
                writer.key(subscription.topic)
                writer.beginObject()
                // The day of what may be a time.
                if let since = subscription.since { writer.member("addDate", String(since.prefix(10))) }
                writer.endObject()
            }
            writer.endObject()
            writer.endObject()
        }
        writer.endObject()
        self.init(writer)
    }

    /// An empty object: the one device of the request is as was asked for.
    package static var done: InstanceIDReply {
        var writer = JSONWriter()
        writer.beginObject()
        writer.endObject()
        return InstanceIDReply(writer)
    }

    /// A request that was refused as a whole.
    package init(_ refusal: Refusal) {
        let code = refusal.code
        let name = code.instanceIDErrorName
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("error", name.rawValue)
        if let reason = refusal.detail { writer.member("reason", reason) }
        writer.endObject()
        let waits = name == .unavailable || name == .resourceExhausted
        self.init(
            status: code == .methodNotAllowed ? 405 : code == .unsupportedMediaType ? 415 : name.httpStatus,
            writer,
            retryAfter: refusal.retryAfter ?? (waits ? 5 : nil),
            code: code
        )
    }
}
