/// Device groups, from behind.
extension FCMEmulator {
    /// The members of a device group in the order of their coming; nil where there is none.
    package func members(ofGroup name: String, senderID: String) -> [String]? {
        self.state.members(ofGroup: name, sender: senderID)
    }

    /// The names of a sender id's device groups, sorted.
    package func groupNames(senderID: String) -> [String] {
        self.state.groups.filter { $0.sender == senderID }.map(\.name)
    }

    /// Deletes a device group whatever its members; its keys die.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    package func deleteGroup(named name: String, senderID: String) -> Bool {
        self.state.deleteGroup(named: name, sender: senderID)
    }

    /// Says which tokens no device group takes from now on, in place of those said before.
    package func refuse(tokens: Set<String>) {
        self.state.refuse(tokens: tokens)
    }
}
