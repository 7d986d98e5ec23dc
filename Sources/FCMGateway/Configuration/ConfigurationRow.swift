/// One line of `config show`.
struct ConfigurationRow: Sendable, Equatable {
    /// The key's path.
    var key: String

    /// The value in force as text: empty when there is none, `<redacted>` for a secret.
    var value: String

    /// Where the value comes from.
    var source: ConfigurationSource

    /// Whether a reload puts another value in force; without it, only a start does.
    var isReloadable = false
}
