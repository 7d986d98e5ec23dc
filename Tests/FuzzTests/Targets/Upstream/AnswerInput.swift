import FCMModel
import NIOCore

/// An input as an upstream's answer. Three bytes choose a status, a case of the target, and the length of
/// `Retry-After`; the rest is the body.
struct AnswerInput {
    /// Seconds since 1970 at which answers are read.
    static let now = 1_700_000_000

    private static let statuses = [200, 200, 200, 200, 400, 401, 403, 404, 429, 500, 503, 599, 302, 0, 204, 409]
    private static let maxFieldBytes = 64

    let status: Int
    /// Chooses a case of the target, such as the recipient of a message.
    let choice: Int
    let retryAfter: String?
    let body: [UInt8]

    /// Splits an input; `nil` if it is too short.
    init?(_ input: [UInt8]) {
        guard input.count >= 3 else { return nil }
        self.status = Self.statuses[Int(input[0]) % Self.statuses.count]
        self.choice = Int(input[1])
        let rest = input.dropFirst(3)
        let field = rest.prefix(Int(input[2]) % Self.maxFieldBytes)
        self.retryAfter = field.isEmpty ? nil : String(decoding: field, as: UTF8.self)
        self.body = Array(rest.dropFirst(field.count))
    }

    /// As an answer of the legacy protocol.
    var legacy: UpstreamResponse {
        UpstreamResponse(status: self.status, retryAfter: self.retryAfter, body: ByteBuffer(bytes: self.body))
    }

    /// As an answer of HTTP v1 or the Instance ID API.
    var v1: UpstreamResponse {
        UpstreamResponse(
            status: self.status,
            retryAfter: self.retryAfter,
            contentType: "text/plain",
            body: ByteBuffer(bytes: self.body)
        )
    }

    /// True if the body contains a word in any spelling, or escapes that may spell it.
    func says(_ word: String) -> Bool {
        if self.body.contains(UInt8(ascii: "\\")) { return true }
        let text = String(decoding: self.body, as: UTF8.self)
        return text.filter { !$0.isWhitespace && $0 != "_" }.lowercased().contains(word)
    }
}
