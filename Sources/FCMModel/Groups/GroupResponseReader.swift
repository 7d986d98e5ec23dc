import NIOCore
import StrictJSON

/// Understands the answers of `/fcm/notification`.
package enum GroupResponseReader {
    /// Classifies an answer.
    ///
    /// - Parameters:
    ///   - response: the answer.
    ///   - now: seconds since 1970, for a `Retry-After` that is a date.
    /// - Returns: the key, or why there is none.
    package static func read(_ response: LegacyResponse, now: Int) -> GroupResult {
        GroupResult(Self.answer(response, now: now), upstreamCode: String(response.status))
    }

    private static func answer(_ response: LegacyResponse, now: Int) -> Result<String, GroupFailure> {
        let delay = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch response.status {
        case 200:
            guard let key = Self.root(response)?["notification_key"]?.string, AnswerBounds.isToken(key) else {
                return .failure(GroupFailure(.upstreamProtocol))
            }
            return .success(key)
        case 400: return .failure(Self.refusal(response))
        case 401, 403: return .failure(GroupFailure(.upstreamCredentials))
        case 429:
            return .failure(
                GroupFailure(.upstreamUnavailable, retryAfter: delay ?? RetryAfter.afterTooManyRequests)
            )
        case 500: return .failure(GroupFailure(.upstreamInternal, retryAfter: delay))
        case 501...599: return .failure(GroupFailure(.upstreamUnavailable, retryAfter: delay))
        default: return .failure(GroupFailure(.upstreamProtocol))
        }
    }

    private static func refusal(_ response: LegacyResponse) -> GroupFailure {
        let text = Self.root(response)?["error"]?.string ?? Self.plainText(response)
        guard let text, !text.isEmpty else { return GroupFailure(.invalidField, text: "BadRequest") }
        let beginning = AnswerBounds.beginning(of: text)
        return GroupFailure(Self.kind(of: beginning.lowercased()), text: beginning)
    }

    private static func kind(of text: String) -> GroupFailure.Kind {
        if text.contains("already exists") { return .groupExists }
        if text.contains("notification_key not found") { return .groupNotFound }
        if text.contains("no valid registration ids") { return .noValidTokens }
        if text.contains("error decrypting grouptoken") { return .groupKeyInvalid }
        return .invalidField
    }

    /// A body that is text; a page for people tells a client nothing.
    private static func plainText(_ response: LegacyResponse) -> String? {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || (0x09...0x0D).contains(byte) }
        func endsLine(_ byte: UInt8) -> Bool { (0x0A...0x0D).contains(byte) }
        let bytes = response.body.readableBytesView
        guard !bytes.contains(UInt8(ascii: "<")) else { return nil }
        return String(decoding: bytes.drop(while: isBlank).prefix { !endsLine($0) }, as: UTF8.self)
    }

    private static func root(_ response: LegacyResponse) -> JSONValue? {
        (try? JSONDocument(parsing: response.body))?.root
    }
}
