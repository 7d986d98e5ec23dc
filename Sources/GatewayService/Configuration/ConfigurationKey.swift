import Configuration

/// One key an operator can set.
package struct ConfigurationKey: Sendable {
    /// The value's type, with its default.
    enum Kind: Sendable {
        /// Text; an empty default means none.
        case text(String)
        /// A whole number.
        case wholeNumber(Int)
        /// A list of texts, comma-separated in the environment.
        case textList([String])
        /// Rate policies, JSON text in the environment.
        case policies([RatePolicyConfiguration])
        /// A secret: environment only, no default.
        case secret
    }

    /// The path, with dots.
    package let path: String

    /// The type and the default.
    let kind: Kind

    /// What the key means, in one line.
    let doc: String

    /// Whether a reload puts another value in force; without it, only a start does.
    let isReloadable: Bool

    /// Names a key.
    init(_ path: String, _ kind: Kind, _ doc: String, isReloadable: Bool = false) {
        self.path = path
        self.kind = kind
        self.doc = doc
        self.isReloadable = isReloadable
    }

    /// Whether the value must never be shown or stand in the file.
    package var isSecret: Bool {
        if case .secret = self.kind { true } else { false }
    }

    /// The path's parts.
    var components: [String] {
        self.path.split(separator: ".").map(String.init)
    }

    /// The default in the form the library reads.
    var defaultContent: ConfigContent {
        switch self.kind {
        case .text(let text): .string(text)
        case .wholeNumber(let number): .int(number)
        case .textList(let texts): .stringArray(texts)
        case .policies(let policies): .string(RatePolicyList.json(policies))
        case .secret: .string("")
        }
    }

    /// The environment variables that set the key: for a secret also the one that names a file.
    var variables: [String] {
        let name = Self.environmentName(self.path)
        return self.isSecret ? [name, "\(name)_FILE"] : [name]
    }

    /// The variable of a path: `http.keepAliveTimeoutMs` is `GATEWAY_HTTP_KEEP_ALIVE_TIMEOUT_MS`.
    ///
    /// A word begins at a capital that follows anything else, so `v1Endpoint` is `V1_ENDPOINT`; the library's own
    /// encoding would make it `V1ENDPOINT`.
    package static func environmentName(_ path: String) -> String {
        var name = "GATEWAY_"
        var previousIsBoundary = true
        for character in path {
            if character == "." {
                name.append("_")
                previousIsBoundary = true
            } else {
                if character.isUppercase, !previousIsBoundary {
                    name.append("_")
                }
                name.append(character.uppercased())
                previousIsBoundary = character.isUppercase
            }
        }
        return name
    }
}
