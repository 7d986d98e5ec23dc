extension VectorJSON {
    /// The paths to all values that are no objects, names joined by dots; lists count as one value, empty objects too.
    var leaves: [String] {
        var leaves: [String] = []
        self.collectLeaves(at: "", into: &leaves)
        return leaves
    }

    private func collectLeaves(at path: String, into leaves: inout [String]) {
        guard case .object(let members) = self, !members.isEmpty else {
            leaves.append(path)
            return
        }
        for member in members {
            member.value.collectLeaves(at: path.isEmpty ? member.key : "\(path).\(member.key)", into: &leaves)
        }
    }
}
