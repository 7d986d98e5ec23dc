/// One request to FCM's device-group management.
package enum GroupRequest: Sendable, Hashable {
    /// Changes a group.
    case change(GroupChange)
    /// Asks for a key of the group of this name.
    case lookUp(name: String)
}
