/// The requests received, oldest forgotten first; bounded in number and in bytes of bodies.
struct Journal {
    private let maxBytes: Int
    private var entries: RingBuffer<JournalEntry>
    private var bytes = 0
    private var lastID = 0

    /// Creates an empty journal.
    ///
    /// - Parameters:
    ///   - maxEntries: entries kept, at least 1.
    ///   - maxBytes: bytes of request bodies kept; the newest entry is kept whatever its size.
    init(maxEntries: Int, maxBytes: Int) {
        self.entries = RingBuffer(capacity: maxEntries)
        self.maxBytes = maxBytes
    }

    /// The id the next entry gets.
    var nextID: Int { self.lastID + 1 }

    /// Appends an entry for a request.
    mutating func record(_ request: ReceivedRequest, fault: FaultAction?, decision: JournalDecision?) -> JournalEntry {
        self.lastID += 1
        let entry = JournalEntry(id: self.lastID, request: request, fault: fault, decision: decision)
        self.bytes += entry.body.utf8.count
        self.forget(self.entries.append(entry))
        while self.bytes > self.maxBytes, self.entries.count > 1 {
            self.forget(self.entries.removeFirst())
        }
        return entry
    }

    /// Sets the decision of an entry that was recorded without one.
    ///
    /// - Returns: the entry, or nil if it was forgotten meanwhile.
    mutating func complete(_ id: Int, decision: JournalDecision) -> JournalEntry? {
        // Ids are consecutive, so the oldest entry's id follows from the number of entries.
        let position = id - (self.lastID - self.entries.count + 1)
        self.entries[position]?.decision = decision
        return self.entries[position]
    }

    /// The latest entries, newest first.
    func newest(_ limit: Int) -> [JournalEntry] {
        self.entries.newest(limit)
    }

    /// Forgets every entry; ids go on.
    mutating func removeAll() {
        while let entry = self.entries.removeFirst() {
            self.forget(entry)
        }
    }

    private mutating func forget(_ entry: JournalEntry?) {
        self.bytes -= entry?.body.utf8.count ?? 0
    }
}
