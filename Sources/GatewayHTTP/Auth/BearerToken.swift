import HTTPTypes

/// The credential of `Authorization: Bearer …` (RFC 6750, 2.1).
enum BearerToken {
    /// The token; `nil` where there is none. The scheme's case does not matter.
    static func text(in headers: HTTPFields) -> Substring? {
        guard let value = headers[.authorization], let blank = value.firstIndex(of: " "),
            value[..<blank].lowercased() == "bearer"
        else { return nil }
        let token = value[blank...].drop { $0 == " " }
        return token.isEmpty ? nil : token
    }
}
