/// The members of an object, in the order of the text.
package struct JSONMembers: Sequence, Sendable {
    /// Steps through the members.
    package struct Iterator: IteratorProtocol {
        private let tape: JSONTape
        private var key: Int
        private let end: Int

        /// Creates an iterator.
        ///
        /// - Parameters:
        ///   - tape: The document's tape.
        ///   - object: The object's node.
        init(tape: JSONTape, object: Int) {
            self.tape = tape
            self.key = object + 1
            self.end = Int(tape.nodes[object].end)
        }

        /// Steps on.
        ///
        /// - Returns: The next member; nil after the last.
        package mutating func next() -> JSONMember? {
            guard self.key < self.end else { return nil }
            let value = JSONValue(tape: self.tape, index: self.key + 1)
            self.key = Int(self.tape.nodes[self.key + 1].end)
            return JSONMember(value: value)
        }
    }

    private let tape: JSONTape
    private let object: Int

    /// Creates the view.
    ///
    /// - Parameters:
    ///   - tape: The document's tape.
    ///   - object: The object's node.
    init(tape: JSONTape, object: Int) {
        self.tape = tape
        self.object = object
    }

    /// How many members there are; known without counting.
    package var count: Int {
        Int(self.tape.nodes[self.object].extent)
    }

    /// The same as ``count``.
    package var underestimatedCount: Int {
        self.count
    }

    /// Starts at the first member.
    ///
    /// - Returns: An iterator.
    package func makeIterator() -> Iterator {
        Iterator(tape: self.tape, object: self.object)
    }
}
