/// A method and a template of paths that a listener serves, to compare with its description.
struct ServedRoute: Sendable, Hashable, CustomStringConvertible {
    /// The method's name.
    var method: String
    /// The path, with `{name}` in the place of what varies.
    var template: String

    var description: String { "\(self.method) \(self.template)" }
}
