import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Writes the answers to requests about subscriptions.
enum SubscriptionAnswer {
    /// What became of each device, in the request's order; or the one cause that stopped all.
    static func response(to tokens: [String], _ answer: TopicAnswer<[SubscriptionOutcome]>) -> HTTPServerResponse {
        switch answer.content {
        case .refused(let refusal): Self.response(refusal, answer.quotas)
        case .value(let outcomes):
            Self.response(Self.results(tokens, outcomes), answer.quotas, code: outcomes.lazy.compactMap(\.code).first)
        }
    }

    /// A page of a device's topics.
    ///
    /// - Parameters:
    ///   - answer: what is known of the device.
    ///   - cursor: the last topic of the page before.
    ///   - limit: the most topics of a page.
    /// - Returns: the answer.
    static func response(_ answer: TopicAnswer<RegistrationInfo>, after cursor: String?, limit: Int)
        -> HTTPServerResponse
    {
        switch answer.content {
        case .refused(let refusal):
            return Self.response(refusal, answer.quotas)
        case .value(let info):
            let page = SubscriptionPage(info.subscriptions, after: cursor, limit: limit)
            var writer = JSONWriter(reservingCapacity: 64 + page.subscriptions.count * 64)
            writer.beginObject()
            writer.key("topics")
            writer.beginArray()
            for subscription in page.subscriptions {
                writer.beginObject()
                writer.member("topic", subscription.topic)
                if let since = subscription.since { writer.member("since", since) }
                writer.endObject()
            }
            writer.endArray()
            if let last = page.last { writer.member("next_cursor", Cursor.text(of: last)) }
            writer.endObject()
            return Self.response(writer.finish(), answer.quotas)
        }
    }

    private static func results(_ tokens: [String], _ outcomes: [SubscriptionOutcome]) -> ByteBuffer {
        let accepted = outcomes.count { $0 == .done }
        var writer = JSONWriter(reservingCapacity: 64 + outcomes.count * 224)
        writer.beginObject()
        writer.member("accepted", accepted)
        writer.member("rejected", outcomes.count - accepted)
        writer.key("results")
        writer.beginArray()
        for (token, outcome) in zip(tokens, outcomes) {
            writer.beginObject()
            writer.member("token", token)
            switch outcome {
            case .done: writer.member("status", "accepted")
            case .rejected(let rejection): writer.write(rejection)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }

    private static func response(
        _ body: ByteBuffer,
        _ quotas: [QuotaStatus],
        code: OutcomeCode? = nil
    ) -> HTTPServerResponse {
        var response = HTTPServerResponse(status: .ok, headers: [.contentType: "application/json"], body: body)
        response.code = code?.rawValue
        response.headers.append(quotas)
        return response
    }

    private static func response(_ refusal: Refusal, _ quotas: [QuotaStatus]) -> HTTPServerResponse {
        var refusal = refusal
        if refusal.code == .upstreamUnavailable, refusal.detail == nil {
            refusal.detail = "FCM did not confirm it; repeat after a while, which is harmless"
        }
        var response = refusal.response
        response.headers.append(quotas)
        return response
    }
}

extension SubscriptionOutcome {
    /// Why a device was refused, if it was.
    fileprivate var code: OutcomeCode? {
        if case .rejected(let rejection) = self { rejection.code } else { nil }
    }
}
