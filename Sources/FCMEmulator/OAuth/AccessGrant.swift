/// Whom an access token was issued to, and for what.
struct AccessGrant: Sendable, Equatable {
    /// Scopes that allow sending.
    static let sendingScopes: Set<String> = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]

    /// E-mail address of the service account.
    let email: String

    /// Project of the service account.
    let projectID: String

    /// The scopes asked for.
    let scopes: Set<String>

    /// Whether the token may be used to send.
    var allowsSending: Bool { !self.scopes.isDisjoint(with: Self.sendingScopes) }
}
