import NIOCore
import StrictJSON

/// What the body of a refusal by v1 says (`google.rpc.Status`); a body that is none says nothing.
struct V1ErrorBody {
    /// FCM's own code, which the front end's refusals lack.
    enum Code {
        case absent
        /// A code that we do not know.
        case unknown
        case known(V1ErrorCode)
    }

    private(set) var code = Code.absent
    /// The canonical code, such as `NOT_FOUND`.
    private(set) var status: String?
    /// Whether the project's quota of requests is used up.
    private(set) var isProjectQuota = false
    /// Seconds to wait, where the body names them.
    private(set) var retryDelay: Int?
    private let error: JSONValue?

    init(_ body: ByteBuffer) {
        self.error = (try? JSONDocument(parsing: body))?.root["error"]
        guard let error = self.error else { return }
        self.status = error["status"]?.string
        guard let details = error["details"]?.elements else { return }
        for detail in details {
            self.read(detail)
        }
    }

    /// Takes what one entry of `details` tells; entries are known by the end of their type, in whatever order.
    private mutating func read(_ detail: JSONValue) {
        guard let type = detail["@type"]?.string else { return }
        if Self.names(type, "google.firebase.fcm.v1.FcmError") {
            guard let text = detail["errorCode"]?.string else { return }
            if case .known = self.code { return }
            self.code = V1ErrorCode(wireText: text).map(Code.known) ?? .unknown
        } else if Self.names(type, "google.rpc.ErrorInfo") {
            self.isProjectQuota = self.isProjectQuota || detail["reason"]?.string == "RATE_LIMIT_EXCEEDED"
        } else if Self.names(type, "google.rpc.RetryInfo") {
            self.retryDelay = detail["retryDelay"]?.string.flatMap(V1Duration.init)
                .map { RetryAfter.bounded($0.roundedUp) }
        }
    }

    /// Whether the body carries a code of FCM's own, known or not.
    var hasCode: Bool {
        switch self.code {
        case .absent: false
        case .known, .unknown: true
        }
    }

    /// Whether FCM says by it that it failed: an error in Google's form.
    ///
    /// A proxy's page is none, and a lost deadline leaves open whether the message was taken.
    var isFailureOfFCM: Bool {
        self.hasCode || self.status.map { $0 != V1Status.deadlineExceeded.rawValue } ?? false
    }

    /// The fields that the answer finds fault with.
    var violations: [V1FieldViolation] {
        var violations: [V1FieldViolation] = []
        for detail in self.error?["details"]?.elements.map(Array.init) ?? [] {
            guard let type = detail["@type"]?.string, Self.names(type, "google.rpc.BadRequest"),
                let entries = detail["fieldViolations"]?.elements
            else { continue }
            for entry in entries {
                violations.append(
                    V1FieldViolation(
                        field: entry["field"]?.string ?? "",
                        description: entry["description"]?.string ?? ""
                    )
                )
            }
        }
        return violations
    }

    /// The answer's own sentence, for developers.
    var message: String {
        self.error?["message"]?.string ?? ""
    }

    /// Whether a type's address ends in a name.
    private static func names(_ type: String, _ name: String) -> Bool {
        let end = type.utf8.suffix(name.utf8.count)
        let before = type.utf8.dropLast(name.utf8.count).last
        return end.elementsEqual(name.utf8) && (before == nil || before == UInt8(ascii: "/"))
    }
}
