import EventLoopHTTP
import FCMModel
import GatewayCore

/// The form in which a request carries its credential.
enum Credential: Sendable {
    /// `Authorization: Bearer …` (RFC 6750, 2.1).
    case bearer
    /// `Authorization: key=…`, or a bearer token as newer libraries of the legacy protocol send it.
    case legacyKey
    /// The cookie of a session of the console.
    case session

    private static let bearerScheme = Array("bearer".utf8)
    private static let keyPrefix = Array("key=".utf8)

    /// Returns the credential of a request; `nil` if it has none of this form.
    func bytes(in request: HTTPServerRequest) -> ArraySlice<UInt8>? {
        if case .session = self { return ConsoleCookie.session.value(in: request) }
        return request.head.fields.bytes(of: .authorization).flatMap(self.bytes(in:))
    }

    /// Returns the credential in a value of `Authorization`. Ignores the case of `bearer` and `key`, and blanks after them.
    private func bytes(in value: [UInt8]) -> ArraySlice<UInt8>? {
        switch self {
        case .session: nil
        case .bearer: Self.bearerToken(in: value)
        case .legacyKey:
            Self.begins(value, Self.keyPrefix)
                ? Self.rest(of: value, behind: Self.keyPrefix.count) : Self.bearerToken(in: value)
        }
    }

    private static func bearerToken(in value: [UInt8]) -> ArraySlice<UInt8>? {
        let count = Self.bearerScheme.count
        guard Self.begins(value, Self.bearerScheme), value.count > count, value[count] == UInt8(ascii: " ") else {
            return nil
        }
        return Self.rest(of: value, behind: count)
    }

    private static func begins(_ value: [UInt8], _ prefix: [UInt8]) -> Bool {
        guard value.count >= prefix.count else { return false }
        for index in prefix.indices {
            let byte = value[index]
            let isUpperCase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            guard (isUpperCase ? byte | 0x20 : byte) == prefix[index] else { return false }
        }
        return true
    }

    private static func rest(of value: [UInt8], behind count: Int) -> ArraySlice<UInt8>? {
        let rest = value[count...].drop { $0 == UInt8(ascii: " ") }
        return rest.isEmpty ? nil : rest
    }
}

/// The callers of a listener.
enum Callers: Sendable {
    case tenants(Authenticator)
    /// Operators, each of whom has a role.
    ///
    /// A wrong token is answered after a pause; an API key, which is not a guess at the token, is answered at once. The
    /// admin listener has few connections, and each serves one request at a time. That bounds the guesses per second
    /// and the memory of waiting requests, and never locks out an operator with the token.
    ///
    /// The pages of the console need a session instead.
    case operators(AdminTokens, ConsoleSessions?, pause: @Sendable () async -> Void)
    /// The routes need no credential.
    case unknown
}
