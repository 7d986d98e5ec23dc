package import NIOCore
import StrictJSON

/// An answer in the shapes of v1's `messages:send`, ready to be written to a client.
package struct V1Reply: Sendable, Hashable {
    private static let json = "application/json; charset=UTF-8"

    /// The HTTP status.
    package let status: Int
    /// The value of `Content-Type`.
    package let contentType: String
    /// The value of `Retry-After`; `nil` where the header must be missing.
    package let retryAfter: String?
    /// The body's bytes.
    package let body: ByteBuffer
    /// Why it is a refusal, for logs; `nil` where it is none.
    package var code: OutcomeCode?

    /// Hands an upstream's answer on, unchanged (V-FACADE).
    ///
    /// - Parameters:
    ///   - response: an answer whose reading says ``V1Reading/isHandedOn``.
    ///   - code: what that reading makes of a refusal.
    package init(handingOn response: V1Response, code: OutcomeCode? = nil) {
        self.code = code
        self.status = response.status
        self.contentType = response.contentType ?? Self.json
        self.retryAfter = response.retryAfter
        self.body = response.body
    }

    /// The answer to a message that was taken.
    ///
    /// - Parameters:
    ///   - acceptance: what FCM said.
    ///   - project: the project's id as it stands in the request's path.
    package init(_ acceptance: Acceptance, project: String) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("name", "projects/\(project)/messages/\(acceptance.messageID)")
        writer.endObject()
        self.init(status: 200, body: writer.finish(), retryAfter: nil)
    }

    /// The answer to a message that was taken for a device group: v1 tells nothing, not even of failed members.
    package static let groupAcceptance = V1Reply(status: 200, body: ByteBuffer(string: "{}"), retryAfter: nil)

    /// What a v1 client gets to see of one recipient's outcome; the project is named as in the request's path.
    package init(_ outcome: RecipientOutcome, project: String) {
        switch outcome {
        case .accepted(let acceptance): self.init(acceptance, project: project)
        case .rejected(let rejection): self.init(refusing: rejection)
        }
    }

    /// What a v1 client gets to see of a message that was not taken, whichever upstream refused it or the gateway
    /// itself (V-FACADE; the table of the v1 facade on a legacy upstream).
    package init(refusing rejection: Rejection) {
        let name = rejection.legacyErrorName
        let isAPNS = rejection.code == .upstreamCredentials && name == .invalidAPNSCredential
        let error = isAPNS ? V1Error.thirdPartyAuth : rejection.code.v1Error
        // Google's front end, which gives no code of FCM's, names no field here.
        let violation = error == .invalidArgument ? name.v1Violation : nil
        self.init(error, violation, retryAfter: rejection.retryAfter, code: rejection.code)
    }

    /// What a v1 client gets to see whose request can't be read or holds a bad value.
    package init(refusing refusal: Refusal) {
        let detail = refusal.detail ?? refusal.code.title
        self.init(
            V1Error(.invalidArgument, refusal.isSyntactic ? nil : .invalidArgument, detail),
            refusal.fields.first.map { V1FieldViolation(field: $0.path, description: $0.detail) },
            code: refusal.code
        )
    }

    /// The answer to a request that is wrong in itself, whatever message it carries: 400 `INVALID_ARGUMENT`.
    package static func badRequest(_ message: String, code: OutcomeCode = .badRequest) -> V1Reply {
        V1Reply(V1Error(.invalidArgument, nil, message), code: code)
    }

    /// An error in Google's form.
    init(
        _ error: V1Error,
        _ violation: V1FieldViolation? = nil,
        retryAfter: Int? = nil,
        code: OutcomeCode
    ) {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.key("error")
        writer.beginObject()
        writer.member("code", error.status.httpStatus)
        writer.member("message", error.message)
        writer.member("status", error.status.rawValue)
        if error.code != nil || violation != nil {
            writer.key("details")
            writer.beginArray()
            if let code = error.code { Self.write(code, to: &writer) }
            if let violation { Self.write(violation, to: &writer) }
            writer.endArray()
        }
        writer.endObject()
        writer.endObject()
        let delay: Int? =
            switch error.delay {
            case .never: nil
            case .named: retryAfter
            case .seconds(let seconds): retryAfter ?? seconds
            }
        self.init(status: error.status.httpStatus, body: writer.finish(), retryAfter: delay.map { String($0) })
        self.code = code
    }

    init(status: Int, body: ByteBuffer, retryAfter: String?) {
        self.status = status
        self.contentType = Self.json
        self.retryAfter = retryAfter
        self.body = body
    }

    private static func write(_ code: V1ErrorCode, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("@type", "type.googleapis.com/google.firebase.fcm.v1.FcmError")
        writer.member("errorCode", code.rawValue)
        writer.endObject()
    }

    private static func write(_ violation: V1FieldViolation, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("@type", "type.googleapis.com/google.rpc.BadRequest")
        writer.key("fieldViolations")
        writer.beginArray()
        writer.beginObject()
        if !violation.field.isEmpty { writer.member("field", violation.field) }
        writer.member("description", violation.description)
        writer.endObject()
        writer.endArray()
        writer.endObject()
    }
}
