/// A secret that prints, reflects and interpolates as `<redacted>`.
///
/// Whoever needs the value asks for `revealed`, which is easy to find in a review.
struct Redacted<Value: Sendable>: Sendable {
    /// The secret itself.
    let revealed: Value

    /// Hides a secret.
    init(_ revealed: Value) {
        self.revealed = revealed
    }
}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never the secret.
    var description: String { "<redacted>" }

    /// Never the secret.
    var debugDescription: String { "<redacted>" }

    /// A mirror without children, so that `dump` shows nothing either.
    var customMirror: Mirror { Mirror(self, children: []) }
}
