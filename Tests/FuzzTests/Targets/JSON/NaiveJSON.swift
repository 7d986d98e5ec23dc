/// A JSON text read in the plainest way that RFC 8259 allows, to compare with.
indirect enum NaiveJSON: Equatable {
    case object([Member])
    case array([NaiveJSON])
    /// The bytes of the unescaped text.
    case string([UInt8])
    /// The number as written.
    case number([UInt8])
    case bool(Bool)
    case null

    /// A member of an object.
    struct Member: Equatable {
        /// The bytes of the unescaped name.
        var name: [UInt8]
        var value: NaiveJSON
    }

    /// The same value with every object's members sorted by the bytes of their names.
    var sorted: NaiveJSON {
        switch self {
        case .object(let members):
            let members = members.map { Member(name: $0.name, value: $0.value.sorted) }
            return .object(members.sorted { $0.name.lexicographicallyPrecedes($1.name) })
        case .array(let elements):
            return .array(elements.map(\.sorted))
        case .string, .number, .bool, .null:
            return self
        }
    }

    /// Reads a text within the default limits; nil where it is none, or exceeds them.
    static func read(_ bytes: [UInt8]) -> NaiveJSON? {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var reader = NaiveJSONReader(bytes)
        return reader.document()
    }
}
