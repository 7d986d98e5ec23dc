import Foundation

/// The latest 10,000 access tokens that were issued.
struct AccessTokens {
    enum Access: Equatable {
        case granted(AccessGrant)
        case expired
        case unknown
    }

    private static let capacity = 10_000
    private var grants: [String: (grant: AccessGrant, expiry: Date)] = [:]
    private var order = RingBuffer<String>(capacity: Self.capacity)

    mutating func issue(_ grant: AccessGrant, expiry: Date) -> String {
        let digits = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }
        let token = "ya29.emulator-" + digits.joined()
        self.grants[token] = (grant, expiry)
        if let oldest = self.order.append(token) { self.grants[oldest] = nil }
        return token
    }

    func access(with token: String, now: Date) -> Access {
        guard let (grant, expiry) = self.grants[token] else { return .unknown }
        return now < expiry ? .granted(grant) : .expired
    }

    mutating func revokeAll() {
        self = AccessTokens()
    }
}

/// The account and scopes of an access token.
struct AccessGrant: Sendable, Equatable {
    static let sendingScopes: Set<String> = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]

    let email: String
    let projectID: String
    let scopes: Set<String>

    var allowsSending: Bool { !self.scopes.isDisjoint(with: Self.sendingScopes) }
}
