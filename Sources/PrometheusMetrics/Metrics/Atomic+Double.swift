import Synchronization

extension Atomic where Value == Double {
    /// Adds an amount without a lock.
    ///
    /// No order with other memory is promised or needed: a scrape reads each number by itself.
    func add(_ amount: Double) {
        var current = self.load(ordering: .relaxed)
        while true {
            let result = self.weakCompareExchange(expected: current, desired: current + amount, ordering: .relaxed)
            if result.exchanged {
                return
            }
            current = result.original
        }
    }
}
