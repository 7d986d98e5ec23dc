/// The fields that one message type of v1 has, found by either spelling of their names.
struct V1Schema: Sendable {
    /// What a field may hold.
    indirect enum Kind: Sendable {
        case text
        /// `#` and six hexadecimal digits.
        case color
        /// A label for analytics: 1 to 50 characters of those that topics have.
        case label
        /// An address with https.
        case link
        /// One of some words.
        case choice([String], inAnyCase: Bool)
        case duration
        /// A duration of at most four weeks.
        case timeToLive
        case flag
        /// A whole number, as a number or as text.
        case count
        case number
        case texts
        case durations
        /// An object whose values are texts.
        case textMap
        /// An object that v1 hands on as it is.
        case structure
        case message(V1Schema)
    }

    /// One field.
    struct Field: Sendable {
        /// The name in `snake_case`, by which the protocol page knows it.
        let name: String
        let kind: Kind
        /// The field's place among those of its type.
        let index: Int
    }

    /// How many fields there are.
    let count: Int
    private let fields: [String: Field]

    /// A message type.
    ///
    /// - Parameter fields: names in `snake_case` and what they hold.
    init(_ fields: KeyValuePairs<String, Kind>) {
        var known: [String: Field] = [:]
        for (index, field) in fields.enumerated() {
            let value = Field(name: field.key, kind: field.value, index: index)
            known[field.key] = value
            known[Self.camelCase(field.key)] = value
        }
        self.fields = known
        self.count = fields.count
    }

    /// The field of a name in either spelling.
    subscript(name: String) -> Field? {
        name.protocolWord.flatMap { self.fields[$0] }
    }

    /// The spelling `lowerCamelCase` of a name.
    static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words.prefix(1).joined() + words.dropFirst().map(\.capitalized).joined()
    }
}

extension Substring {
    /// The word with its first letter in upper case.
    fileprivate var capitalized: String {
        self.prefix(1).uppercased() + self.dropFirst()
    }
}
