/// What a token's own text makes the emulator do.
enum TokenScript: Equatable {
    /// Accepted; with a canonical token when the text names one.
    case accepted(canonical: String?)
    /// Refused with an error of this name.
    case failed(String)

    private static let errorMark = "ERROR_"
    private static let canonicalMark = "CANONICAL_"

    /// Reads a token.
    ///
    /// `ERROR_<name>` gives that error, a name of T9 or of v1 ending where no further letter follows; other names run to
    /// the first character that is neither letter, digit nor underscore. `CANONICAL_<other>` takes the rest of the token.
    init(token: String) {
        if let rest = Self.rest(of: token, after: Self.errorMark), let name = Self.errorName(in: rest) {
            self = .failed(name)
            return
        }
        let canonical = Self.rest(of: token, after: Self.canonicalMark)
        self = .accepted(canonical: canonical?.isEmpty == false ? canonical.map { String($0) } : nil)
    }

    private static func rest(of token: String, after mark: String) -> Substring? {
        guard let range = token.firstRange(of: mark) else { return nil }
        return token[range.upperBound...]
    }

    private static func errorName(in text: Substring) -> String? {
        let known = (LegacyErrorName.allCases.map(\.rawValue) + V1Failure.scriptedNames)
            .first { name in
                text.hasPrefix(name) && text.dropFirst(name.count).first?.isLetter != true
            }
        if let known { return known }
        let other = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        return other.isEmpty ? nil : String(other)
    }
}
