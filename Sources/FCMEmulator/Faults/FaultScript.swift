/// The faults still to be played, in the order they were added.
struct FaultScript {
    private var faults: [Fault] = []

    var isEmpty: Bool { self.faults.isEmpty }

    /// Whether the recipients of a request are worth reading.
    var looksAtTokens: Bool { self.faults.contains { $0.token != nil } }

    mutating func add(_ fault: Fault) {
        self.faults.append(fault)
    }

    mutating func removeAll() {
        self.faults.removeAll()
    }

    /// Takes the first fault that matches a request, and counts it.
    mutating func take(path: String, tokens: [String]) -> FaultAction? {
        guard let index = self.faults.firstIndex(where: { $0.matches(path: path, tokens: tokens) }) else { return nil }
        let action = self.faults[index].action
        self.faults[index].times -= 1
        if self.faults[index].times == 0 {
            self.faults.remove(at: index)
        }
        return action
    }
}
