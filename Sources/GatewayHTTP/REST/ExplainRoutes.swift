import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Tells what a send would do: `POST /v1/tenants/{tenant}/messages/explain`.
///
/// It sends and records nothing. It charges the tenant's quota for one message, and no quota of a device or topic.
struct ExplainRoutes {
    let pipeline: SendPipeline

    var endpoints: [any Endpoint] {
        [
            Handler(
                .post,
                "/v1/tenants/{tenant}/messages/explain",
                action: .messageExplain,
                bodyLimit: Route.largeBody,
                self.explain
            )
        ]
    }

    @Sendable
    private func explain(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        try await self.pipeline.charge(caller.principal)
        let body = try Body(
            exchange.request.body,
            contentType: exchange.contentType,
            form: Self.form(of: exchange)
        )
        let command = try body.command(by: caller, at: exchange.time)
        let preview = try await self.pipeline.preview(command, maxRequests: SendExplanation.maxShownRequests)
        return HTTPServerResponse(json: SendExplanation(of: body.message, command, preview).json)
    }

    private static func form(of exchange: Exchange) throws(Refusal) -> Body.Form {
        guard let text = try exchange.query(["form"]).text("form") else { return .rest }
        guard let form = Body.Form(rawValue: text) else {
            throw Refusal(.invalidField, "form must be rest or legacy")
        }
        return form
    }
}

extension ExplainRoutes {
    /// A body to explain, in either form that a sender may write.
    struct Body {
        enum Form: String, CaseIterable {
            case rest
            /// As for `POST /fcm/send`, in JSON.
            case legacy
        }

        /// The most bytes of collapse key and package name together. The explanation shows both, so they are bounded.
        private static let maxOptionBytes = 64 * 1024

        let message: Message
        let target: Target
        /// The payload's size in a legacy form.
        private let legacyBytes: Int?

        /// Reads a body. Throws a refusal if no send would accept it.
        init(_ body: ByteBuffer, contentType: String?, form: Form) throws(Refusal) {
            switch form {
            case .rest:
                (self.target, self.message) = try SendBody.read(JSONBody.members(of: body, contentType: contentType))
                self.legacyBytes = nil
            case .legacy:
                guard JSONBody.isJSON(contentType) else {
                    throw Refusal(.unsupportedMediaType, "Send the body as application/json")
                }
                let request = try Self.legacyRequest(body)
                guard let target = request.sentTarget, target.isPossible else {
                    throw Refusal(.invalidTarget, "None of the recipients is a registration token")
                }
                self.target = target
                self.message = request.message
                self.legacyBytes = request.payloadBytes
            }
            let options = [self.message.collapseKey, self.message.restrictedPackageName]
            guard options.reduce(0, { $0 + ($1?.utf8.count ?? 0) }) <= Self.maxOptionBytes else {
                throw Refusal(.invalidField, "The collapse key and the package name are too long to be shown")
            }
        }

        func command(by caller: Caller, at time: Timestamp) throws(Refusal) -> SendCommand {
            guard let legacyBytes else {
                return try SendCommand(self.message, to: self.target, by: caller, at: time)
            }
            return SendCommand(by: caller, to: self.target, message: self.message, payloadBytes: legacyBytes)
        }

        private static func legacyRequest(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
            do {
                return try LegacyRequestDecoder.decode(body)
            } catch {
                throw error.explained
            }
        }
    }
}

extension Refusal {
    /// A refusal of the legacy protocol, in the words of the REST API.
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
