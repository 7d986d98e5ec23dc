import NIOCore

/// Counts the places that each tenant occupies in a pool, on one event loop, and decides if it may take another.
///
/// A tenant may take a place while it has fewer than fifteen times the free places (dynamic thresholds, Choudhury and
/// Hahne, 1998). Example with 256 places: one tenant alone gets 240. Two get 124 each, and 8 stay free. So the next
/// tenant finds a place at once, even if no call of the others ever ends.
///
/// Tenants are counted by the last eight bits of their number, so that nothing is hashed. Tenants with
/// the same bits have one share (stochastic fairness queueing, McKenney, 1990). Number 0 is no tenant, and takes any
/// free place.
struct HTTPTenantShares {
    private static let factor = 15
    private static let lines = 256

    private var taken = [UInt16](repeating: 0, count: Self.lines)

    func mayTake(_ tenant: Int, free: Int) -> Bool {
        tenant == 0 || Int(self.taken[tenant & (Self.lines - 1)]) < Self.factor * max(free, 1)
    }

    func room(for tenant: Int, free: Int) -> Int {
        guard tenant != 0 else { return free }
        // After n more places, the tenant may take another if taken + n < factor * (free - n).
        let excess = Self.factor * free - Int(self.taken[tenant & (Self.lines - 1)])
        return max(0, (excess + Self.factor) / (Self.factor + 1))
    }

    mutating func take(_ tenant: Int) {
        if tenant != 0 { self.taken[tenant & (Self.lines - 1)] += 1 }
    }

    mutating func give(_ tenant: Int) {
        if tenant != 0 { self.taken[tenant & (Self.lines - 1)] -= 1 }
    }
}

/// The exchanges that wait for a place in a pool: one line for each tenant, served in turns.
struct HTTPTenantQueue<Element> {
    private var lines: [Int: CircularBuffer<Element>] = [:]
    /// The tenants that have a line, the next one first.
    private var turns = CircularBuffer<Int>()
    private(set) var count = 0

    var isEmpty: Bool { self.count == 0 }

    /// Returns true if more than `count` elements wait. Each tenant's elements count only up to its limit.
    func count(beyond count: Int, upTo limit: (_ tenant: Int) -> Int) -> Bool {
        guard self.count > count else { return false }
        var counted = 0
        for (tenant, line) in self.lines {
            counted += min(line.count, limit(tenant))
            if counted > count { return true }
        }
        return false
    }

    mutating func append(_ element: Element, of tenant: Int) {
        if self.lines[tenant, default: []].isEmpty { self.turns.append(tenant) }
        self.lines[tenant, default: []].append(element)
        self.count += 1
    }

    /// Puts an element that has waited before at the head of its line.
    mutating func prepend(_ element: Element, of tenant: Int) {
        if self.lines[tenant, default: []].isEmpty { self.turns.prepend(tenant) }
        self.lines[tenant, default: []].prepend(element)
        self.count += 1
    }

    /// Removes the first element that fits, from the line of the next tenant that may be served and has one.
    mutating func pop(
        of mayServe: (_ tenant: Int) -> Bool,
        where fits: (Element) -> Bool = { _ in true }
    ) -> (element: Element, tenant: Int)? {
        for turn in self.turns.indices {
            let tenant = self.turns[turn]
            guard mayServe(tenant), let place = self.lines[tenant]?.firstIndex(where: fits),
                let element = self.lines[tenant]?.remove(at: place)
            else { continue }
            self.count -= 1
            self.turns.remove(at: turn)
            if self.lines[tenant]?.isEmpty == false {
                self.turns.append(tenant)
            } else {
                self.lines[tenant] = nil
            }
            return (element, tenant)
        }
        return nil
    }

    /// Makes room for one more element of a tenant: removes the last element of the longest line, if that line is
    /// longer than the tenant's own would be.
    mutating func displace(for tenant: Int) -> Element? {
        let own = self.lines[tenant]?.count ?? 0
        guard let (longest, line) = self.lines.max(by: { $0.value.count < $1.value.count }), line.count > own + 1 else {
            return nil
        }
        self.count -= 1
        return self.lines[longest]?.popLast()
    }

    mutating func remove(of tenant: Int, where isGone: (Element) -> Bool) {
        guard let before = self.lines[tenant]?.count else { return }
        self.lines[tenant]?.removeAll(where: isGone)
        let after = self.lines[tenant]?.count ?? 0
        self.count -= before - after
        guard after == 0 else { return }
        self.lines[tenant] = nil
        self.turns.removeAll { $0 == tenant }
    }

    mutating func removeAll() -> [Element] {
        defer { self = HTTPTenantQueue() }
        return self.turns.flatMap { self.lines[$0].map(Array.init) ?? [] }
    }
}
