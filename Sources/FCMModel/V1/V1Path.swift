import StrictJSON

/// The place of a field in a message of HTTP v1: the names of the members that lead to it.
struct V1Path: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The longest name, in Unicode scalars, that a path has in full. A longer one may be the caller's payload.
    private static let maxNameScalars = 64

    private var names: [String]

    /// Creates a path from names that have no dots, such as `message.android.ttl`.
    init(stringLiteral names: String) {
        self.names = names.split(separator: ".").map(String.init)
    }

    func appending(_ name: String) -> V1Path {
        var path = self
        path.names.append(name)
        return path
    }

    func appending(_ rest: V1Path) -> V1Path {
        var path = self
        path.names += rest.names
        return path
    }

    /// The path in Google's form.
    var text: String {
        self.names
            .map { name in
                let scalars = name.unicodeScalars
                let cut = scalars.prefix(Self.maxNameScalars)
                return cut.endIndex < scalars.endIndex ? "\(String(cut))…" : name
            }
            .joined(separator: ".")
    }

    /// The path in the form of the REST API.
    var pointer: JSONPointer { self.names.reduce(JSONPointer()) { $0.appending($1) } }
}
