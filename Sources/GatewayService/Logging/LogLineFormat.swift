/// How a line looks.
enum LogLineFormat: Sendable, Hashable {
    /// A JSON object.
    case json
    /// Words for people, the level in colour where a terminal shows them.
    case text(isColoured: Bool)
}
