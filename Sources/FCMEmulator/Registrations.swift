/// The state of registrations, in addition to what tokens say by their own text.
struct Registrations {
    private var ended: Set<String> = []
    private var canonical: [String: String] = [:]
    /// The percentage of tokens that are dead, whatever their text.
    var unregisteredPercent = 0

    var endedCount: Int { self.ended.count }

    /// Ends registrations, or restores them with or without a canonical token.
    mutating func set(_ tokens: [String], isEnded: Bool, canonical: String?) {
        for token in tokens {
            self.canonical[token] = isEnded ? nil : canonical
            if isEnded { self.ended.insert(token) } else { self.ended.remove(token) }
        }
    }

    /// Returns the fate of a message to a token: by the token's own setting, else by the setting for all, else by its
    /// text.
    func script(of token: String) -> TokenScript {
        if self.ended.contains(token) { return .failed(LegacyErrorName.notRegistered.rawValue) }
        if let canonical = self.canonical[token] { return .accepted(canonical: canonical) }
        if Self.percentile(of: token) < self.unregisteredPercent {
            return .failed(LegacyErrorName.notRegistered.rawValue)
        }
        return TokenScript(token: token)
    }

    /// Returns a fixed number from 0 to 99 for a token, evenly distributed over tokens (FNV-1a).
    private static func percentile(of token: String) -> Int {
        let hash = token.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        // The low bits of this hash are the weakest.
        return Int((hash ^ hash >> 32) % 100)
    }
}

/// The emulator's behaviour that a token's own text selects.
enum TokenScript: Equatable {
    /// Accepted; with a canonical token if the text names one.
    case accepted(canonical: String?)
    case failed(String)

    private static let errorMark = "ERROR_"
    private static let canonicalMark = "CANONICAL_"

    /// Reads a token.
    ///
    /// `ERROR_<name>` selects that error. A name of T9 or of v1 matches if no letter follows it; any other name extends
    /// to the first character that is not a letter, digit or underscore. `CANONICAL_<other>` uses the rest of the
    /// token.
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
