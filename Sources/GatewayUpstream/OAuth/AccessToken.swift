import EventLoopHTTP

/// An access token in the form that every call needs it.
///
/// A class: calls tell tokens apart by identity, and share the fields that are made once.
final class AccessToken: Sendable {
    private static let scheme = Array("Bearer ".utf8)
    private static let mediaType = Array("application/json; charset=UTF-8".utf8)

    /// The fields of a `messages:send` call with this token.
    let headers: HTTPHeaderLines
    /// The fields of a call that manages device groups with this token, but for the sender id.
    let groupHeaders: HTTPHeaderLines

    init(_ text: String) {
        var headers = HTTPHeaderLines()
        headers.append(.authorization, Self.scheme + Array(text.utf8))
        var groupHeaders = headers
        headers.append(.contentType, Self.mediaType)
        self.headers = headers
        groupHeaders.append(.contentType, "application/json")
        groupHeaders.append(.accessTokenAuth, "true")
        self.groupHeaders = groupHeaders
    }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// A constant that tells nothing.
    var description: String { "<redacted>" }
    /// A mirror without children, so that dumps tell nothing either.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
