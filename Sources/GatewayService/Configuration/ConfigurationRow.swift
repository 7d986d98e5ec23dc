/// One line of `config show`.
package struct ConfigurationRow: Sendable, Equatable {
    /// The key's path.
    package var key: String

    /// The value in force as text: empty when there is none, `<redacted>` for a secret.
    package var value: String

    /// Where the value comes from.
    package var source: ConfigurationSource

    /// Whether a reload puts another value in force; without it, only a start does.
    package var isReloadable = false
}
