/// A bounded queue that drops its oldest elements.
///
/// Appending and reading an element take constant time.
struct RingBuffer<Element> {
    private let capacity: Int
    private var slots: [Element?] = []
    private var first = 0
    private(set) var count = 0

    init(capacity: Int) {
        precondition(capacity >= 1, "capacity must be at least 1, not \(capacity)")
        self.capacity = capacity
    }

    /// The element at a position, 0 being the oldest.
    subscript(position: Int) -> Element? {
        get {
            (0..<self.count).contains(position) ? self.slots[self.slot(position)] : nil
        }
        set {
            guard (0..<self.count).contains(position) else { return }
            self.slots[self.slot(position)] = newValue
        }
    }

    @discardableResult
    mutating func append(_ element: Element) -> Element? {
        let dropped = self.count == self.capacity ? self.removeFirst() : nil
        let slot = self.slot(self.count)
        if slot == self.slots.count {
            self.slots.append(element)
        } else {
            self.slots[slot] = element
        }
        self.count += 1
        return dropped
    }

    /// Removes the oldest element and returns it.
    @discardableResult
    mutating func removeFirst() -> Element? {
        guard self.count > 0 else { return nil }
        let element = self.slots[self.first]
        self.slots[self.first] = nil
        self.first = (self.first + 1) % self.capacity
        self.count -= 1
        return element
    }

    /// Returns the elements that satisfy a condition, newest first, at most `limit`.
    func newest(_ limit: Int, where isIncluded: (Element) -> Bool = { _ in true }) -> [Element] {
        var result: [Element] = []
        for position in (0..<self.count).reversed() where result.count < limit {
            guard let element = self[position], isIncluded(element) else { continue }
            result.append(element)
        }
        return result
    }

    private func slot(_ position: Int) -> Int {
        (self.first + position) % self.capacity
    }
}
