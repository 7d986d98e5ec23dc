/// A secret that prints, reflects and interpolates as `<redacted>`.
///
/// Whoever needs the value asks for `revealed`, which is easy to find in a review.
package struct Redacted<Value: Sendable>: Sendable {
    /// The secret itself.
    package let revealed: Value

    /// Hides a secret.
    package init(_ revealed: Value) {
        self.revealed = revealed
    }
}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never the secret.
    package var description: String { "<redacted>" }

    /// Never the secret.
    package var debugDescription: String { "<redacted>" }

    /// A mirror without children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
