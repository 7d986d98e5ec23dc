/// A request to manage device groups that passed every check of its form.
enum GroupCommand: Sendable, Equatable {
    case lookUp(name: String, sender: String)
    case create(name: String, sender: String, tokens: [String])
    case add(key: String, name: String?, sender: String, tokens: [String])
    case remove(key: String, name: String?, sender: String, tokens: [String])
}
