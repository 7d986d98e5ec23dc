/// The elements of an array.
package struct JSONElements: Sequence, Sendable {
    /// Steps through the elements.
    package struct Iterator: IteratorProtocol {
        private let tape: JSONTape
        private var element: Int
        private let end: Int

        /// Creates an iterator.
        ///
        /// - Parameters:
        ///   - tape: The document's tape.
        ///   - array: The array's node.
        init(tape: JSONTape, array: Int) {
            self.tape = tape
            self.element = array + 1
            self.end = Int(tape.nodes[array].end)
        }

        /// Steps on.
        ///
        /// - Returns: The next element; nil after the last.
        package mutating func next() -> JSONValue? {
            guard self.element < self.end else { return nil }
            let value = JSONValue(tape: self.tape, index: self.element)
            self.element = Int(self.tape.nodes[self.element].end)
            return value
        }
    }

    private let tape: JSONTape
    private let array: Int

    /// Creates the view.
    ///
    /// - Parameters:
    ///   - tape: The document's tape.
    ///   - array: The array's node.
    init(tape: JSONTape, array: Int) {
        self.tape = tape
        self.array = array
    }

    /// How many elements there are; known without counting.
    package var count: Int {
        Int(self.tape.nodes[self.array].extent)
    }

    /// The same as ``count``.
    package var underestimatedCount: Int {
        self.count
    }

    /// Starts at the first element.
    ///
    /// - Returns: An iterator.
    package func makeIterator() -> Iterator {
        Iterator(tape: self.tape, array: self.array)
    }
}
