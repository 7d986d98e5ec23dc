import Foundation

/// The access tokens that were issued, the latest 10,000 of them.
struct AccessTokens {
    /// What a token is worth.
    enum Access: Equatable {
        case granted(AccessGrant)
        case expired
        /// Never issued, revoked, or forgotten.
        case unknown
    }

    private static let capacity = 10_000

    private var grants: [String: (grant: AccessGrant, expiry: Date)] = [:]
    private var order = RingBuffer<String>(capacity: Self.capacity)

    /// Issues a token that is valid before the date.
    mutating func issue(_ grant: AccessGrant, expiry: Date) -> String {
        let digits = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }
        let token = "ya29.emulator-" + digits.joined()
        self.grants[token] = (grant, expiry)
        if let oldest = self.order.append(token) { self.grants[oldest] = nil }
        return token
    }

    /// What a token is worth at a time.
    func access(with token: String, now: Date) -> Access {
        guard let (grant, expiry) = self.grants[token] else { return .unknown }
        return now < expiry ? .granted(grant) : .expired
    }

    /// Forgets every token.
    mutating func revokeAll() {
        self = AccessTokens()
    }
}
