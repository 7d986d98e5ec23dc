import CoreMetrics
import Synchronization

/// A sum that only grows, of whole numbers, fractions or both.
///
/// Whole amounts, by far the most frequent, take one atomic addition and stay exact; fractions have a sum of their own.
final class PrometheusCounter: PrometheusSeries {
    static let kind = MetricDescription.Kind.counter

    let identity: SeriesIdentity

    private let whole = Atomic<UInt64>(0)
    private let fractional = Atomic<Double>(0)

    init(identity: SeriesIdentity, buckets: [Double]) {
        self.identity = identity
    }

    func write(to writer: inout ExpositionWriter) {
        let whole = self.whole.load(ordering: .relaxed)
        let fractional = self.fractional.load(ordering: .relaxed)
        let value = fractional == 0 ? whole.description : ExpositionWriter.text(Double(whole) + fractional)
        writer.writeSample(self.identity, value: value)
    }
}

extension PrometheusCounter: CounterHandler {
    /// Adds an amount; one below zero is ignored, since a counter that falls reads as a restart.
    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        self.whole.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    func reset() {
        self.whole.store(0, ordering: .relaxed)
        self.fractional.store(0, ordering: .relaxed)
    }
}

extension PrometheusCounter: FloatingPointCounterHandler {
    /// Adds an amount; one below zero or not finite is ignored.
    func increment(by amount: Double) {
        guard amount > 0, amount.isFinite else { return }
        self.fractional.add(amount)
    }
}
