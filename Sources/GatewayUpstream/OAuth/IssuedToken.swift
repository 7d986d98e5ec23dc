/// A token endpoint's answer.
package struct IssuedToken: Sendable {
    /// The access token; a secret.
    package let text: String
    /// How long it is valid, in seconds from when it was asked for.
    package let lifetimeSeconds: Int

    /// A token.
    package init(text: String, lifetimeSeconds: Int) {
        self.text = text
        self.lifetimeSeconds = lifetimeSeconds
    }
}

extension IssuedToken: CustomStringConvertible, CustomReflectable {
    /// A constant that tells nothing.
    package var description: String { "<redacted>" }
    /// A mirror without children, so that dumps tell nothing either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
