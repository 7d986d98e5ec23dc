/// What is done to a device group (T10, `operation`).
package enum GroupOperation: String, Sendable, Hashable, CaseIterable {
    case create
    case add
    case remove
}
