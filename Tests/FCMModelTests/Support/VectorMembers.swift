/// The members of one object of a vector; a test takes those that it knows, and none may be left over.
struct VectorMembers {
    private var left: [VectorJSON.Member]

    init(_ members: [VectorJSON.Member]) {
        self.left = members
    }

    /// Whether a member is there and not yet taken.
    func contains(_ key: String) -> Bool {
        self.left.contains { $0.key == key }
    }

    /// Takes a member that may be missing.
    mutating func takeIfPresent(_ key: String) -> VectorJSON? {
        guard let index = self.left.firstIndex(where: { $0.key == key }) else { return nil }
        return self.left.remove(at: index).value
    }

    /// Takes a member that must be there.
    mutating func take(_ key: String) throws -> VectorJSON {
        guard let value = self.takeIfPresent(key) else { throw VectorProblem("the member \(key) is missing") }
        return value
    }

    /// Takes what every vector begins with.
    ///
    /// - Returns: the vector's id.
    mutating func takeHeading() throws -> String {
        let id = try self.take("id").text()
        guard try !self.take("why").text().isEmpty else { throw VectorProblem("\(id) has no reason") }
        guard try !self.take("ref").elements().map({ try $0.text() }).isEmpty else {
            throw VectorProblem("\(id) follows no rule")
        }
        return id
    }

    /// Takes all that is left, as names and values.
    mutating func takeAll() -> [VectorJSON.Member] {
        defer { self.left = [] }
        return self.left
    }

    /// Refuses members that nobody took.
    func finish() throws {
        guard self.left.isEmpty else { throw VectorProblem("unknown members: \(self.left.map(\.key))") }
    }
}
